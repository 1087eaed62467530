"""The form of a payment card's number that is written in groups of digits, by ISO/IEC 7812."""

import re
from collections.abc import Sequence
from typing import Final

LENGTHS: Final = range(13, 20)
_GROUPS: Final = frozenset(
    {
        (4, 4, 4, 4),
        (4, 6, 5),
        (4, 4, 4, 3),
        (4, 4, 4, 2),
        (4, 6, 4),
        (8, 8),
        (4, 12),
        (12, 4),
        (4, 4, 8),
        (8, 4, 4),
        (4, 8, 4),
        (6, 10),
        (10, 6),
        (6, 6, 4),
    }
)
_EQUAL: Final = ({1}, {2})
"""Groups of one digit each, or of two."""
_BEGINS: Final = re.compile(r"4|5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)|3(?:4|7|[0689]|5)|6(?:011|4|5|2)")
_FEWEST_KINDS: Final = 2
"""The numbers that everybody tries first have two kinds of digits: 4111 1111 1111 1111."""


def is_card_number(digits: str, sizes: Sequence[int]) -> bool:
    """Return whether ASCII digits that stand in groups of these sizes are a card number with its check digit."""
    if len(digits) not in LENGTHS or not (tuple(sizes) in _GROUPS or {*sizes} in _EQUAL):
        return False
    return _BEGINS.match(digits) is not None and len(set(digits)) >= _FEWEST_KINDS and has_check_digit(digits)


def has_check_digit(digits: str) -> bool:
    """Return whether the last digit is the check digit of ISO/IEC 7812."""
    doubled = [int(digit) * 2 for digit in digits[-2::-2]]
    return (sum(value - 9 * (value > 9) for value in doubled) + sum(map(int, digits[::-2]))) % 10 == 0  # noqa: PLR2004
