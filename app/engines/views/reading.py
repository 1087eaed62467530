"""Make all readings of a text, from the plain one to text that was encoded several times."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
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
from app.engines.views.pieces import numbers, strings
from app.engines.views.plain import plain_view
from app.engines.views.spelled import spelled

LEVELS: Final = 3
"""How many nested encodings are undone; there is no honest reason for more."""

_AROUND: Final = 512
"""Longest reach of encoded text, apart from runs without blanks and lines of base64."""
_CUT: Final = re.compile(r"[A-Za-z]{2} (?=[A-Za-z]{2})|[A-Za-z]{2}\": (?=[\"\[{a-z])")
"""A blank between two words, or behind the name of a member, across which no encoded text continues."""


_DECODERS: Final[tuple[tuple[str, Callable[[str], Iterator[Substitution]]], ...]] = (
    (gates.ESCAPES, escapes),
    (gates.CODEPOINTS, codepoints),
    (gates.SPELLED, spelled),
    (gates.STRINGS, strings),
)
_ANY: Final = "|".join(gate for gate, _ in _DECODERS)
DISGUISED: Final = f"{_ANY}|{gates.ENCODED}|{gates.CONTROLS}"
"""The gate before `disguises`, for text in ASCII."""


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
    hidden, below = _undisguised(text)
    glued = [glued_view(text, disguised=True), *(glued_view(pair[-1].text, pair[-1]) for pair in hidden)]
    decoded, sealed = _decoded(text, below, joining=True)
    last = decoded[-1] if decoded else below
    # A number may also be read as hexadecimal: what stands glued to it is parted from both.
    glued += [
        glued_view(text) if view is None else glued_view(view.text, view)
        for view in ([below, last] if decoded else [last])
    ]
    top = glued[-1] or last
    cued = cued_view(text) if top is None else cued_view(top.text, top)
    views = [*chain(*hidden), *_present(below), *decoded]
    return Readings(views, sealed, [view for view in glued if view is not None], cued)


def disguises(text: str) -> list[TextView]:
    """Return the views of ``text`` in which words may be read: all but those that only join groups of digits."""
    if text.isascii() and not gates.passed(text.encode("ascii"), DISGUISED):
        return []
    hidden, below = _undisguised(text)
    decoded, _ = _decoded(text, below, joining=False)
    return [*chain(*hidden), *_present(below), *decoded]


def _undisguised(text: str) -> tuple[list[list[TextView]], TextView | None]:
    """Return the views of hidden text, each with its plain one, and the plain view without control characters."""
    below = without_controls(text)
    if text.isascii():
        return [], below
    seen = text if below is None else below.text
    return [_with_plain(view) for view in hidden_views(text)], plain_view(seen, below) or below


def _present(view: TextView | None) -> list[TextView]:
    return [] if view is None else [view]


def _decoded(
    text: str, below: TextView | None, *, joining: bool
) -> tuple[list[TextView], list[tuple[int, int]]]:
    """Return the views in which nested encodings are undone, and what is encoded once more.

    ``joining``: numbers in pieces are read as a whole, too.
    """
    seen = text if below is None else below.text
    views: list[TextView] = []
    parts: Iterable[tuple[int, int]] = [(0, len(seen))]
    for _ in range(LEVELS):
        changes = _decodings(seen, parts, joining=joining)
        if not changes:
            return views, []
        new = _with_plain(respelled(seen, changes, below))
        views += new
        below, seen = new[-1], new[-1].text
        parts = _changed_parts(seen, _changes_in_last(new))
    return views, [] if below is None else [
        below.original_span(*change[:2]) for change in _decodings(seen, parts, joining=joining)
    ]


def _with_plain(view: TextView) -> list[TextView]:
    plain = plain_view(view.text, view)
    return [view] if plain is None else [view, plain]


def _decodings(text: str, parts: Iterable[tuple[int, int]], *, joining: bool) -> list[Substitution]:
    """Return all encoded text in ``parts`` of ``text``, one level deep."""
    encoded: list[Substitution] = []
    for low, high in parts:
        part = text[low:high]
        changes = _decoded_once(part, joining=joining)
        if low:
            changes = [change._replace(start=low + change.start, end=low + change.end) for change in changes]
        encoded += changes
    return apart(encoded)


def _decoded_once(part: str, *, joining: bool) -> list[Substitution]:
    """Return what the decoders read in a part of a text, without asking those that cannot read anything."""
    data = part.encode("ascii", "replace")
    changes: list[Substitution] = []
    if gates.passed(data, _ANY):
        for gate, decode in _DECODERS:
            if gates.passed(data, gate):
                changes += decode(part)
    # These have gates of their own.
    if joining:
        changes += numbers(part)
    return [*changes, *encoded_runs(part)]


def _changes_in_last(views: list[TextView]) -> list[tuple[int, int]]:
    """Return where the last of one or two views, each made of the one before, differs from what is below both."""
    *decoded, last = views
    changes = [(start, end) for start, end, _ in last.changed]
    for view in decoded:
        changes += [last.own_span(start, end) for start, end, _ in view.changed]
    return sorted(changes)


def _changed_parts(text: str, changes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a view around changes, where there may be encoded text that the text below did not have."""
    low = high = 0
    for start, end in changes:
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
