"""Say in which ways one phone number is dialled and written: with its country's code, and as in its country."""

import re
from collections.abc import Iterator
from typing import Final

from app.engines.phone_regions import REGIONS

_ABROAD: Final = ("00", "011")
"""What is dialled before the code of another country, in most countries and in North America."""
_FEWEST_WITH_CODE: Final = 10
"""A number with its country's code but no plus sign before it; a shorter one is rather a national number."""
_NO_DIGIT = re.compile(r"\D")


def phone_spellings(number: str) -> set[str]:
    """Return the digits, some with a plus sign, under which the number that is written ``number`` may be stored.

    ``number`` is digits, with a plus sign before them or not. Without a country's code, it may be a number of each
    region that the detector knows and in which it is valid.
    """
    spellings: set[str] = set()
    for code, national, written in _numbers(number):
        with_code = f"{code}{national}"
        spellings |= {f"+{with_code}", written, *(f"{prefix}{with_code}" for prefix in _ABROAD)}
        if len(with_code) >= _FEWEST_WITH_CODE:
            spellings.add(with_code)
    return spellings


def _numbers(number: str) -> Iterator[tuple[int, str, str]]:
    """Yield the code of the country, the number behind it, and the number as it is dialled in the country."""
    import phonenumbers  # noqa: PLC0415 - its tables load when a number is searched for, not at the start

    def parsed(text: str, region: str | None) -> tuple[int, str, str] | None:
        try:
            read = phonenumbers.parse(text, region)
        except phonenumbers.NumberParseException:
            return None
        valid = phonenumbers.is_valid_number(read) if region else phonenumbers.is_possible_number(read)
        if not valid or read.country_code is None:
            return None
        national = phonenumbers.format_number(read, phonenumbers.PhoneNumberFormat.NATIONAL)
        return (
            read.country_code,
            phonenumbers.national_significant_number(read),
            _NO_DIGIT.sub("", national),
        )

    with_code = [number] if number.startswith("+") else []
    with_code += [f"+{number.removeprefix(prefix)}" for prefix in _ABROAD if number.startswith(prefix)]
    for text in with_code:
        if (read := parsed(text, None)) is not None:
            yield read
    if number.startswith("+"):
        return
    for region in REGIONS:
        read = parsed(number, region)
        # Where a country dials a zero first, a number without it is one of another country.
        if read is not None and (number == read[2] or number == f"{read[0]}{read[1]}"):
            yield read
