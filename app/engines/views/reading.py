"""All readings of a text, from the plain one to what was encoded several times over."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from app.engines.views.encoded import encoded_runs
from app.engines.views.escaped import escapes
from app.engines.views.hidden import hidden_views
from app.engines.views.mapping import Substitution, TextView, apart, respelled
from app.engines.views.plain import plain_view

LEVELS: Final = 3
"""How often one encoding within another is undone; what is wrapped once more has no honest reason to be."""

_AROUND: Final = 512
"""How far what is encoded reaches, apart from runs without blanks and from lines of base64."""
_CUT: Final = re.compile(r"[A-Za-z]{2} (?=[A-Za-z]{2})")
"""Between two words nothing that is encoded goes on."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The views of a text, and where something lies in it that was encoded once too often to be read."""

    views: list[TextView]
    sealed: list[tuple[int, int]]


def readings(text: str) -> Readings:
    """Return every other way to read ``text``; together they are at most a fixed multiple of it, whatever it holds."""
    views: list[TextView] = []
    below: TextView | None = None
    if not text.isascii():
        for hidden in hidden_views(text):
            views += _with_plain(hidden)
        below = plain_view(text)
        views += [] if below is None else [below]
    seen = text if below is None else below.text
    parts: Iterable[tuple[int, int]] = [(0, len(seen))]
    for _ in range(LEVELS):
        changes = _decodings(seen, parts)
        if not changes:
            return Readings(views, [])
        new = _with_plain(respelled(seen, changes, below))
        views += new
        below, seen = new[-1], new[-1].text
        parts = _changed_parts(below) if len(new) == 1 else [(0, len(seen))]
    sealed = [] if below is None else [below.original_span(*one[:2]) for one in _decodings(seen, parts)]
    return Readings(views, sealed)


def _with_plain(view: TextView) -> list[TextView]:
    plain = plain_view(view.text, view)
    return [view] if plain is None else [view, plain]


def _decodings(text: str, parts: Iterable[tuple[int, int]]) -> list[Substitution]:
    """Return everything that is encoded in ``parts`` of ``text``, one level deep."""
    found: list[Substitution] = []
    for low, high in parts:
        part = text[low:high]
        changes = [*escapes(part), *encoded_runs(part)]
        if low:
            changes = [one._replace(start=low + one.start, end=low + one.end) for one in changes]
        found += changes
    return apart(found)


def _changed_parts(view: TextView) -> Iterator[tuple[int, int]]:
    """Yield the parts of a view where something may be encoded that was not in the text below: around what changed."""
    text, low, high = view.text, 0, 0
    for start, end, _ in view.changed:
        if start - _AROUND > high and (
            cut := _CUT.search(text, max(high, start - 3 * _AROUND), start - _AROUND)
        ):
            if high:
                yield low, high
            low = cut.end() - 1
        if end + _AROUND > high:
            cut = _CUT.search(text, end + _AROUND)
            high = cut.end() if cut else len(text)
    yield low, high
