"""The words with which a pattern can begin: plain strings are the cheapest expressions that there are."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from app.engines.pii.scan.bytesets import AT_EDGE, exactly, folded, members
from app.engines.pii.scan.shapes import Chars, Choice, Repeat, Shape
from app.engines.pii.scan.shapes import Sequence as Row

LONGEST: Final = 12
"""Characters of a word that count: it is rare enough then."""

_MOST_WORDS = 2048
_MOST_SPELLINGS = 3
_COMMON = {" ": 0.15, **dict.fromkeys("etaoinshrdl", 0.055), **dict.fromkeys("cumwfgypbvkjxqz", 0.013)}

_Beginning = tuple[bytes, bool]
"""A string, and whether the shape ends with it, so that what follows the shape follows the string."""


@dataclass(frozen=True, slots=True)
class RequiredLiterals:
    """Strings of image bytes without capitals, one of which every match holds, and how rare they are, in bits."""

    spelled: frozenset[bytes]
    bits: float

    def expressions(self) -> tuple[bytes, ...]:
        """Return one expression a word."""
        return tuple(b"".join(exactly(1 << byte) for byte in word) for word in sorted(self.spelled))


def words_of(items: Sequence[Shape]) -> RequiredLiterals | None:
    """Return the words with which a row of shapes begins; None where there are too many or one says nothing."""
    found = _row(items)
    if found is None:
        return None
    spelled = {word for word, _ in found}
    # A word that begins with another one adds nothing.
    kept = {word for word in spelled if not any(word[:size] in spelled for size in range(1, len(word)))}
    if b"" in spelled:
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
            spelled = members(folded(characters.may))
            few = len(spelled) <= _MOST_SPELLINGS
            return {(bytes([byte]), True) for byte in spelled} if few else {(b"", False)}
        case Row(items):
            return _row(items)
        case Choice(branches):
            return _either(branches)
        case Repeat(item, least, most):
            found = _row([item] * min(max(least, 1), LONGEST))
            if found is None:
                return None
            once = most in {least, 1}
            repeated = found if once else {(word, False) for word, _ in found}
            return repeated if least else repeated | {(b"", True)}
        case _:
            return {(b"", True)}


def _either(branches: Iterable[Shape]) -> set[_Beginning] | None:
    union: set[_Beginning] = set()
    for branch in branches:
        found = _beginnings(branch)
        if found is None:
            return None
        union |= found
    return union


@lru_cache(maxsize=4096)
def rarity_of(mask: int) -> float:
    """Return how rarely a character of text is of a set, in bits: a rough guess, good enough to choose by."""
    share = sum(_frequency(code) for code in members(mask & ~AT_EDGE))
    return -math.log2(min(1.0, max(share, 1e-6)))


def _frequency(code: int) -> float:
    letter = chr(code)
    if letter in _COMMON:
        return _COMMON[letter]
    if letter.isascii() and letter.isdigit():
        return 0.03
    return 0.004 if letter.isascii() else 0.0005
