"""Decode characters that are written as their numbers: ``U+0034``, ``0x34,0x35``, ``34 35 33``, ``52, 53``.

A number alone means something else, so each form counts only as a row of several, apart from those with a sign of
their own.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from app.engines.views import gates
from app.engines.views.controls import control_places
from app.engines.views.encoded import is_text
from app.engines.views.mapping import Substitution

_NAMED: Final = re.compile(r"<?[Uu]\+(00[0-9A-Fa-f]{2}|(?<![A-Za-z0-9+/][Uu]\+)[1-9A-Fa-f]?[0-9A-Fa-f]{4})>?")
_NAMED_GAP: Final = re.compile(r"[ ,;]{1,3}(?=<?[Uu]\+[0-9A-Fa-f]{4})")
_BARE_U: Final = re.compile(r"u[0-9A-Fa-f]{4}(?:u[0-9A-Fa-f]{4}){2,}")
_BARE_X: Final = re.compile(r"x[0-9A-Fa-f]{2}(?:x[0-9A-Fa-f]{2}){4,}+")
_BYTE: Final = re.compile(
    r"0[xX][0-9A-Fa-f]{2}(?![0-9A-Fa-f])(?:[\s,;:]{1,4}0[xX][0-9A-Fa-f]{2}(?![0-9A-Fa-f])){3,}"
)
_JOINED_BYTES: Final = re.compile(r"0[xX][0-9A-Fa-f]{2}(?:0[xX][0-9A-Fa-f]{2}){3,}")
_PAIRS: Final = re.compile(
    r"[0-9A-Fa-f]{2}(?<![0-9A-Za-z]..)([ :\-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){6,}+(?![0-9A-Za-z])"
)
_CODES: Final = re.compile(
    r"[0-9](?<![\w.,-].)[0-9]{1,2}+([, ]|,\s{1,4}+)(?:[0-9]{2,3}+\1(?=[0-9]{2,3}(?![\w.]))){6,}+[0-9]{2,3}+"
)
_STYLED: Final = re.compile(r"\\(?<!\\\\)\\*+[0-9A-Fa-f]{1,6}(?:[ ]?\\+[0-9A-Fa-f]{1,6}){2,}[ ]?")
_STYLED_SIGN: Final = re.compile(r"\\(?<=\w\\)(?:0{0,4}(?:40|2[eEdD]) ?(?=\w)|0000[2-7][0-9A-Fa-f])")
_HEX_PAIR: Final = re.compile(r"(?:0[xX]|x)?([0-9A-Fa-f]{2})[\s,;:\-]*")
_STYLE_UNIT: Final = re.compile(r"\\+([0-9A-Fa-f]{1,6})[ ]?")
_NUMBER: Final = re.compile(r"([0-9]{2,3})[,\s]*")
_OCTAL: Final = 3
_DIGITS: Final = 6
"""As many digits in a row are a number."""
_ASCII: Final = range(32, 127)
_LAST_BYTE: Final = 255
_SURROGATES: Final = range(0xD800, 0xE000)


def codepoints(text: str) -> Iterator[Substitution]:
    """Yield the characters that ``text`` writes as numbers, each with its place."""
    if ("U+" in text or "u+" in text) and gates.opens(text, gates.NAMED):
        yield from _named(text)
    if "u00" in text:
        for run in _BARE_U.finditer(text):
            places = range(run.start(), run.end(), 5)
            yield from _characters(
                [(place, place + 5, int(text[place + 1 : place + 5], 16)) for place in places]
            )
    if "x" in text or "X" in text:
        if "0x" in text or "0X" in text:
            for pattern in (_BYTE, _JOINED_BYTES):
                yield from chain.from_iterable(_rows(text, pattern, _HEX_PAIR, 16))
        yield from chain.from_iterable(_rows(text, _BARE_X, _HEX_PAIR, 16))
    if "\\" in text:
        yield from _styled(text)
    decimal = list(_rows(text, _CODES, _NUMBER, 10)) if gates.opens(text, gates.CODES) else []
    # Read as hexadecimal, the codes of digits are letters: of two readings of a row, the one with digits comes first.
    pairs = _rows(text, _PAIRS, _HEX_PAIR, 16) if gates.opens(text, gates.PAIRS) else ()
    yield from chain.from_iterable(chain((row for row in decimal if _is_number(row)), pairs, decimal))


def _is_number(row: list[Substitution]) -> bool:
    return sum(character.plain.isdigit() for character in row) >= _DIGITS


def _named(text: str) -> Iterator[Substitution]:
    for unit in _NAMED.finditer(text):
        gap = _NAMED_GAP.match(text, unit.end())
        yield from _characters([(unit.start(), gap.end() if gap else unit.end(), int(unit[1], 16))], "U+")


def _rows(text: str, row: re.Pattern[str], unit: re.Pattern[str], base: int) -> Iterator[list[Substitution]]:
    """Yield the characters of each row of numbers, where all of them are printable ASCII."""
    for run in row.finditer(text):
        units = [
            (match.start(), match.end(), int(match[1], base)) for match in unit.finditer(text, *run.span())
        ]
        if not units:
            continue
        start, end, number = units[-1]
        # The separator behind the row is no part of it.
        last = start + len(text[start:end].rstrip(" ,;:-\t\r\n"))
        units[-1] = start, last, number
        if all(number in _ASCII or number in (9, 10, 13) for _, _, number in units):
            yield list(_characters(units))
        elif row_of_text := _in_utf8(units):
            yield row_of_text


def _in_utf8(units: list[tuple[int, int, int]]) -> list[Substitution]:
    """Return the characters of a row of bytes that is a text in UTF-8, each with its place; none of other rows."""
    if any(number > _LAST_BYTE for _, _, number in units):
        return []
    try:
        plain = bytes(number for _, _, number in units).decode()
    except UnicodeDecodeError:
        return []
    return _placed(plain, units, [len(character.encode()) for character in plain]) if is_text(plain) else []


def _placed(
    plain: str, units: list[tuple[int, int, int]], sizes: Iterable[int], way: str = "numbers"
) -> list[Substitution]:
    """Return the characters of ``plain``, each made of as many units as ``sizes`` says; controls become nothing."""
    controls = control_places(plain)
    characters: list[Substitution] = []
    first = 0
    for place, (character, size) in enumerate(zip(plain, sizes, strict=True)):
        start, end = units[first][0], units[first + size - 1][1]
        characters.append(Substitution(start, end, "" if place in controls else character, way))
        first += size
    return characters


def _styled(text: str) -> Iterator[Substitution]:
    """Yield the characters of escapes as style sheets write them: one to six digits, and a blank that ends them."""
    for run in _STYLED.finditer(text):
        units = [(match.start(), match.end(), match[1]) for match in _STYLE_UNIT.finditer(text, *run.span())]
        # The blank behind the last one ends it, and may as well be one of the text.
        start, end, number = units[-1]
        units[-1] = (start, start + len(text[start:end].rstrip()), number)
        # Three digits each: octal numbers, which programs write so.
        if all(len(number) == _OCTAL for _, _, number in units):
            continue
        numbers = [(start, end, int(number, 16)) for start, end, number in units]
        if all(number in _ASCII for _, _, number in numbers):
            yield from _characters(numbers, "css")
        elif all(number not in _SURROGATES and number <= sys.maxunicode for _, _, number in numbers):
            plain = "".join(chr(number) for _, _, number in numbers)
            # In code, names behind backslashes are hexadecimal, too: ``\dead\beef``.
            if is_text(plain) and 2 * sum(map(str.isascii, unicodedata.normalize("NFKC", plain))) >= len(
                plain
            ):
                yield from _placed(plain, numbers, [1] * len(numbers), "css")
    for sign in _STYLED_SIGN.finditer(text):
        number = int(sign.group()[1:].strip(), 16)
        yield from _characters([(*sign.span(), number)], "css")


def _characters(units: list[tuple[int, int, int]], way: str = "numbers") -> Iterator[Substitution]:
    for start, end, number in units:
        if number in _ASCII or 0xA0 <= number < 0xD800 or 0xE000 <= number < 0x110000:  # noqa: PLR2004 - Unicode
            yield Substitution(start, end, chr(number), way)
