"""Split text of any script into the words by which it is looked up.

Scripts without spaces between words are cut into overlapping pieces, and marks on letters are dropped. Words of other
alphabets than the Latin one are truncated besides, which is the stemmer that knows no language: forms of a word differ
at their ends. What is stored and what is asked must be split alike: after a change here ``VERSION`` must grow, so that
stored texts are indexed anew.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Final

VERSION: Final = 2
"""The version of these rules; documents that were indexed by other ones are indexed again in the background."""

_WORD: Final = re.compile(r"[^\W_]+")
_BETWEEN: Final = {code: " " for code in range(128) if not chr(code).isalnum()}
"""Separators of ASCII words: replacing them by blanks and splitting takes a quarter of the time of the pattern."""

_HAN: Final = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA: Final = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_HANGUL: Final = "\u1100-\u11ff\uac00-\ud7a3"
_THAI_TO_KHMER: Final = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
_RUN: Final = re.compile(
    f"(?P<pairs>[{_HAN}{_KANA}{_HANGUL}]+)|(?P<triples>[{_THAI_TO_KHMER}]+)"
    f"|[^{_HAN}{_KANA}{_HANGUL}{_THAI_TO_KHMER}]+"
)
_IN_PIECES: Final = re.compile(f"[{_HAN}{_KANA}{_HANGUL}{_THAI_TO_KHMER}]")
_SINGLE: Final = re.compile(f"[{_HAN}]")
_UNSPACED: Final = re.compile(f"[{_HAN}{_KANA}{_THAI_TO_KHMER}]")
_CHARACTERS_OF_A_WORD: Final = 2

_GREEK_TO_GEORGIAN: Final = "\u0370-\u058f\u10a0-\u10ff"
_HEBREW_TO_SINHALA: Final = "\u05d0-\u0dff"
_TRUNCATED: Final = {"vowels": 5, "consonants": 4}
"""The letters that are kept of a word; fewer where vowels are marks, or are not written."""
_INFLECTED: Final = re.compile(
    f"(?!\\D*\\d)(?:(?P<vowels>[{_GREEK_TO_GEORGIAN}]{{5,}})|(?P<consonants>[{_HEBREW_TO_SINHALA}]{{4,}}))"
)
_ARABIC_PARTICLES: Final = re.compile(
    "^(?:\u0648?(?:[\u0628\u0641\u0643]?\u0627\u0644|\u0644\u0644)|\u0648(?=\\w{4}))(?=\\w{3})"
)
"""The article, and "and", "with", "so" and "like" before it, which Arabic writes as the beginning of a word."""

_ACCENT: Final = re.compile("[\u0300-\u036f]+")
_NO_LETTERS: Final = re.compile(r"[^\w\s\x00-\u02ff\u2000-\u206f\u3000-\u303f\u3099\u309a]+")
"""What may be a mark on a letter, besides accents; marks that voice a kana stay, for they make another letter of it."""
_IN_PARTS: Final = re.compile("[\u1100-\u11ff\u3099\u309a]")
"""Letters of Hangul, and marks of kana, that a decomposed text has apart."""


def search_words(text: str, *, asked: bool = False) -> list[str]:
    """Return the words of ``text`` in lower case and without accents, in order, with repetitions.

    Han, kana and Hangul become pairs of characters, Thai, Lao, Khmer and Burmese triples. Text that is ``asked`` for
    is cut into the longest pieces and whole words alone; stored text has each Han character as well, since it may be a
    whole question, and after a word its truncated form.
    """
    bare = plain_text(text)
    if bare.isascii():
        return spaced_words(bare)
    words: list[str] = []
    for word in _WORD.findall(bare):
        if word.isascii():
            words.append(word)
        else:
            words += _forms(word, asked=asked)
    return words


@lru_cache(maxsize=65_536)
def truncated(word: str) -> str:
    """Return what the forms of a plain word have in common in most languages of its alphabet: its first letters.

    It is the word itself in Latin letters, where it is short, and where it is not of letters alone.
    """
    if word.isascii():
        return word
    inflected = _INFLECTED.fullmatch(word) if len(word) > min(_TRUNCATED.values()) else None
    if inflected is None:
        return word
    return _ARABIC_PARTICLES.sub("", word)[: _TRUNCATED[str(inflected.lastgroup)]]


def plain_text(text: str) -> str:
    """Return ``text`` in lower case and without accents and other marks."""
    lowered = text.lower()
    return lowered if lowered.isascii() else _without_marks(lowered)


def has_pieces(plain: str) -> bool:
    """Return whether any of a plain text is looked up by pieces."""
    return not plain.isascii() and _IN_PIECES.search(plain) is not None


def spaced_words(plain: str) -> list[str]:
    """Return those words of a plain text that are not looked up by pieces, in order, with repetitions."""
    if plain.isascii():
        return plain.translate(_BETWEEN).split()
    return _WORD.findall(_IN_PIECES.sub(" ", plain))


def search_text(text: str) -> str:
    """Return ``text`` as a database's own parser should see it: with the pieces of words in place of the words."""
    if text.isascii():
        return text
    bare = plain_text(text)
    return bare if bare.isascii() else _WORD.sub(_spaced, bare)


def words_beyond_ascii(text: str) -> str:
    """Return those words of ``text``, joined by spaces, that are not of ASCII letters and digits alone."""
    if text.isascii():
        return ""
    return " ".join(word for word in search_words(text) if not word.isascii())


def count_words(*texts: str) -> int:
    """Return the total length of ``texts`` in words, the measure for comparing lengths.

    Words are what stands between spaces; without spaces, two characters count as one.
    """
    return sum(
        len(text.split()) + (0 if text.isascii() else len(_UNSPACED.findall(text)) // _CHARACTERS_OF_A_WORD)
        for text in texts
    )


def _forms(word: str, *, asked: bool) -> list[str]:
    """Return by what a word beyond ASCII is looked up: its pieces, or itself and, stored, its truncated form."""
    if _IN_PIECES.search(word) is not None:
        return _pieces(word, asked=asked)
    short = word if asked else truncated(word)
    return [word] if short == word else [word, short]


def _pieces(word: str, *, asked: bool) -> list[str]:
    pieces: list[str] = []
    for run in _RUN.finditer(word):
        characters = run[0]
        size = 2 if run.lastgroup == "pairs" else 3
        if run.lastgroup is None:
            pieces += _forms(characters, asked=asked)
            continue
        pieces += [characters[at : at + size] for at in range(max(1, len(characters) - size + 1))]
        if run.lastgroup == "pairs" and len(characters) > 1 and not asked:
            pieces += _SINGLE.findall(characters)
    return pieces


def _spaced(word: re.Match[str]) -> str:
    return word[0] if word[0].isascii() else f" {' '.join(_forms(word[0], asked=False))} "


def _without_marks(lowered: str) -> str:
    bare = _ACCENT.sub("", unicodedata.normalize("NFKD", lowered))
    bare = _NO_LETTERS.sub(_without, bare)
    return unicodedata.normalize("NFC", bare) if _IN_PARTS.search(bare) else bare


def _without(signs: re.Match[str]) -> str:
    return "".join(sign for sign in signs[0] if not unicodedata.category(sign).startswith("M"))
