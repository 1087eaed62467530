"""Cut text into tokens, and describe each by hashed features of its letters and of the word lists that hold it."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from zlib import crc32

import numpy as np
import numpy.typing as npt

ROWS = 1 << 16
GAZETTEER_KINDS = "flcosdw"
"""A letter a bit: first name, last name, city or country, company, company suffix, street, common word."""

MAX_WORD = 48
"""Characters of a word that count; what follows changes neither its features nor the cache."""

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_LETTER = rf"[^\W\d_{_CJK}]"
_MARKS = "[\u0300-\u036f]"
# A word with accents and inner apostrophes; possessive; one CJK character; digits; line breaks; symbol runs.
TOKEN = re.compile(
    rf"{_LETTER}+(?:{_MARKS}+{_LETTER}*|['\u2019](?![sS](?!\w)){_LETTER}+)*"
    rf"|['\u2019][sS](?!\w)|[{_CJK}]|\d+|\n+|([^\w\s])\1{{0,63}}|_+|\w"
)
_YEAR_DIGITS = 4
_SHORTEST_GLUED = 6
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


_KINDS = tuple(
    "".join(kind for position, kind in enumerate(GAZETTEER_KINDS) if bits >> position & 1)
    for bits in range(1 << len(GAZETTEER_KINDS))
)


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """Answer which word lists hold a word: by the CRC-32 of lower-case words, one bit a list."""

    bits: Mapping[int, int]

    @classmethod
    def from_arrays(cls, keys: npt.NDArray[np.uint32], bits: npt.NDArray[np.uint8]) -> Self:
        """Return the lists that the weights hold."""
        return cls(dict(zip(keys.tolist(), bits.tolist(), strict=True)))

    def kinds(self, word: str) -> str:
        """Return the letters of `GAZETTEER_KINDS` whose list holds the lower-case word."""
        return _KINDS[self.bits.get(crc32(word.encode("utf-8", "surrogatepass")), 0)]


def shape(word: str) -> str:
    """Return the outline of a word: capitals, small letters and other characters, long runs shortened."""
    outline = "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1{2,}", r"\1\1+", outline)


def word_features(word: str, gazetteer: Gazetteer) -> tuple[list[str], list[str]]:
    """Return the features of a token: of its surface, the two of the whole word first, and of the lists."""
    if word.isdigit():
        return _number_features(word), []
    if not word[0].isalpha():
        return [f"P{word[:3]}", f"p{word[0]}"], []
    lower = word.lower()
    framed = f"^{lower}$"
    case = "U" if word[0].isupper() else "l"
    surface = [f"L:{lower}", f"W:{word[:20]}", f"S:{shape(word)}", f"1:{lower[0]}{case}"]
    surface += [f"<{lower[:size]}" for size in (2, 3, 4)] + [f">{lower[-size:]}" for size in (2, 3, 4)]
    surface += [f"3{framed[i : i + 3]}" for i in range(min(len(framed) - 2, 10))]
    surface += [f"4{framed[i : i + 4]}" for i in range(min(len(framed) - 3, 9))]
    kinds = gazetteer.kinds(lower)
    listed = [*(f"G{kind}{case}" for kind in kinds), f"GG{kinds}{case}"]
    return surface, listed + _glued_features(word, kinds, gazetteer)


def _glued_features(word: str, kinds: str, gazetteer: Gazetteer) -> list[str]:
    """Return what the parts of a name written as one word say, as in JaneSmith or janesmith."""
    if len(word) < _SHORTEST_GLUED:
        return []
    if not word.islower() and not word[1:].islower() and not word.isupper():
        pieces = [piece.lower() for piece in _PIECE.findall(word)[:4]]
        return [f"C{gazetteer.kinds(piece)}" for piece in pieces]
    if kinds:
        return []
    lower = word.lower()
    found = "".join(
        f"{first}{rest}"
        for size in range(3, min(9, len(lower) - 2))
        if "f" in (first := gazetteer.kinds(lower[:size])) and (rest := gazetteer.kinds(lower[size:]))
    )
    return [f"J{found[:6]}"] if found else []


def _number_features(word: str) -> list[str]:
    size = min(len(word), 9)
    features = [f"D{size}", f"d{word[0]}{size}"]
    if len(word) == _YEAR_DIGITS:
        features.append(f"y{word[:2]}")
    if len(word) < _YEAR_DIGITS - 1:
        features.append(f"L:{word}")
    return features


def hashed(features: Sequence[str]) -> list[int]:
    """Return the embedding rows of features."""
    return [crc32(feature.encode("utf-8", "surrogatepass")) & (ROWS - 1) for feature in features]


def normal_word(word: str) -> str:
    """Return the form of a token that features are made of: `MAX_WORD` characters, accents composed."""
    word = word[:MAX_WORD]
    return word if word.isascii() else unicodedata.normalize("NFC", word)
