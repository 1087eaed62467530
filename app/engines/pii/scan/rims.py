"""Analyze the rims of a pattern: how matches begin and end, and what its anchors require of adjacent characters."""

from collections.abc import Iterable, Sequence
from typing import Final

from app.engines.pii.scan.bytesets import EVERY, WORD, mask_of
from app.engines.pii.scan.image import DIGIT
from app.engines.pii.scan.shapes import Beside, Boundary, Chars, Choice, Repeat, Shape, width
from app.engines.pii.scan.shapes import Sequence as Row

_SURE_WORD: Final = WORD.must | mask_of(DIGIT)
"""Every character that an engine regards as a digit is also part of a word to it."""


def framed(shape: Shape) -> tuple[int, list[Shape], int]:
    """Return the bytes that may precede a match, its pieces, and the bytes that may follow it."""
    items = list(shape.items) if isinstance(shape, Row) else [shape]
    before = after = EVERY
    first, last = 0, len(items)
    while first < last and isinstance(items[first], Beside | Boundary):
        before &= side(items[first], items[first + 1 :], behind=True)
        first += 1
    while last > first and isinstance(items[last - 1], Beside | Boundary):
        after &= side(items[last - 1], items[first : last - 1][::-1], behind=False)
        last -= 1
    return before, [item for item in items[first:last] if width(item)[1]], after


def borders(shape: Shape) -> tuple[tuple[int, int], ...]:
    """Return the pairs of bytes between which a match begins; none if nothing is known about them."""
    items = list(shape.items) if isinstance(shape, Row) else [shape]
    before, after = EVERY, EVERY
    for place, item in enumerate(items):
        if isinstance(item, Choice) and width(item)[1] == 0:
            pairs = [borders(branch) for branch in item.branches]
            if not all(pairs):
                continue
            return tuple((low & before, high & after) for branch in pairs for low, high in branch)
        if not isinstance(item, Beside | Boundary):
            break
        if isinstance(item, Beside) and not item.behind:
            after &= item.may
        else:
            before &= side(item, items[place + 1 :], behind=True)
    return ((before, after),) if (before, after) != (EVERY, EVERY) else ()


def side(piece: Shape, inner: Sequence[Shape], *, behind: bool) -> int:
    """Return the bytes that an anchor at the rim of a pattern allows outside."""
    if isinstance(piece, Beside):
        return piece.may if piece.behind == behind else EVERY
    ends = rim(inner, behind=behind)
    if ends and not ends & ~_SURE_WORD:
        return EVERY & ~WORD.must
    if ends and not ends & WORD.may:
        return WORD.may
    return EVERY


def rim(items: Iterable[Shape], *, behind: bool) -> int:
    """Return the bytes with which a row of pieces can begin, or end if it is in reverse order; 0: not known."""
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
        case Chars(byte_set):
            return byte_set.may
        case Repeat(inner):
            return _rim_of(inner, behind=behind)
        case Row(items):
            return rim(items if behind else items[::-1], behind=behind)
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
