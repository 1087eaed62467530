# ruff: noqa: RUF001 - the signs of other scripts are meant
"""Read words of other languages that say what a value is in English: ``手机号138…`` as ``phone number 138…``.

So whatever detects a value by the English word before it detects it in every language of the table of words.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from string import digits
from typing import Final

import numpy as np
import numpy.typing as npt

from app.core.content.cues.reading import (
    OTHER_WORDS,
    Cue,
    cue_words,
    cues_at,
    plain_letters,
    plain_words,
)
from app.engines.views import gates
from app.engines.views.codes import codes_of
from app.engines.views.mapping import Substitution, TextView, respelled

CUED: Final = "cue"

_BEFORE: Final = 24
_BEHIND: Final = 64
"""Characters between a word and the value that it describes, where the value stands before or behind the word."""
_SIGNS: Final = re.compile(
    r"[ \t\u3000]{0,2}[】」』）〉》]?[ \t\u3000]{0,2}(?P<colon>[：﹕∶︰])?[ \t\u3000]{0,2}[「『“‘«„]?"
)
"""Signs between a word and its value that no pattern knows."""
_VALUE: Final = re.compile(rf"[^\d:：=]{{0,{_BEHIND}}}\d|[\s\"'】」）)]{{0,4}}[:：=]")


def cued_view(text: str, below: TextView | None = None) -> TextView | None:
    """Return ``text`` with English words for those that say what a value beside them is; None if there are none."""
    if text.isascii() and not (
        gates.holds_any(text, _BESIDE) and gates.passed(text.encode("ascii"), _gate())
    ):
        return None
    codes = codes_of(text)
    plain = np.where(codes < _BEYOND, _letters().take(np.minimum(codes, _BEYOND)), codes)
    seen = plain.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    other = OTHER_WORDS if text.isascii() else ()
    places = [place for place in _places(seen, plain) if seen[slice(*place)] not in other]
    cues = [cue for cue in cues_at(text, seen, places) if _is_beside_value(text, cue)] if places else []
    return respelled(text, (_replaced(text, cue) for cue in cues), below) if cues else None


def beside_cue(view: TextView, start: int, end: int) -> bool:
    """Return whether ``[start, end)`` of a view of `cued_view` is near one of its words, and includes none."""
    following = bisect_right(view.changed, start, key=lambda change: change[0])
    if following < len(view.changed):
        next_start = view.changed[following][0]
        if next_start < end:
            return False
        if next_start - end <= _BEFORE:
            return not following or view.changed[following - 1][1] <= start
    return following > 0 and 0 <= start - view.changed[following - 1][1] <= _BEHIND


def _is_beside_value(text: str, cue: Cue) -> bool:
    before = text[max(0, cue.start - _BEFORE) : cue.start]
    return _VALUE.match(text, cue.end) is not None or any(map(str.isdecimal, before))


def _replaced(text: str, cue: Cue) -> Substitution:
    """Return the English words for a cue, and plain signs for those behind it."""
    start, end, english = cue
    signs = _SIGNS.match(text, end)
    if signs and signs.group().strip():
        end = signs.end()
        english += ": " if signs["colon"] else " "
    elif text[end : end + 1].isalnum():
        english += " "
    if text[start - 1 : start].isalnum() and start:
        english = f" {english}"
    return Substitution(start, end, english, CUED)


_BESIDE: Final = f"{digits}:="
"""What stands in every text in ASCII with a value beside a word."""

_SIZES: Final = (2, 3, 4)
_BITS: Final = 18
_FACTOR: Final = np.uint32(65_599)
_SPREAD: Final = np.uint32(2_654_435_761)
"""Knuth's multiplicative hash: the upper bits of a product with this number."""

_BEYOND: Final = 0x3001
"""The characters that are read as plain ones have smaller code points."""


@cache
def _gate() -> str:
    """Return the gate before words of plain ASCII, such as those of Indonesian."""
    words = sorted(re.escape(word).replace("\\ ", r"[ _\-]") for word in plain_words())
    return rf"(?i:(?:\A|[^a-z])(?:{'|'.join(words)}))"


@cache
def _letters() -> npt.NDArray[np.uint32]:
    letters = np.arange(_BEYOND + 1, dtype=np.uint32)
    for code, plain in plain_letters().items():
        if code < _BEYOND:
            letters[code] = plain
    return letters


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """The words that begin with the same few letters, by these letters, and hashes of the latter."""

    size: int
    lengths: dict[str, list[int]]
    hashed: npt.NDArray[np.bool_]


@cache
def _beginnings() -> list[_Beginnings]:
    """Return the words of two letters, those of three, and all longer ones by their first four."""
    beginnings = []
    for size in _SIZES:
        words = [word for word in cue_words() if len(word) == size or len(word) > size == _SIZES[-1]]
        lengths: dict[str, list[int]] = {}
        for word in sorted(words, key=len):
            of_word = lengths.setdefault(word[:size], [])
            if len(word) not in of_word:
                of_word.append(len(word))
        hashed = np.zeros(1 << _BITS, np.bool_)
        hashed[_hashes(codes_of("".join(lengths)), size)[::size]] = True
        beginnings.append(_Beginnings(size, lengths, hashed))
    return beginnings


def _hashes(codes: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.uint32]:
    """Return a hash of every row of ``size`` characters."""
    rows = len(codes) - size + 1
    hashes = codes[:rows].copy()
    for offset in range(1, size):
        hashes = hashes * _FACTOR + codes[offset : offset + rows]
    return (hashes * _SPREAD) >> np.uint32(32 - _BITS)


def _places(seen: str, codes: npt.NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """Yield where ``seen``, whose characters are ``codes``, has a word of the table."""
    words = cue_words()
    for beginnings in _beginnings():
        if len(seen) < beginnings.size:
            return
        starts: list[int] = np.flatnonzero(beginnings.hashed.take(_hashes(codes, beginnings.size))).tolist()
        for start in starts:
            for length in beginnings.lengths.get(seen[start : start + beginnings.size], ()):
                if seen[start : start + length] in words:
                    yield start, start + length
