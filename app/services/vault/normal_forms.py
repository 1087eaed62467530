"""Bring values into a form in which spellings of one value are equal: by it a search for variants finds them.

Too wide a form would find, and erase, the value of somebody else. So separators count, except in values that were
masked as phone or card numbers, where they never tell two numbers apart.
"""

import re
import unicodedata
from typing import Final

from app.engines.phone_spellings import phone_spellings

PHONE: Final = "PHONE"
CARD: Final = "CARD"
_LONGEST_NUMBER: Final = 64
"""Characters of a phone or card number with all its separators; what is longer is a text."""
_CARD_DIGITS: Final = range(12, 20)
_PHONE_DIGITS: Final = range(5, 21)
_PHONE = re.compile(
    r"\(?(\+?)([0-9\s().\-/]*?)(?:[ ,;]{0,2}(?:x|ext\.?|extension|#)[ :.]{0,2}([0-9]{1,6}))?", re.IGNORECASE
)
_CARD = re.compile(r"[0-9][0-9\s.\-]*")
_NO_DIGIT = re.compile(r"[^0-9]")
_ACCENT = re.compile("[\u0300-\u036f]")
_ALIKE = str.maketrans(
    {**dict.fromkeys("\u2019\u2018\u02bc", "'"), **dict.fromkeys("\u2010\u2012\u2013", "-")}
)
"""Apostrophes and hyphens as word processors write them."""


def stored_form(label: str, text: str) -> bytes:
    """Return the form of a value that was masked as ``label``."""
    number = None
    if label == PHONE:
        number = _phone_form(text)
    elif label == CARD:
        number = _card_form(text)
    return number or _text_form(text)


def searched_forms(text: str, label: str | None) -> set[bytes]:
    """Return the forms that variants of ``text`` may have; ``label`` None: whatever they were masked as."""
    forms = {_text_form(text)} if label is None else {stored_form(label, text)}
    if label in {None, CARD}:
        forms |= {form for form in (_card_form(text),) if form}
    phone = _phone_form(text) if label in {None, PHONE} else None
    if phone is not None:
        number, mark, extension = phone[1:].decode().partition("x")
        forms.add(phone)
        forms |= {f"p{spelling}{mark}{extension}".encode() for spelling in phone_spellings(number)}
    return forms


def _text_form(text: str) -> bytes:
    """Return ``text`` without differences of case, white space and accents."""
    if not text.isascii():
        text = _ACCENT.sub("", unicodedata.normalize("NFKD", text.translate(_ALIKE)))
    return b"t" + " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def _phone_form(text: str) -> bytes | None:
    """Return the digits of a phone number, after a plus sign if it has one, and those of its extension."""
    match = _PHONE.fullmatch(_plain(text))
    if match is None:
        return None
    plus, number, extension = match.groups()
    if plus:
        number = number.replace("(0)", "")
    digits = _NO_DIGIT.sub("", number)
    if len(digits) not in _PHONE_DIGITS:
        return None
    return f"p{plus}{digits}{'x' + extension if extension else ''}".encode()


def _card_form(text: str) -> bytes | None:
    plain = _plain(text)
    digits = _NO_DIGIT.sub("", plain)
    return f"d{digits}".encode() if _CARD.fullmatch(plain) and len(digits) in _CARD_DIGITS else None


def _plain(text: str) -> str:
    """Return a short text with ASCII digits, else an empty one."""
    if len(text) > _LONGEST_NUMBER:
        return ""
    if not text.isascii():
        folded = unicodedata.normalize("NFKD", text.translate(_ALIKE))
        text = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in folded)
    return text.strip()
