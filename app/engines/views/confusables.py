# ruff: noqa: RUF001 - this is the place where look-alikes are told apart
"""Characters that stand for plain ones: the meaning of each taken alone, and the letters that it resembles.

Digits, styles, widths, blanks and dashes follow from the properties of Unicode; letters of other scripts that look like
Latin ones are listed by their shape.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

_STYLES = ("<wide>", "<narrow>", "<font>", "<small>", "<circle>", "<super>", "<sub>", "<square>")
_WRITTEN_TOGETHER = ("LATIN SMALL LIGATURE", "LATIN CAPITAL LIGATURE", "ROMAN NUMERAL", "SMALL ROMAN NUMERAL")
_LETTER_OF: Final = re.compile(
    r"(?:(?:NEGATIVE )?(?:CIRCLED|SQUARED)|REGIONAL INDICATOR SYMBOL|PARENTHESIZED|CROSSED NEGATIVE SQUARED)"
    r"(?: LATIN)?(?: CAPITAL| SMALL)?(?: LETTER)? ([A-Z])"
)
_SMALL_CAPITAL: Final = re.compile(r"LATIN (?:LETTER|LETTER SMALL) (?:SMALL )?CAPITAL ([A-Z])")
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\uffa0\u2800")
_PUNCTUATION: Final = {
    **dict.fromkeys("‐‑‒–—―−⁃﹣－˗➖⸺⸻〜～ー─━‾¯", "-"),
    **dict.fromkeys("。．｡․∙⋅·•・⸱۔", "."),
    **dict.fromkeys("⁄∕⧸／╱", "/"),
    **dict.fromkeys("：꞉∶ː﹕", ":"),
    **dict.fromkeys("＠﹫", "@"),
    **dict.fromkeys("＿﹍﹎﹏‿", "_"),
    **dict.fromkeys("،﹐，‚", ","),
    **dict.fromkeys("＋﹢➕", "+"),
}

_SHAPES: Final = {
    "A": "АΑᎪꓮᗅ", "B": "ВΒᏴꓐᗷ", "C": "СϹᏟꓚ", "D": "Ꭰꓓᗞ", "E": "ЕΕᎬꓰ", "F": "Ϝꓝᖴ", "G": "ԌᏀꓖ", "H": "НΗᎻꓧ", "I": "ІΙӀꓲ",
    "J": "ЈͿᎫꓙ", "K": "КΚᏦꓗ", "L": "ԼᏞꓡ", "M": "МΜᎷꓟ", "N": "ΝꓠՈ", "O": "ОΟՕꓳ", "P": "РΡᏢꓑ", "Q": "Ԛ",
    "R": "ᎡᏒꓣ", "S": "ЅՏᏚꓢ", "T": "ТΤᎢꓔ", "U": "Սꓴ", "V": "ѴᏙꓦ", "W": "ԜᎳᏔꓪ", "X": "ХΧꓫ", "Y": "ҮУΥϒꓬ", "Z": "ΖᏃꓜ",
    "a": "аαɑӓ", "b": "ЬьƄƅᏏ", "c": "сϲᴄ", "d": "ԁᏧɗ", "e": "еёεҽ", "f": "ſẝք", "g": "ɡցᶃ", "h": "һհℎ",
    "i": "іїιıɩɪ", "j": "јϳյ", "k": "кκ", "l": "ӏⅼǀ", "m": "мⅿ", "n": "ոηпռ", "o": "оοօσ०ס", "p": "рρϱ", "q": "ԛզգ",
    "r": "гᴦ", "s": "ѕꜱ", "t": "тτ", "u": "υսʋ", "v": "νѵᴠ", "w": "ѡωաԝ", "x": "хχ", "y": "уγүყʏ", "z": "ᴢʐ",
}  # fmt: skip
_EXACT: Final = frozenset(
    "АВЕЅІЈКМНОРСТХУԌԚԜаеорсхуѕіјһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧονϲϳՕՏօսհցոյᎪᏴᏟᎠᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃᎥᎽꓮꓐꓚꓓꓰꓖꓧꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ"
)
"""Those that nobody can distinguish from a Latin letter, so that a word made only of them is a disguised one."""

LOOKALIKES: Final[dict[str, str]] = {
    shape: plain for plain, shapes in _SHAPES.items() for shape in shapes if not shape.isascii()
}
LIKE_DIGITS: Final[dict[str, str]] = {
    **dict.fromkeys("ОоΟοσՕօഠဝᴏס", "0"),
    **dict.fromkeys("ІӀӏΙɩıⅼǀ", "1"),
    **dict.fromkeys("ƧᒿꙄ", "2"),
    **dict.fromkeys("ЗзӠӡƷʒᴈε", "3"),
    **dict.fromkeys("ЧᏎ", "4"),
    **dict.fromkeys("ƼꞨЅѕ", "5"),
    **dict.fromkeys("бᏮ", "6"),
    **dict.fromkeys("ᒣ𐒇", "7"),
    **dict.fromkeys("ȢȣВ", "8"),
    **dict.fromkeys("Ⳋ", "9"),
}
EXACT: Final = _EXACT & LOOKALIKES.keys()
_STROKES: Final = dict(zip("øØłŁđĐħĦŧŦɨƗðȷıɑɡ", "oOlLdDhHtTiIdjiag", strict=True))


@lru_cache(maxsize=16_384)
def folded(character: str) -> str:
    """Return what a character stands for when taken alone: nothing, itself, or plain characters."""
    if character in _PUNCTUATION:
        return _PUNCTUATION[character]
    if is_invisible(character):
        return ""
    by_category = {"Zs": " ", "Pd": "-"}.get(unicodedata.category(character))
    if by_category is not None:
        return by_category
    digit = unicodedata.digit(character, None)
    if digit is not None:
        return str(digit)
    if "DIGIT" in unicodedata.name(character, "") and unicodedata.numeric(character, -1) == 0:
        return "0"
    return _letter(character)


def _letter(character: str) -> str:
    name = unicodedata.name(character, "")
    if match := _LETTER_OF.fullmatch(name):
        return match[1] if "SMALL" not in name else match[1].lower()
    if match := _SMALL_CAPITAL.fullmatch(name):
        return match[1].lower()
    if unicodedata.decomposition(character).startswith(_STYLES) or name.startswith(_WRITTEN_TOGETHER):
        plain = unicodedata.normalize("NFKC", character)
        return plain if plain.isascii() else character
    return character


@lru_cache(maxsize=16_384)
def is_invisible(character: str) -> bool:
    """Return whether a character is invisible: joiners, directions, selectors, fillers, tags."""
    selects_variant = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    # Private use and what is not assigned show nothing, or a box, in most fonts.
    return selects_variant or character in _FILLERS or unicodedata.category(character) in ("Cf", "Co", "Cn")


@lru_cache(maxsize=16_384)
def is_mark(character: str) -> bool:
    """Return whether a character is drawn onto the one before it."""
    return unicodedata.category(character) in ("Mn", "Me")


@lru_cache(maxsize=16_384)
def is_latin(character: str) -> bool:
    """Return whether a letter is Latin, including accented ones."""
    return character.isascii() or "LATIN" in unicodedata.name(character, "")


@lru_cache(maxsize=16_384)
def unaccented(character: str) -> str:
    """Return the ASCII letter below the accents and strokes of a Latin one, else the character itself."""
    bare = unicodedata.normalize("NFD", character)[:1]
    return bare if bare.isascii() else _STROKES.get(character, character)
