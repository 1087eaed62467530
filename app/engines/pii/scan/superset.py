"""From a pattern to an expression that hits in every match of it, and to where around a hit the match may lie.

A pattern of limited width is its own expression, without what only narrows it. Of any other pattern the part is taken
that ordinary text holds least often; what stands before and after that part is described by its alphabet alone.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from app.engines.pii.scan.bytesets import AT_EDGE, EVERY, WORD, members, rendered
from app.engines.pii.scan.shapes import (
    UNLIMITED,
    Beside,
    Boundary,
    Chars,
    Choice,
    NotDerivableError,
    Reading,
    Repeat,
    Shape,
    alphabet,
    effort,
    width,
)
from app.engines.pii.scan.shapes import Sequence as Row

WIDEST: Final = 128
"""Longest match of an expression: more would make the automaton large, and no value needs more to be recognised."""

_LEAST_BITS = 1.0
_TRIES = 200_000
_COMMON = {" ": 0.15, **dict.fromkeys("etaoinshrdl", 0.055), **dict.fromkeys("cumwfgypbvkjxqz", 0.013)}


class Probe(NamedTuple):
    """An expression, and what to search where it hits.

    A match begins at most ``back`` characters before the end of a hit, or earlier where only bytes of ``left`` lie
    between; it ends at most ``fore`` characters after, or later where only bytes of ``right`` lie between. The real
    pattern has to see ``ahead`` characters more. ``tame``: it cannot take long on so short a text.
    """

    expression: bytes
    back: int
    fore: int
    left: int
    right: int
    ahead: int
    tame: bool


@dataclass(slots=True)
class _Part:
    """Neighbouring pieces of a pattern, rendered; ``whole``: none was cut or left out."""

    expression: bytes
    most: int
    bits: float
    taken: int
    whole: bool


def probe_of(pattern: str, flags: int, widest: int = WIDEST) -> Probe:
    """Return the probe of a pattern; raise NotDerivableError where there is none worth its while."""
    reading = Reading(pattern, flags)
    before, items, after = _framed(reading.shape)
    least, most = width(Row(tuple(items)))
    if not least:
        raise NotDerivableError("matches nothing at all")
    ahead = reading.ahead + 2
    if max(ahead, reading.behind) >= UNLIMITED:
        raise NotDerivableError("look-around without limit")
    tame = effort(reading.shape) * min(most, UNLIMITED) <= _TRIES
    start, part = _rarest(items, min(widest, WIDEST))
    if part.bits < _LEAST_BITS:
        raise NotDerivableError("matches too much")
    expression, extra = part.expression, 0
    if start == 0 and before != EVERY:
        expression = rendered(before) + expression
    if part.whole and start + part.taken == len(items) and after != EVERY:
        expression, extra = expression + rendered(after), 1
    left, leading = _outside(items[:start])
    rest = items[start + part.taken - (not part.whole) :]
    right, trailing = _outside(rest)
    return Probe(expression, part.most + leading + extra, trailing, left, right, ahead, tame)


def _outside(items: Sequence[Shape]) -> tuple[int, int]:
    """Return what lies outside of the expression: its alphabet where it has no limit, else how long it can be."""
    row = Row(tuple(items))
    most = width(row)[1]
    return (alphabet(row), 0) if most > WIDEST * 4 else (0, most)


def _framed(shape: Shape) -> tuple[int, list[Shape], int]:
    """Return the bytes that may stand before a match, its pieces, and the bytes that may follow it."""
    items = list(shape.items) if isinstance(shape, Row) else [shape]
    before = after = EVERY
    first, last = 0, len(items)
    while first < last and isinstance(items[first], Beside | Boundary):
        before &= _side(items[first], items[first + 1 :], behind=True)
        first += 1
    while last > first and isinstance(items[last - 1], Beside | Boundary):
        after &= _side(items[last - 1], items[first : last - 1][::-1], behind=False)
        last -= 1
    return before, [item for item in items[first:last] if width(item)[1]], after


def _side(piece: Shape, inner: Sequence[Shape], *, behind: bool) -> int:
    """Return what an anchor at the rim of a pattern asks of the character outside."""
    if isinstance(piece, Beside):
        return piece.may if piece.behind == behind else EVERY
    ends = _rim(inner, behind=behind)
    if ends and not ends & ~WORD.must:
        return EVERY & ~WORD.must
    if ends and not ends & WORD.may:
        return WORD.may
    return EVERY


def _rim(items: Iterable[Shape], *, behind: bool) -> int:
    """Return the bytes with which a row of pieces can begin, or end where it is given in reverse; 0: not known."""
    union = 0
    for item in items:
        if isinstance(item, Beside | Boundary):
            continue
        mine = _rim_of(item, behind=behind)
        if not mine:
            return 0
        union |= mine
        if width(item)[0]:
            return union
    return 0


def _rim_of(item: Shape, *, behind: bool) -> int:
    match item:
        case Chars(found):
            return found.may
        case Repeat(inner):
            return _rim_of(inner, behind=behind)
        case Row(items):
            return _rim(items if behind else items[::-1], behind=behind)
        case Choice(branches):
            rims = [_rim_of(branch, behind=behind) for branch in branches]
            return 0 if 0 in rims else _union(rims)
        case _:
            return 0


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _rarest(items: list[Shape], widest: int) -> tuple[int, _Part]:
    """Return where the part begins that text holds least often, and the part."""
    whole = _rendered(items, widest)
    if whole.whole and whole.taken == len(items):
        return 0, whole
    best = 0, whole
    for start in range(1, len(items)):
        part = _rendered(items[start:], widest // 2)
        if part.bits > best[1].bits + 1:
            best = start, part
    start, part = best
    if start and (last := _last_character(items[start - 1])):
        # One character of what stands before it tells most false hits apart, e.g. of an address that of "@" alone.
        part.expression = rendered(last) + part.expression
        part.most += 1
        part.bits += _bits(last)
    return start, part


def _last_character(item: Shape) -> int:
    """Return the bytes that a piece must end with; 0 where it may be empty."""
    return _rim_of(item, behind=False) if width(item)[0] else 0


def _rendered(items: Sequence[Shape], widest: int) -> _Part:
    """Render as many pieces as fit into ``widest`` characters; the last may be cut."""
    part = _Part(b"", 0, 0.0, 0, whole=True)
    for item in items:
        most = width(item)[1]
        if part.most + most <= widest:
            part.expression += _expression(item)
            part.most += most
            part.bits += _rarity(item)
            part.taken += 1
            continue
        cut, size, bits = _cut(item, widest - part.most)
        part.expression += cut
        part.most += size
        part.bits += bits
        part.taken += 1
        part.whole = False
        break
    return part


def _cut(item: Shape, room: int) -> tuple[bytes, int, float]:
    """Return what a piece that is too wide begins with."""
    match item:
        case Repeat(inner, least, _) if least:
            _, most = width(inner)
            if most <= room:
                times = max(1, min(least, room // most))
                return _expression(Repeat(inner, times, times)), times * most, _rarity(inner) * times
            return _cut(inner, room)
        case Row(items):
            part = _rendered(items, room)
            return part.expression, part.most, part.bits
        case Choice(branches):
            cuts = [
                (_expression(b), width(b)[1], _rarity(b)) if width(b)[1] <= room else _cut(b, room)
                for b in branches
            ]
            if all(expression for expression, _, _ in cuts):
                joined_cuts = b"(?:" + b"|".join(expression for expression, _, _ in cuts) + b")"
                return joined_cuts, max(size for _, size, _ in cuts), _either(bits for _, _, bits in cuts)
            return b"", 0, 0.0
        case _:
            return b"", 0, 0.0


def _expression(shape: Shape) -> bytes:
    match shape:
        case Chars(found):
            return rendered(found.may)
        case Row(items):
            return b"".join(map(_expression, items))
        case Choice(branches):
            return b"(?:" + b"|".join(map(_expression, branches)) + b")"
        case Repeat(item, least, most):
            inner = _expression(item)
            times = b"{%d}" % least if least == most else b"{%d,%d}" % (least, most)
            return (inner if isinstance(item, Chars) else b"(?:" + inner + b")") + times
        case _:
            return b""


def _rarity(shape: Shape) -> float:
    """Return how rarely text matches, in bits: a rough guess, good enough to choose between parts."""
    match shape:
        case Chars(found):
            return _bits(found.may)
        case Row(items):
            return sum(map(_rarity, items))
        case Choice(branches):
            return _either(map(_rarity, branches))
        case Repeat(item, least, _):
            return _rarity(item) * least
        case _:
            return 0.0


def _either(bits: Iterable[float]) -> float:
    return -math.log2(min(1.0, sum(2.0**-each for each in bits)))


@lru_cache(maxsize=4096)
def _bits(mask: int) -> float:
    share = sum(_frequency(code) for code in members(mask & ~AT_EDGE))
    return -math.log2(min(1.0, max(share, 1e-6)))


def _frequency(code: int) -> float:
    letter = chr(code)
    if letter in _COMMON:
        return _COMMON[letter]
    if letter.isascii() and letter.isalnum():
        return 0.006
    return 0.003 if letter.isascii() else 0.0005
