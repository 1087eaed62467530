"""Carry the names found in one text of a context to all of them."""

from collections.abc import Sequence

from app.core.contracts.engines import DetectionOptions, Span
from app.engines.pii.ground.labels import thresholds
from app.engines.pii.ground.lists import AllowList
from app.engines.pii.ground.spans import handles, resolved
from app.engines.pii.names.names import Names, person_names

_CARRIED = 0.5


def names_in(texts: Sequence[str], found: Sequence[Sequence[Span]]) -> list[str]:
    """Return the names of people found in ``texts``, sorted."""
    return sorted(set().union(*map(person_names, texts, found)))


def carry(
    texts: Sequence[str], found: Sequence[Sequence[Span]], names: Sequence[str], options: DetectionOptions
) -> list[list[Span]]:
    """Return ``found`` with the other mentions of ``names``."""
    prepared = Names(names if carries(options) else ())
    with_new = [carried(text, spans, prepared, options)[0] for text, spans in zip(texts, found, strict=True)]
    return [list(spans) if new is None else new for spans, new in zip(found, with_new, strict=True)]


def carries(options: DetectionOptions) -> bool:
    """Say whether ``options`` ask for people, without which no name is carried."""
    return "PERSON" in thresholds(options)


def carried(
    text: str, spans: Sequence[Span], names: Names, options: DetectionOptions
) -> tuple[list[Span] | None, list[int]]:
    """Return ``spans`` with the other mentions of ``names`` in ``text``, and the positions of the names relevant to it.

    None stands for spans that stay as they are.
    """
    new, relevant = names.searched(text, _CARRIED)
    if new:
        allowed = AllowList(options.allow_list)
        new = [span for span in new if not allowed.holds(text, span)]
    if not new:
        return None, relevant
    taken = sorted([*((span.start, span.end) for span in spans), *handles(text)])
    with_new = resolved(text, [*spans, *_outside(new, taken)])
    return (None if with_new == list(spans) else with_new), relevant


def _outside(spans: Sequence[Span], taken: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans that touch nothing in ``taken``; both are sorted."""
    free: list[Span] = []
    place = 0
    for span in spans:
        while place < len(taken) and taken[place][1] <= span.start:
            place += 1
        if place == len(taken) or taken[place][0] >= span.end:
            free.append(span)
    return free
