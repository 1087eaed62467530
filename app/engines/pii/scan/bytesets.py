"""Sets of image bytes as bit masks: which bytes a character class of a pattern may and must match."""

import re
from functools import lru_cache
from typing import Final, NamedTuple

from app.engines.pii.scan.image import AS_ASCII, CASED, DIGIT, EDGE, MARK, SPACE, UNCASED, byte_of

EVERY: Final = (1 << 256) - 1
AT_EDGE: Final = 1 << EDGE
ASCII: Final = (1 << 128) - 1
_FOREIGN: Final = EVERY & ~ASCII & ~AT_EDGE
_ASCII_LIMIT = 128


def mask_of(*codes: int) -> int:
    """Return the set of ``codes``."""
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


_UNCASED: Final = EVERY & ~((1 << UNCASED) - 1)
_SHARED: Final = mask_of(*b"kKsSiI")
"""Bytes that also stand for a letter outside ASCII."""
_ASCII_WORD: Final = mask_of(*(code for code in range(128) if chr(code).isalnum() or code == ord("_")))
_ASCII_DIGIT: Final = mask_of(*range(ord("0"), ord("9") + 1))
CAPITALS: Final = mask_of(*range(ord("A"), ord("Z") + 1))
_TO_SMALL: Final = ord("a") - ord("A")
_SURE_SPACE: Final = mask_of(*b" \t\n\r\x0b\x0c")
SPACES: Final = _SURE_SPACE | mask_of(0x1C, 0x1D, 0x1E, 0x1F, SPACE)


class ByteSet(NamedTuple):
    """The bytes that ``may`` stand for a matching character, and those that ``must``, all of whose characters match."""

    may: int
    must: int

    def __or__(self, other: "ByteSet") -> "ByteSet":
        return ByteSet(self.may | other.may, self.must | other.must)

    def inverted(self) -> "ByteSet":
        """Return the bytes of the characters that do not match, including the edge."""
        return ByteSet(EVERY & ~self.must, EVERY & ~self.may)


NOTHING: Final = ByteSet(0, 0)
ANYTHING: Final = ByteSet(EVERY & ~AT_EDGE, EVERY & ~AT_EDGE)
_LETTER = ByteSet(
    _ASCII_WORD | _UNCASED | mask_of(CASED, MARK, DIGIT),
    _ASCII_WORD | _UNCASED | mask_of(CASED),
)
WORD: Final = _LETTER
_BY_NAME: Final = {
    "DIGIT": ByteSet(_ASCII_DIGIT | mask_of(DIGIT), _ASCII_DIGIT),
    "SPACE": ByteSet(SPACES, _SURE_SPACE),
    "WORD": _LETTER,
}


def category(name: str, flags: int) -> ByteSet:
    r"""Return the set of ``\d``, ``\s``, ``\w`` and their opposites, by the parser's name for them."""
    kind = name.rsplit("_", 1)[1]
    byte_set = _BY_NAME[kind]
    if flags & re.ASCII:
        byte_set = ByteSet(byte_set.may, byte_set.must & ASCII)
    return byte_set.inverted() if "_NOT_" in name else byte_set


@lru_cache(maxsize=4096)
def character(code: int, flags: int) -> ByteSet:
    """Return the set of one character."""
    letter = chr(code)
    if code < _ASCII_LIMIT:
        mask = 1 << code
        if not (flags & re.IGNORECASE and letter.isalpha()):
            return ByteSet(mask, mask & ~_SHARED)
        mask = mask_of(ord(letter.lower()), ord(letter.upper()))
        return ByteSet(mask, mask & ~mask_of(*b"iI"))
    may = 1 << byte_of(letter)
    if flags & re.IGNORECASE and not may & _UNCASED:
        may |= mask_of(CASED, MARK)
        if letter in AS_ASCII:
            may |= _SHARED
    return ByteSet(may, 0)


def characters(first: int, last: int, flags: int) -> ByteSet:
    """Return the set of a range of characters."""
    byte_set = NOTHING
    for code in range(first, min(last, _ASCII_LIMIT - 1) + 1):
        byte_set |= character(code, flags)
    if last >= _ASCII_LIMIT:
        byte_set = ByteSet(byte_set.may | _FOREIGN | _SHARED, byte_set.must)
    return byte_set


@lru_cache(maxsize=4096)
def members(mask: int) -> bytes:
    """Return the bytes of a set, in order."""
    return bytes(code for code in range(256) if mask >> code & 1)


def folded(mask: int) -> int:
    """Return a set with its capitals replaced by their small letters."""
    capitals = mask & CAPITALS
    return (mask & ~CAPITALS) | capitals << _TO_SMALL


def spelled(mask: int) -> int:
    """Return a set with its capitals replaced by their small letters, but for those that stand there alone.

    In an expression for a case-insensitive search such a capital has to be `rendered`: many words that people write
    with a capital, as names of streets, are ordinary ones without.
    """
    both = mask & CAPITALS & (mask >> _TO_SMALL)
    return mask & ~both


def rendered(mask: int) -> bytes:
    """Return the expression of a set for a case-insensitive search; a capital alone counts as such only."""
    return b"(?-i:%b)" % exactly(mask) if spelled(mask) & CAPITALS else small(mask)


def small(mask: int) -> bytes:
    """Return the expression of a set for a search in an image whose letters are small."""
    return exactly(folded(mask))


@lru_cache(maxsize=4096)
def exactly(mask: int) -> bytes:
    """Return the expression of a set, in the syntax that Hyperscan and RE2 share."""
    codes = members(mask)
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    parts = b"".join(
        _written(low) if low == high else _written(low) + b"-" + _written(high) for low, high in ranges
    )
    return parts if len(codes) == 1 else b"[" + parts + b"]"


def _written(code: int) -> bytes:
    plain = chr(code).isascii() and chr(code).isalnum()
    return bytes([code]) if plain else b"\\x%02x" % code
