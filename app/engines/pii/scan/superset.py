"""Derive from a pattern an expression that hits in every match, and where around a hit the match may lie.

A pattern of limited width is its own expression, without conditions that only narrow it. Of any other pattern, the part
that is rarest in ordinary text is used; the text before and after that part is described only by its alphabet.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from app.engines.pii.scan.bytesets import EVERY, SPACES, exactly, mask_of, rendered, small
from app.engines.pii.scan.rims import borders as borders_of
from app.engines.pii.scan.rims import framed, rim
from app.engines.pii.scan.shapes import (
    UNLIMITED,
    Chars,
    Choice,
    NotDerivableError,
    PatternReading,
    Repeat,
    Shape,
    alphabet,
    effort,
    positions,
    width,
)
from app.engines.pii.scan.shapes import Sequence as Row
from app.engines.pii.scan.spelling import LONGEST, RequiredLiterals, words_of
from app.engines.pii.scan.spelling import rarity_of as _bits

WIDEST: Final = 128
"""Longest match of an expression: more would make the automaton large, and no value needs more."""

_WIDEST_FILLING = 160
"""Widest piece of a beginning that is read whole: what stands between a cue and its value is narrower, runs are not."""

_LEAST_BITS = 0.3
_BEGIN_BITS = 7.0
"""How rare, in bits, the words at the start of a match must be; trying a match at a hit takes a microsecond."""

_SHORT = 3
"""The length up to which words are often part of other words."""

_LEAST_BEGIN_BITS = 3.0
"""The same if any other expression would need a search far before and after its hits."""

_ENOUGH_BITS = 10.0
_RARE_BITS = 14.0
_MORE_BITS = 8.0
"""Words less rare than `_RARE_BITS` are searched with the text that follows, if that adds this many bits."""

_POSITIONS = 96
"""The size of an automaton that is cheap to build; a larger expression is cut to it."""

_TRIES = 200_000


class Probe(NamedTuple):
    """Expressions, one of which is in each match, and the text to search around a hit.

    A match begins at most ``back`` characters before the end of a hit, or earlier if only bytes of ``left`` lie
    between; it ends at most ``fore`` characters after, or later if only bytes of ``right`` lie between. The real
    pattern has to read ``ahead`` more characters. ``tame``: it cannot take long on so short a text.
    ``begins``: a match begins where the hit of a plain word begins, so that no search is needed.
    ``borders``: the pairs of bytes before and after the start of a match; none: any bytes.
    ``opening``: an expression for the beginning of each match in a lower-case image.
    """

    expressions: tuple[bytes, ...]
    back: int
    fore: int
    left: int
    right: int
    ahead: int
    tame: bool
    begins: bool = False
    borders: tuple[tuple[int, int], ...] = ()
    opening: str = ""


@dataclass(slots=True)
class _Part:
    """Adjacent pieces of a pattern, rendered; ``whole``: none was cut or left out."""

    expression: bytes
    most: int
    bits: float
    taken: int
    whole: bool


def probe_of(pattern: str, flags: int, widest: int = WIDEST) -> Probe:
    """Return the probe of a pattern; raise NotDerivableError if no useful one exists."""
    reading = PatternReading(pattern, flags)
    before, items, after = framed(reading.shape)
    least, most = width(Row(tuple(items)))
    if not least:
        raise NotDerivableError("matches nothing at all")
    ahead = reading.ahead + 2
    if max(ahead, reading.behind) >= UNLIMITED:
        raise NotDerivableError("look-around without limit")
    tame = effort(reading.shape) * min(most, UNLIMITED) <= _TRIES
    words, borders = words_of(items), () if reading.led else borders_of(reading.shape)
    begins = not reading.led
    if words is not None and words.bits >= _BEGIN_BITS:
        begun = _rendered(items, min(widest, WIDEST)) if words.bits < _RARE_BITS else None
        if begun is None or begun.bits < words.bits + _MORE_BITS:
            return _of_words(items, 0, words, ahead, tame=tame, begins=begins, borders=borders)
    start, words = _rarest_words(items)
    whole = _rendered(items, min(widest, WIDEST))
    rarer = words is None or (bool(start) and whole.bits > words.bits + 1)
    if words is not None and not rarer and words.bits >= (_RARE_BITS if not start else _ENOUGH_BITS):
        return _of_words(items, start, words, ahead, tame=tame, begins=begins, borders=borders)
    kept, lead, trail = _without_options(items, before=before != EVERY, after=after != EVERY)
    first, part = _rarest(kept, min(widest, WIDEST))
    first_words = None if lead or trail else words_of(kept)
    if first_words is not None and first_words.bits >= _LEAST_BEGIN_BITS and _is_wide(kept, first, part):
        return _of_words(items, 0, first_words, ahead, tame=tame, begins=begins, borders=borders)
    if words is not None and words.bits > part.bits + 1:
        return _of_words(items, start, words, ahead, tame=tame, begins=begins, borders=borders)
    if part.bits < _LEAST_BITS:
        raise NotDerivableError("matches too much")
    expression, extra = part.expression, 0
    if first == 0 and before != EVERY:
        expression = rendered(before) + expression
    if part.whole and first + part.taken == len(kept) and after != EVERY:
        expression, extra = expression + rendered(after), 1
    left, leading = _outside(kept[:first])
    right, trailing = _outside(kept[first + part.taken - (not part.whole) :])
    back, fore = part.most + leading + extra + lead, trailing + trail
    return Probe((expression,), back, fore, left, right, ahead, tame)


def _of_words(
    items: list[Shape],
    start: int,
    words: RequiredLiterals,
    ahead: int,
    *,
    tame: bool,
    begins: bool,
    borders: tuple[tuple[int, int], ...],
) -> Probe:
    begins = begins and not start
    if not begins:
        borders = ()
    left, leading = _outside(items[:start])
    right, trailing = _outside(items[start:])
    back = max(map(len, words.spelled)) + leading
    last = _last_character(items[start - 1]) if start else 0
    preceded = rendered(last) if last else b""
    expressions = []
    for word, spelled in zip(sorted(words.spelled), words.expressions(), strict=True):
        if len(word) > _SHORT and last.bit_count() != 1:
            expressions.append(spelled)
        else:
            expressions.append(_between(word, borders) if borders else preceded + spelled)
    opening = _opening(items).decode("latin-1") if begins else ""
    return Probe(tuple(expressions), back, trailing, left, right, ahead, tame, begins, borders, opening)


def _opening(items: Iterable[Shape]) -> bytes:
    """Return an expression for the first characters of each match; a pattern with many words is slow to fail."""
    least, expression = 0, b""
    for item in items:
        if least >= LONGEST or positions(item) >= UNLIMITED:
            break
        if width(item)[1] > _WIDEST_FILLING:
            # Its first characters are enough: a long run would be read to its end at every hit inside it.
            if isinstance(item, Repeat) and item.least and width(item.item)[1] * item.least <= WIDEST:
                expression += _expression(Repeat(item.item, item.least, item.least), small)
            break
        expression += _expression(item, small)
        least += width(item)[0]
    return expression


def _between(word: bytes, borders: tuple[tuple[int, int], ...]) -> bytes:
    """Return the expression of a short word with the character before it, since it is often part of another word."""
    first = word[:1]
    begun = b"|".join(
        exactly(before) + exactly(chosen)
        for before, after in borders
        if before and (chosen := after & mask_of(*first, *first.upper()))
    )
    return b"(?-i:%b)%b" % (begun or rb"[\x00][\x00]", b"".join(exactly(1 << byte) for byte in word[1:]))


def _without_options(items: list[Shape], *, before: bool, after: bool) -> tuple[list[Shape], int, int]:
    """Return a row without optional pieces at its ends, and how long these can be, so that patterns share a hit.

    ``before`` and ``after``: the character there is constrained, so that end of the row stays as it is.
    """
    lead = trail = 0
    first, last = 0, len(items)
    while not before and first < last - 1 and _is_option(items[first]):
        lead += width(items[first])[1]
        first += 1
    while not after and last > first + 1 and _is_option(items[last - 1]):
        trail += width(items[last - 1])[1]
        last -= 1
    kept = items[first:last]
    match kept[-1]:
        case Repeat(item, least, most) if not after and 0 < least < most <= WIDEST:
            trail += width(item)[1] * (most - least)
            kept = [*kept[:-1], Repeat(item, least, least)]
    return kept, lead, trail


def _is_option(item: Shape) -> bool:
    least, most = width(item)
    return not least and most <= WIDEST


def _is_wide(items: list[Shape], first: int, part: "_Part") -> bool:
    """Return whether a match may extend far before or after a part."""
    last = first + part.taken - (not part.whole)
    sides = (_outside(items[:first]), _outside(items[last:]))
    return any(unlimited or size > WIDEST for unlimited, size in sides)


def _rarest_words(items: list[Shape]) -> tuple[int, RequiredLiterals | None]:
    """Return the rarest words of which every match contains one, with the index of the piece where they begin."""
    best: tuple[int, RequiredLiterals | None] = (0, None)
    for start in range(len(items)):
        words = words_of(items[start:])
        if words is not None and start and (last := _last_character(items[start - 1])).bit_count() == 1:
            words = replace(words, bits=words.bits + _bits(last))
        if words is not None and (best[1] is None or words.bits > best[1].bits + 1):
            best = start, words
    return best


def _outside(items: Sequence[Shape]) -> tuple[int, int]:
    """Return the alphabet of unlimited pieces outside the expression, and the maximum length of all others."""
    union = size = 0
    for item in items:
        for branch in item.branches if isinstance(item, Choice) else (item,):
            if _is_run(branch):
                union |= alphabet(branch)
            else:
                size += width(branch)[1]
    between = [item for item in items if not _is_run(item)] if union else []
    return union | alphabet(Row(tuple(between))), size


def _is_run(shape: Shape) -> bool:
    """Return whether its alphabet describes a piece: it is very wide, or wide and without blanks, as a host is."""
    most = width(shape)[1]
    return most > WIDEST * 4 or (most > WIDEST and not alphabet(shape) & SPACES)


def _rarest(items: list[Shape], widest: int) -> tuple[int, _Part]:
    """Return the part that is rarest in text, with the index of its first piece."""
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
        # One character before the part rules out most false hits, e.g. an "@" that is not in an address.
        part.expression = rendered(last) + part.expression
        part.most += 1
        part.bits += _bits(last)
    return start, part


def _last_character(item: Shape) -> int:
    """Return the bytes that a piece must end with; 0 if it may be empty."""
    return rim([item], behind=False) if width(item)[0] else 0


def _rendered(items: Sequence[Shape], widest: int) -> _Part:
    """Render as many pieces as fit into ``widest`` characters; the last piece may be cut."""
    part = _Part(b"", 0, 0.0, 0, whole=True)
    spent = 0
    for place, item in enumerate(items):
        most = width(item)[1]
        size = positions(item)
        if part.most + most <= widest and spent + size <= _POSITIONS:
            spent += size
            part.expression += _expression(item)
            part.most += most
            part.bits += _rarity(item)
            part.taken += 1
            continue
        cut, rest = _cut(item, widest - part.most - 1, _POSITIONS - spent - 1)
        part.expression += cut.expression
        part.most += cut.most
        part.bits += cut.bits
        part.taken += 1
        part.whole = False
        # One character of the omitted rest rules out most false hits, e.g. a dot that is not in a host name.
        if rest is not None and part.most and (first := rim([*rest, *items[place + 1 :]], behind=True)):
            part.expression += rendered(first)
            part.most += 1
        break
    return part


def _cut(item: Shape, room: int, spare: int) -> tuple[_Part, list[Shape] | None]:
    """Return the beginning of a piece that is too wide or too large, and the rest; None: the rest is not known."""
    match item:
        case Repeat(inner, least, most) if least:
            wide, size = width(inner)[1], positions(inner)
            if wide <= room and size <= spare:
                times = max(1, min(least, room // wide, spare // size))
                begun = _Part(
                    _expression(Repeat(inner, times, times)),
                    times * wide,
                    _rarity(inner) * times,
                    1,
                    whole=False,
                )
                return begun, [Repeat(inner, max(0, least - times), most - times)]
            return _cut(inner, room, spare)[0], None
        case Row(items) if positions(item) <= spare:
            return _rendered(items, room), None
        case _:
            return _Part(b"", 0, 0.0, 0, whole=False), [item]


def _expression(shape: Shape, render: Callable[[int], bytes] = rendered) -> bytes:
    match shape:
        case Chars(byte_set):
            return render(byte_set.may)
        case Row(items):
            return b"".join(_expression(item, render) for item in items)
        case Choice(branches):
            return b"(?:" + b"|".join(_expression(branch, render) for branch in branches) + b")"
        case Repeat(item, least, most):
            inner = _expression(item, render)
            times = b"{%d}" % least if least == most else b"{%d,%d}" % (least, most)
            return (inner if isinstance(item, Chars) else b"(?:" + inner + b")") + times
        case _:
            return b""


def _rarity(shape: Shape) -> float:
    """Return how rarely text matches, in bits; a rough estimate that suffices to choose between parts."""
    match shape:
        case Chars(byte_set):
            return _bits(byte_set.may)
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
