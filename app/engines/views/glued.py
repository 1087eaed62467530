"""Part values from what they are glued to: letters of another script, and underscores.

Patterns say by look-arounds where a word ends, and to these a letter of any script and ``_`` continue the word.
In Japanese, Chinese and Thai no blank stands between words, and particles follow numbers directly in many languages. So
each pattern also sees a view with a blank where the script changes: one notion of a word's end for all of them.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import regex  # type: ignore[import-untyped]

from app.engines.views.codes import codes_of, strangers
from app.engines.views.confusables import LIKE_DIGITS, LOOKALIKES, folded
from app.engines.views.mapping import Substitution, TextView, respelled

GLUED: Final = "glued"

_OF_OTHER_SCRIPT: Final = regex.compile(r"(?V1)[\w--\p{Latin}--\p{Inherited}--_]")
_LATIN: Final = regex.compile(r"(?V1)[\p{Latin}&&\p{L}]")
_SEPARATED: Final = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}ー]")
"""Letters that are words of their own to the name tagger, so that names beside them are found without a blank."""

_OPENS: Final = frozenset("+-(;#")
"""Signs with which a value begins, if a digit follows."""

_NONE, _PLAIN, _FOREIGN, _SIGN, _DIGIT = range(5)
_BESIDE_LINE: Final = 20
"""Characters beside an underscore that decide whether there may be a value."""
_OF_VALUE: Final = re.compile(r"(?:[A-Za-z0-9.:/+\-()@# °']|\"(?=\d))*+")
_LEAST_DIGITS: Final = 2
_SHORT: Final = 3
_WITHOUT_DIGITS: Final = re.compile(r"(?:[A-Z0-9]{8}|[A-Z0-9]{11})(?![A-Za-z0-9])|[A-Za-z0-9]{20}")
"""The code of a bank, and the beginning or end of a wallet, may have no digit."""


def _ascii_kinds() -> npt.NDArray[np.uint8]:
    kinds = np.zeros(128, np.uint8)
    for code in range(128):
        character = chr(code)
        if character.isdigit():
            kinds[code] = _DIGIT
        elif character.isalpha():
            kinds[code] = _PLAIN
        elif character in _OPENS:
            kinds[code] = _SIGN
    return kinds


_ASCII: Final = _ascii_kinds()


def glued_view(text: str, below: TextView | None = None, *, disguised: bool = False) -> TextView | None:
    """Return ``text`` with a blank wherever a value may be glued to something; None if there is no such place.

    ``disguised``: only beside letters that the plain view reads as something else, as it is made before this one.
    """
    places = [] if text.isascii() else _changes_of_script(text, disguised=disguised)
    if "_" in text and not disguised:
        places = sorted({*places, *_beside_underscores(text)})
    if not places:
        return None
    return respelled(text, (Substitution(place, place, " ", GLUED) for place in places), below)


def parts_names(view: TextView) -> bool:
    """Return whether names may be found in a view of `glued_view` that are not found in the text below it."""
    around = "".join(view.text[start - 1 : end + 1] for start, end, _ in view.changed)
    return not around.isascii() and any(
        _is_foreign(character) and not _SEPARATED.match(character) for character in set(around)
    )


@lru_cache(maxsize=16_384)
def _is_foreign(character: str) -> bool:
    """Return whether a character is part of a word in another script than Latin."""
    return not character.isascii() and _OF_OTHER_SCRIPT.match(character) is not None


@lru_cache(maxsize=16_384)
def _is_read_otherwise(character: str) -> bool:
    return character in LOOKALIKES or character in LIKE_DIGITS or folded(character) != character


def _changes_of_script(text: str, *, disguised: bool) -> list[int]:
    """Return the offsets between a Latin letter, a digit or an opening sign and a letter of another script."""
    codes = codes_of(text)
    present = strangers(codes)
    foreign = [
        ord(character)
        for character in present
        if _is_foreign(character) and (not disguised or _is_read_otherwise(character))
    ]
    if not foreign:
        return []
    table = np.zeros(max(128, int(codes.max()) + 1), np.uint8)
    table[:128] = _ASCII
    table[[ord(character) for character in present if _LATIN.match(character)]] = _PLAIN
    table[foreign] = _FOREIGN
    kinds = table.take(codes)
    first, second = kinds[:-1], kinds[1:]
    plain = (kinds == _PLAIN) | (kinds == _DIGIT)
    begins = plain.copy()
    begins[:-1] |= (first == _SIGN) & (second == _DIGIT)
    borders = (plain[:-1] & (second == _FOREIGN)) | ((first == _FOREIGN) & begins[1:])
    places: list[int] = (np.flatnonzero(borders) + 1).tolist()
    return places


def _beside_underscores(text: str) -> Iterator[int]:
    """Yield the offsets between an underscore and what may be a value: two digits are near, or it is a bank's code."""
    place = text.find("_")
    while place >= 0:
        before, after = text[max(0, place - _BESIDE_LINE) : place], text[place + 1 : place + 1 + _BESIDE_LINE]
        if before[-1:].isalnum() and _may_be_value(before[::-1]):
            yield place
        if (after[:1].isalnum() or after[:1] in _OPENS) and _may_be_value(after):
            yield place + 1
        place = text.find("_", place + 1)


def _may_be_value(beside: str) -> bool:
    """Return whether digits begin at once, or nearly so: names that programs give to things seldom have any."""
    run = _OF_VALUE.match(beside)
    written = run.group() if run else ""
    first = written.split(" ", 1)[0]
    begins = any(map(str.isdigit, first)) or (len(first) <= _SHORT and first.isupper())
    many = sum(map(str.isdigit, written)) >= _LEAST_DIGITS
    return (begins and many) or _WITHOUT_DIGITS.match(beside) is not None
