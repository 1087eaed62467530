"""Recognize national phone numbers by the language of the text around them, where no word for phone is near.

"40 35 31 97" may be anything in English. In a Danish text it is a Danish number: the plan knows it, and its digits
stand in the groups in which people there write them. Unbroken digits count only where the plan's mobile numbers begin
as no other number does.
"""

import re
from functools import lru_cache
from typing import Any, Final

import phonenumbers

from app.engines.pii.names.languages import leaning_of

REGIONS_OF: Final[dict[str, tuple[str, ...]]] = {
    "ar": ("EG", "SA", "AE", "MA", "DZ", "IQ", "JO"),
    "cs": ("CZ", "SK"),
    "da": ("DK", "NO"),
    "de": ("DE", "AT", "CH"),
    "el": ("GR", "CY"),
    "es": ("ES", "MX", "CO", "AR", "PE", "CL"),
    "fi": ("FI",),
    "fr": ("FR", "BE", "CH"),
    "he": ("IL",),
    "hi": ("IN",),
    "hu": ("HU",),
    "id": ("ID",),
    "it": ("IT", "CH"),
    "ja": ("JP",),
    "ko": ("KR",),
    "nl": ("NL", "BE"),
    "no": ("NO", "DK"),
    "pl": ("PL",),
    "pt": ("PT", "BR"),
    "ro": ("RO", "MD"),
    "ru": ("RU", "KZ", "BY"),
    "sv": ("SE",),
    "th": ("TH",),
    "tr": ("TR",),
    "uk": ("UA",),
    "vi": ("VN",),
    "zh": ("CN", "TW", "HK"),
}
"""The countries whose numbers stand in a text of a language, by its code."""

_GROUPINGS: Final[dict[str, tuple[tuple[int, ...], ...]]] = {
    "CZ": ((3, 3, 3),),
    "DK": ((2, 2, 2, 2), (4, 4), (2, 3, 3)),
    "ES": ((3, 3, 3), (3, 2, 2, 2), (2, 3, 2, 2)),
    "FI": ((3, 3, 4), (3, 4, 3), (3, 3, 2, 2)),
    "GR": ((3, 3, 4), (3, 7), (2, 4, 4)),
    "IT": ((3, 3, 4), (3, 7), (3, 3, 2, 2)),
    "NO": ((3, 2, 3), (2, 2, 2, 2)),
    "PL": ((3, 3, 3), (2, 3, 2, 2)),
    "PT": ((3, 3, 3), (2, 3, 2, 2)),
    "RO": ((4, 3, 3), (3, 3, 4)),
    "RU": ((1, 3, 3, 2, 2), (3, 3, 2, 2)),
    "CN": ((3, 4, 4),),
    "MX": ((3, 3, 4), (2, 4, 4)),
}
"""How digits are grouped besides the form that the number plans give."""

_UNBROKEN: Final = re.compile(r"0[1-9]\d{7,10}|1[3-9]\d{9}|89\d{9}|69\d{8}")
"""Mobile numbers without a gap: behind the prefix of long distance, of China, of Russia, of Greece."""

_BLANK: Final = re.compile(r"[ .\-/()\u00a0]+")
_FEWEST, _MOST = 8, 12
_BLOCK, _AROUND = 512, 400
"""The language is seen once for each block of a text, from its characters and as many around it."""

_last: dict[tuple[int, int, int], str] = {}
_MOBILE: Final = (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE_OR_MOBILE)


def is_local(text: str, start: int, end: int) -> bool:
    """Return whether the digits ``text[start:end]``, grouped or not, are a phone number where the text is at home."""
    number = text[start:end]
    groups = tuple(len(group) for group in _BLANK.split(number) if group)
    if not _FEWEST <= sum(groups) <= _MOST or (len(groups) == 1 and not _UNBROKEN.fullmatch(number)):
        return False
    regions = REGIONS_OF.get(_language(text, start // _BLOCK * _BLOCK), ())
    return any(_is_number(number, groups, region) for region in regions)


def _language(text: str, block: int) -> str:
    """Return the code of the language around a block; that of the last block is remembered, by its hash alone."""
    key = (hash(text), len(text), block)
    code = _last.get(key)
    if code is None:
        code = leaning_of(text[max(0, block - _AROUND) : block + _BLOCK + _AROUND]) or ""
        _last.clear()
        _last[key] = code
    return code


@lru_cache(maxsize=4_096)
def _is_number(number: str, groups: tuple[int, ...], region: str) -> bool:
    """Return whether ``number``, whose digits stand in ``groups``, is one of ``region`` as people write it there."""
    try:
        parsed: Any = phonenumbers.parse(number, region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number_for_region(parsed, region):
        return False
    if len(groups) == 1:
        return phonenumbers.number_type(parsed) in _MOBILE
    written = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.NATIONAL)
    return groups == _sizes(written) or groups in _GROUPINGS.get(region, ())


def _sizes(written: str) -> tuple[int, ...]:
    return tuple(len(group) for group in _BLANK.split(written) if group)
