"""Published check algorithms that many countries share. All take compact upper-case text."""

import calendar
import re
from collections.abc import Sequence
from itertools import cycle

_SEPARATORS = re.compile(r"[\s./()+\-_:'\u2019\u2010-\u2015]")
_DIHEDRAL = (
    *("0123456789", "1234067895", "2340178956", "3401289567", "4012395678"),
    *("5987604321", "6598710432", "7659821043", "8765932104", "9876543210"),
)
_PERMUTED = (
    *("0123456789", "1576283094", "5803796142", "8916043527"),
    *("9453126870", "4286573901", "2793806415", "7046913258"),
)
_MONTHS = 12
_CENTURY = 100


def compact(text: str) -> str:
    """Return ``text`` in upper case without the separators that people write into numbers."""
    return _SEPARATORS.sub("", text).upper()


def numbers(text: str) -> list[int]:
    """Return the value of each character; letters are 10 for A to 35 for Z, as on travel documents."""
    return [int(character, 36) for character in text]


def weighted(text: str, weights: Sequence[int]) -> int:
    """Return the sum of the digits times their weights, which repeat if there are fewer weights."""
    return sum(value * weight for value, weight in zip(numbers(text), cycle(weights), strict=False))


def is_luhn(text: str) -> bool:
    """Return whether the last digit is a valid Luhn check digit (ISO/IEC 7812)."""
    doubled = sum(sum(divmod(2 * int(digit), 10)) for digit in text[-2::-2])
    return (doubled + sum(map(int, text[-1::-2]))) % 10 == 0


def is_verhoeff(text: str) -> bool:
    """Return whether the last digit is a valid Verhoeff check digit."""
    state = 0
    for place, digit in enumerate(reversed(text)):
        state = int(_DIHEDRAL[state][int(_PERMUTED[place % 8][int(digit)])])
    return state == 0


def is_mod_11_10(text: str) -> bool:
    """Return whether the last digit is a valid check digit of ISO 7064, mod 11,10."""
    product = 10
    for digit in text[:-1]:
        product = (((int(digit) + product) % 10 or 10) * 2) % 11
    return (product + int(text[-1])) % 10 == 1


def is_mod_37_36(text: str) -> bool:
    """Return whether the last character is valid under the Luhn variant in base 36 (GSTIN)."""
    total = sum(sum(divmod(value * (1 + place % 2), 36)) for place, value in enumerate(numbers(text[:-1])))
    return (36 - total % 36) % 36 == int(text[-1], 36)


def is_mrz(text: str) -> bool:
    """Return whether the last digit is the check digit of ICAO 9303 for the characters before it; ``<`` counts as 0."""
    return text[-1].isdigit() and weighted(text[:-1].replace("<", "0"), (7, 3, 1)) % 10 == int(text[-1])


def is_date(year: int, month: int, day: int) -> bool:
    """Return whether the date exists; a ``year`` below 100 may mean any century."""
    if not 1 <= month <= _MONTHS or day < 1:
        return False
    if year < _CENTURY:
        year += 2000
    return day <= calendar.monthrange(year, month)[1]


def is_day_first(text: str) -> bool:
    """Return whether ``text`` begins with a date as DDMMYY."""
    return is_date(int(text[4:6]), int(text[2:4]), int(text[:2]))


def is_year_first(text: str) -> bool:
    """Return whether ``text`` begins with a date as YYMMDD."""
    return is_date(int(text[:2]), int(text[2:4]), int(text[4:6]))


def is_uniform(text: str) -> bool:
    """Return whether all characters are the same; such a number passes many checks but is never issued."""
    return len(set(text)) == 1
