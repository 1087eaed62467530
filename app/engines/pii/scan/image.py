"""Map a text to an image with one byte per character and the same offsets, so that byte engines can search Unicode.

ASCII characters map to themselves. All others are classes that share a few bytes: an expression may hit a class only if
it can match some character of the class. Each image has an `EDGE` on either side.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import regex  # type: ignore[import-untyped]

CASED, SPACE, DIGIT, MARK, OTHER, EDGE = range(0x80, 0x86)
"""Letters with case; white space; digits; letters in only one regular expression engine; all others; the edge."""

UNCASED = 0xA0
"""The first of several bytes for letters without case, so that Chinese words remain distinguishable."""

AS_ASCII = {"\u212a": "k", "\u017f": "s", "\u0130": "i", "\u0131": "i"}
"""The four letters that equal ASCII letters when case is ignored, and map to these here."""

_PLANE = 1 << 16
_PLANES = 17
_table: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)
_filled: set[int] = set()


def image(text: str) -> bytes:
    """Return the image of ``text``; its bytes are shifted by one, because an edge precedes them."""
    if text.isascii():
        return b"\x85%b\x85" % text.encode("ascii")
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return b"\x85%b\x85" % _loaded(codes).take(codes).tobytes()


def byte_of(character: str) -> int:
    """Return the byte that stands for one character."""
    return image(character)[1]


def _loaded(codes: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return the table, filled for the planes of ``codes``: nearly always only the first, which takes milliseconds."""
    global _table  # noqa: PLW0603 - one table per process, a megabyte of which only used planes are touched
    if not len(_table):
        _table = np.zeros(_PLANE * _PLANES, np.uint8)
    planes = {0} if int(codes.max()) < _PLANE else set(np.unique(codes >> 16).tolist())
    for plane in planes - _filled:
        _table[plane * _PLANE : (plane + 1) * _PLANE] = _plane(plane * _PLANE)
        _filled.add(plane)
    return _table


def _plane(first: int) -> npt.NDArray[np.uint8]:
    characters = "".join(map(chr, range(first, first + _PLANE)))

    def where(engine: Any, expression: str) -> npt.NDArray[np.bool_]:
        mask = np.zeros(_PLANE, np.bool_)
        spans: Iterable[Any] = engine.finditer(expression, characters)
        for span in spans:
            mask[span.start() : span.end()] = True
        return mask

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
