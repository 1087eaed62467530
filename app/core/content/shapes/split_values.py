"""Join values whose characters or groups are elements of a list of their own: ``{"ssn": [4, 1, 2, …]}``."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from app.core.content.shapes.card_numbers import is_card_number

LONGEST: Final = 512
"""Elements of the longest list that may be one value."""
_FEWEST: Final = 3
_LONGEST_ELEMENT: Final = 6
_SINGLES: Final = 6
"""A row of fewer single characters says nothing without a name."""
_SIGNS: Final = re.compile(r"[0-9@]")
"""Letters alone are words, and a row of them may as well be anything."""
_SECURITY: Final = (3, 2, 4)
_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{9,30}")
_TWO: Final = 2


def split_value(elements: Sequence[str], cue: str) -> str:
    """Return the value that the elements of a list form together; empty if they form none.

    ``cue`` are the words that say what the list is; empty if nothing does.
    """
    if not _FEWEST <= len(elements) <= LONGEST or not all(
        0 < len(element) <= _LONGEST_ELEMENT for element in elements
    ):
        return ""
    sizes = tuple(map(len, elements))
    whole = "".join(elements)
    singles = len(whole) == len(elements)
    is_card = whole.isascii() and whole.isdigit() and is_card_number(whole, sizes)
    if is_card or (singles and cue) or (sizes == _SECURITY and cue and whole.isdigit()):
        return whole
    if singles and len(whole) >= _SINGLES and _SIGNS.search(whole) and not whole.isdigit():
        return whole
    return whole if _IBAN.fullmatch(whole) and all(size >= _TWO for size in sizes) else ""


def written_elements(values: Iterable[Any]) -> list[str]:
    """Return the elements of a list as texts; none if one is no string and no whole number."""
    elements: list[str] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, str | int):
            return []
        elements.append(str(value))
    return elements


def lists_of(pointers: Sequence[str]) -> list[range]:
    """Return the positions of the elements of each list whose elements follow each other, by their pointers."""
    lists: list[range] = []
    place = 0
    for around, members in groupby(pointers, key=_list_around):
        count = sum(1 for _ in members)
        if around is not None and _FEWEST <= count <= LONGEST:
            lists.append(range(place, place + count))
        place += count
    return lists


def _list_around(pointer: str) -> str | None:
    around, _, own = pointer.rpartition("/")
    return around if own.isdecimal() else None
