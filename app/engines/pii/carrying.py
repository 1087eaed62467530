"""Carry the names found in one text of a context to all of them."""

from collections.abc import Sequence

from app.core.engines import DetectionOptions, Span
from app.engines.pii.labels import thresholds
from app.engines.pii.lists import folded, is_allowed
from app.engines.pii.names import mentions, person_names
from app.engines.pii.spans import handles, resolved

_CARRIED = 0.5


def names_in(texts: Sequence[str], found: Sequence[Sequence[Span]]) -> list[str]:
    """Return the names of people found in ``texts``, sorted."""
    return sorted(set().union(*map(person_names, texts, found)))


def carry(
    texts: Sequence[str], found: Sequence[Sequence[Span]], names: Sequence[str], options: DetectionOptions
) -> list[list[Span]]:
    """Return ``found`` with the other mentions of ``names``."""
    if not names or "PERSON" not in thresholds(options):
        return [list(spans) for spans in found]
    allowed = folded(options.allow_list)
    carried: list[list[Span]] = []
    for text, spans in zip(texts, found, strict=True):
        taken = sorted([*((span.start, span.end) for span in spans), *handles(text)])
        new = [span for span in mentions(text, names, _CARRIED) if not is_allowed(text, span, allowed)]
        carried.append(resolved(text, [*spans, *_outside(new, taken)]) if new else list(spans))
    return carried


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
