"""Extract the parts of an image near its digits: patterns whose matches all contain a digit are searched only there."""

from bisect import bisect_left
from collections.abc import Callable
from re import _parser  # type: ignore[attr-defined]  # the parser of the standard library has no public name
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.engines.pii.scan.image import DIGIT

REACHES: Final = (40, 136, 1024)
"""How many bytes on either side of a digit are searched."""

_MOST: Final = 0.6
"""The share of an image above which searching all of it is cheaper."""

_CODES: Final = frozenset((*b"0123456789", DIGIT))
_IS_DIGIT: Final = np.isin(np.arange(256), list(_CODES))

Regions = tuple[bytes, Callable[[list[int]], list[int]] | None]
"""The joined parts, and a function that maps ends in them to ends in the image; None: this is the whole image."""


def digits_of(image: bytes) -> npt.NDArray[np.intp]:
    """Return the places of the digits in ``image``."""
    return _IS_DIGIT[np.frombuffer(image, np.uint8)].nonzero()[0]


def beside_digits(image: bytes, places: npt.NDArray[np.intp], reach: int) -> Regions:
    """Return the parts of ``image`` that lie within ``reach`` of its digits, which are at ``places``."""
    if not len(places):
        return b"", None if not image else (lambda ends: ends)
    if reach + 1 > len(image) * _MOST:
        return image, None  # already one digit makes it that much
    breaks = (places[1:] - places[:-1] > 2 * reach).nonzero()[0]
    lows = np.maximum(places[np.concatenate(([0], breaks + 1))] - reach, 0)
    highs = np.minimum(places[np.concatenate((breaks, [len(places) - 1]))] + reach + 1, len(image))
    sizes = highs - lows
    if sizes.sum() > len(image) * _MOST:
        return image, None
    sums = np.cumsum(sizes)
    borders, shifts = sums.tolist(), (lows - (sums - sizes)).tolist()

    def moved(ends: list[int]) -> list[int]:
        # An end is the offset after the last byte, so an end on a border belongs to the part before.
        return [end + shifts[bisect_left(borders, end)] for end in ends]

    return b"".join(image[low:high] for low, high in zip(lows.tolist(), highs.tolist(), strict=True)), moved


def reach_of(expression: bytes, around: int) -> int:
    """Return the smallest of `REACHES` that covers every relevant hit of ``expression``; 0 if none does.

    ``around``: a hit is relevant only with a digit that close to its end; 0: every hit is relevant.
    """
    tree = _parser.parse(expression.decode("latin-1"))
    widest = tree.getwidth()[1]
    needed = min([widest] * _needs_digit(tree) + [around + widest] * bool(around), default=0)
    return next((reach for reach in REACHES if 0 < needed <= reach), 0)


def _needs_digit(tree: Any) -> bool:
    return any(_is_digit(str(kind), argument) for kind, argument in tree)


def _is_digit(kind: str, argument: Any) -> bool:
    match kind:
        case "LITERAL":
            return argument in _CODES
        case "IN":
            return all(_only_digits(str(member), value) for member, value in argument)
        case "BRANCH":
            return all(map(_needs_digit, argument[1]))
        case "SUBPATTERN":
            return _needs_digit(argument[3])
        case "MAX_REPEAT":
            return bool(argument[0]) and _needs_digit(argument[2])
        case _:
            return False


def _only_digits(kind: str, value: Any) -> bool:
    if kind == "RANGE":
        return all(code in _CODES for code in range(value[0], value[1] + 1))
    return kind == "LITERAL" and value in _CODES
