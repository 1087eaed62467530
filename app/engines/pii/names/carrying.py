"""Find the names detected in one text of a context in all its other texts."""

from collections.abc import Sequence

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.ground.labels import thresholds
from app.engines.pii.ground.lists import AllowList
from app.engines.pii.ground.spans import handles, resolved
from app.engines.pii.names.names import Names, person_names

_CARRIED_SCORE = 0.5


def names_in(texts: Sequence[str], findings: Sequence[Sequence[Span]]) -> list[str]:
    """Return the names of people found in ``texts``, sorted."""
    return sorted(set().union(*map(person_names, texts, findings)))


def carry(
    texts: Sequence[str], findings: Sequence[Sequence[Span]], names: Sequence[str], options: DetectionOptions
) -> list[list[Span]]:
    """Return ``findings`` with the other mentions of ``names``."""
    prepared = Names(names if carries(options) else ())
    with_new = [
        carried(text, spans, prepared, options)[0] for text, spans in zip(texts, findings, strict=True)
    ]
    return [list(spans) if new is None else new for spans, new in zip(findings, with_new, strict=True)]


def carries(options: DetectionOptions) -> bool:
    """Return whether ``options`` request people; otherwise no name is carried to other texts."""
    return "PERSON" in thresholds(options)


def carried(
    text: str, spans: Sequence[Span], names: Names, options: DetectionOptions
) -> tuple[list[Span] | None, list[int]]:
    """Return ``spans`` with the other mentions of ``names`` in ``text``, and the positions of the names relevant to it.

    None instead of spans means that they do not change.
    """
    new, relevant = names.searched(text, _CARRIED_SCORE)
    if new:
        allowed = AllowList(options.allow_list)
        new = [span for span in new if not allowed.holds(text, span)]
    if not new:
        return None, relevant
    taken = sorted([*((span.start, span.end) for span in spans), *handles(text)])
    with_new = resolved(text, [*spans, *_outside(new, taken)])
    return (None if with_new == list(spans) else with_new), relevant


def _outside(spans: Sequence[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans that overlap nothing in ``taken``; both are sorted."""
    free: list[Span] = []
    place = 0
    for span in spans:
        while place < len(taken) and taken[place][1] <= span.start:
            place += 1
        if place == len(taken) or taken[place][0] >= span.end:
            free.append(span)
    return free
