"""An image of a text with one byte a character and the same offsets, so that engines for bytes search Unicode.

ASCII stands for itself. All other characters share a few bytes: a class says no more of its characters than that none
of them matches an expression that no character of the class can match. Each image has an `EDGE` on either side.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import regex  # type: ignore[import-untyped]

CASED, SPACE, DIGIT, MARK, OTHER, EDGE = range(0x80, 0x86)
"""Letters with case; white space; digits; letters to one regular expression engine only; everything else; the edge."""

UNCASED = 0xA0
"""The first of the bytes of letters without case, so that a Chinese word is more than a row of letters."""

AS_ASCII = {"\u212a": "k", "\u017f": "s", "\u0130": "i", "\u0131": "i"}
"""The four letters that are ASCII letters where case does not count, and stand for these here."""

_PLANE = 1 << 16
_PLANES = 17
_table: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
_known: set[int] = set()


def image(text: str) -> bytes:
    """Return the image of ``text``: its bytes are shifted by one, for the edge before it."""
    if text.isascii():
        return b"\x85%b\x85" % text.encode("ascii")
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return b"\x85%b\x85" % _loaded(codes).take(codes).tobytes()


def byte_of(character: str) -> int:
    """Return the byte that stands for one character."""
    return image(character)[1]


def _loaded(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return the table, filled for the planes of ``codes``: nearly always the first alone, a few milliseconds' work."""
    global _table  # noqa: PLW0603 - one table for the process, a megabyte that is only touched where it is used
    if not len(_table):
        _table = np.zeros(_PLANE * _PLANES, np.uint8)
    planes = {0} if int(codes.max()) < _PLANE else set(np.unique(codes >> 16).tolist())
    for plane in planes - _known:
        _table[plane * _PLANE : (plane + 1) * _PLANE] = _plane(plane * _PLANE)
        _known.add(plane)
    return _table


def _plane(first: int) -> npt.NDArray[np.uint8]:
    characters = "".join(map(chr, range(first, first + _PLANE)))

    def where(engine: Any, expression: str) -> npt.NDArray[np.bool_]:
        found = np.zeros(_PLANE, np.bool_)
        spans: Iterable[Any] = engine.finditer(expression, characters)
        for span in spans:
            found[span.start() : span.end()] = True
        return found

    letters, others = where(regex, r"\w+"), where(re, r"\w+")
    codes = np.arange(first, first + _PLANE)
    table = np.full(_PLANE, OTHER, np.uint8)
    table[letters | others] = MARK
    table[letters & others] = (UNCASED + codes % (0x100 - UNCASED))[letters & others]
    table[letters & others & where(regex, r"[\p{Cased}\p{CWCM}\p{CWCF}]+")] = CASED
    table[where(regex, r"\d+") | where(re, r"\d+")] = DIGIT
    table[where(regex, r"\s+") | where(re, r"\s+")] = SPACE
    if not first:
        table[:128] = np.arange(128)
        for character, letter in AS_ASCII.items():
            table[ord(character)] = ord(letter)
    return table
