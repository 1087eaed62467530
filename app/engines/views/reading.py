"""Make all readings of a text, from the plain one to text that was encoded several times."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from app.engines.views import gates
from app.engines.views.codepoints import codepoints
from app.engines.views.controls import without_controls
from app.engines.views.cued import cued_view
from app.engines.views.encoded import encoded_runs
from app.engines.views.escaped import escapes
from app.engines.views.glued import glued_view
from app.engines.views.hidden import hidden_views
from app.engines.views.mapping import Substitution, TextView, apart, respelled
from app.engines.views.pieces import pieces
from app.engines.views.plain import plain_view
from app.engines.views.spelled import spelled

LEVELS: Final = 3
"""How many nested encodings are undone; there is no honest reason for more."""

_AROUND: Final = 512
"""Longest reach of encoded text, apart from runs without blanks and lines of base64."""
_CUT: Final = re.compile(r"[A-Za-z]{2} (?=[A-Za-z]{2})")
"""A blank between two words, across which no encoded text continues."""


_DECODERS: Final = (
    (gates.ESCAPES, escapes),
    (gates.CODEPOINTS, codepoints),
    (gates.ENCODED, encoded_runs),
    (gates.SPELLED, spelled),
    (gates.PIECES, pieces),
)
_ANY: Final = "|".join(gate for gate, _ in _DECODERS)
_LONG: Final = 2_000
"""Longer texts pass some gate or other, so each is asked alone."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The views of a text, and the places of text that was encoded once too often to be decoded.

    ``glued``: views in which words are parted from letters of other scripts; nothing else is changed there. ``cued``:
    the view in which words of other languages that say what a value is are English ones.
    """

    views: list[TextView]
    sealed: list[tuple[int, int]]
    glued: list[TextView]
    cued: TextView | None = None


def readings(text: str) -> Readings:
    """Return every other way to read ``text``; their total size is at most a fixed multiple of it."""
    views: list[TextView] = []
    glued = [glued_view(text, disguised=True)]
    below = without_controls(text)
    if not text.isascii():
        for hidden in hidden_views(text):
            views += _with_plain(hidden)
            glued.append(glued_view(views[-1].text, views[-1]))
        seen = text if below is None else below.text
        below = plain_view(seen, below) or below
    views += [] if below is None else [below]
    decoded, sealed = _decoded(text if below is None else below.text, below)
    views += decoded
    last = views[-1] if decoded else below
    glued.append(glued_view(text) if last is None else glued_view(last.text, last))
    top = glued[-1] or last
    cued = cued_view(text) if top is None else cued_view(top.text, top)
    return Readings(views, sealed, [view for view in glued if view is not None], cued)


def _decoded(seen: str, below: TextView | None) -> tuple[list[TextView], list[tuple[int, int]]]:
    """Return the views of ``seen`` in which nested encodings are undone, and what is encoded once more."""
    views: list[TextView] = []
    parts: Iterable[tuple[int, int]] = [(0, len(seen))]
    for _ in range(LEVELS):
        changes = _decodings(seen, parts)
        if not changes:
            return views, []
        new = _with_plain(respelled(seen, changes, below))
        views += new
        below, seen = new[-1], new[-1].text
        parts = _changed_parts(below) if len(new) == 1 else [(0, len(seen))]
    return views, [] if below is None else [
        below.original_span(*change[:2]) for change in _decodings(seen, parts)
    ]


def _with_plain(view: TextView) -> list[TextView]:
    plain = plain_view(view.text, view)
    return [view] if plain is None else [view, plain]


def _decodings(text: str, parts: Iterable[tuple[int, int]]) -> list[Substitution]:
    """Return all encoded text in ``parts`` of ``text``, one level deep."""
    encoded: list[Substitution] = []
    for low, high in parts:
        part = text[low:high]
        changes = _decoded_once(part)
        if low:
            changes = [change._replace(start=low + change.start, end=low + change.end) for change in changes]
        encoded += changes
    return apart(encoded)


def _decoded_once(part: str) -> list[Substitution]:
    """Return what the decoders read in a part of a text, without asking those that cannot read anything."""
    if not part.isascii():
        return [change for _, decode in _DECODERS for change in decode(part)]
    data = part.encode("ascii")
    if len(data) < _LONG and not gates.passed(data, _ANY):
        return []
    return [change for gate, decode in _DECODERS if gates.passed(data, gate) for change in decode(part)]


def _changed_parts(view: TextView) -> Iterator[tuple[int, int]]:
    """Yield the parts of a view around changes, where there may be encoded text that the text below did not have."""
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
