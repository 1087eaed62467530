"""Find the words with which a pattern can begin: plain strings are the cheapest expressions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.engines.pii.scan.bytesets import AT_EDGE, members, rendered, spelled
from app.engines.pii.scan.shapes import Chars, Choice, Repeat, Shape
from app.engines.pii.scan.shapes import Sequence as Row

LONGEST: Final = 12
"""Characters of a word that count; it is rare enough then."""

_MOST_WORDS = 2048
_MOST_SPELLINGS = 3
_COMMON = {" ": 0.15, **dict.fromkeys("etaoinshrdl", 0.055), **dict.fromkeys("cumwfgypbvkjxqz", 0.013)}

_Beginning = tuple[bytes, bool]
"""A string, and whether the shape ends with it, so that the text after the shape follows the string."""


@dataclass(frozen=True, slots=True)
class RequiredLiterals:
    """Strings of image bytes, one of which is in every match, and their rarity in bits.

    A small letter stands for both; a capital stands for itself.
    """

    spelled: frozenset[bytes]
    bits: float

    def expressions(self) -> tuple[bytes, ...]:
        """Return one expression per word."""
        return tuple(b"".join(rendered(1 << byte) for byte in word) for word in sorted(self.spelled))


def words_of(items: Sequence[Shape]) -> RequiredLiterals | None:
    """Return the words with which a row of shapes begins; None if there are too many or one is empty."""
    beginnings = _row(items)
    if beginnings is None:
        return None
    words = {word for word, _ in beginnings}
    # A word that begins with another word adds nothing.
    kept = {word for word in words if not any(word[:size] in words for size in range(1, len(word)))}
    if b"" in words:
        return None
    rare = sum(2.0 ** -sum(rarity_of(1 << byte) for byte in word) for word in kept)
    return RequiredLiterals(frozenset(kept), -math.log2(min(1.0, rare)))


def _row(items: Iterable[Shape]) -> set[_Beginning] | None:
    done: set[_Beginning] = set()
    going: set[bytes] = {b""}
    for item in items:
        more = _beginnings(item)
        if more is None or len(going) * len(more) + len(done) > _MOST_WORDS:
            return done | {(word, False) for word in going}
        going, before = set(), going
        for begun in before:
            for added, ends in more:
                word = (begun + added)[:LONGEST]
                if ends and len(word) < LONGEST:
                    going.add(word)
                else:
                    done.add((word, False))
        if not going:
            return done
    return done | {(word, True) for word in going}


def _beginnings(shape: Shape) -> set[_Beginning] | None:
    match shape:
        case Chars(characters):
            letters = members(spelled(characters.may))
            few = len(letters) <= _MOST_SPELLINGS
            return {(bytes([byte]), True) for byte in letters} if few else {(b"", False)}
        case Row(items):
            return _row(items)
        case Choice(branches):
            return _either(branches)
        case Repeat(item, least, most):
            beginnings = _row([item] * min(max(least, 1), LONGEST))
            if beginnings is None:
                return None
            once = most in {least, 1}
            repeated = beginnings if once else {(word, False) for word, _ in beginnings}
            return repeated if least else repeated | {(b"", True)}
        case _:
            return {(b"", True)}


def _either(branches: Iterable[Shape]) -> set[_Beginning] | None:
    union: set[_Beginning] = set()
    for branch in branches:
        beginnings = _beginnings(branch)
        if beginnings is None:
            return None
        union |= beginnings
    return union


@lru_cache(maxsize=4096)
def rarity_of(mask: int) -> float:
    """Return how rarely a character of text is in a set, in bits; a rough estimate that suffices for comparisons."""
    share = sum(_frequency(code) for code in members(mask & ~AT_EDGE))
    return -math.log2(min(1.0, max(share, 1e-6)))


def _frequency(code: int) -> float:
    letter = chr(code)
    if letter in _COMMON:
        return _COMMON[letter]
    if letter.isascii() and letter.isdigit():
        return 0.03
    return 0.004 if letter.isascii() else 0.0005
