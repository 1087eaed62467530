"""Split text into tokens, and describe each by hashed features of its letters and of the word lists it is in."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt

from app.engines.pii.names.spelling import lowered

ROWS = 1 << 16
GAZETTEER_KINDS = "flcosdw"
"""One letter per bit: first name, last name, city or country, company, company suffix, street, common word."""

MAX_WORD = 48
"""Characters of a word that count; the rest changes neither its features nor its cache entry."""

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_LETTER = rf"[^\W\d_{_CJK}]"
_MARKS = "[\u0300-\u036f]"
_RUNS = "|".join(rf"{re.escape(symbol)}{{1,64}}" for symbol in ".-=*#!?~+/<>")
# The alternatives: a plain word; digits; a symbol that is a token by itself; a run of one symbol; line breaks; a word
# with accents and inner apostrophes; a possessive; one CJK character; anything else. Each includes the blanks that
# follow, so that the joined tokens are the text. Frequent alternatives come first, for speed.
TOKEN = re.compile(
    rf"(?:[A-Za-z]{{1,48}}+(?![^\s!-&(-@\[-`{{-~])|\d{{1,48}}|[\",:;(){{}}\[\]@&%$^|`\\]|{_RUNS}|_{{1,48}}|\n{{1,64}}"
    rf"|{_LETTER}{{1,48}}(?:{_MARKS}{{1,8}}{_LETTER}{{0,48}}|['\u2019](?![sS](?!\w)){_LETTER}{{1,48}}){{0,16}}"
    rf"|['\u2019][sS](?!\w)|[{_CJK}]|[^\s]|[^\S\n])[^\S\n]{{0,64}}"
)

Rows = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.intp]

_YEAR_DIGITS = 4
_DIGITS = 9
_SHORTEST_GLUED = 6
_SHORTEST_STEM = 3
_CONTRACTED = frozenset({"t", "d", "m", "ll", "re", "ve"})
"""English ends behind an apostrophe, which no name takes: Don't, Will've."""

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPREAD = 0x9E3779B1
_STEP = 0x85EBCA6B
_MIXED = 4
_WHOLE = 4
_BITS_32 = 0xFFFFFFFF
_LETTERS_OF_GRAMS = 20
_GRAMS = (3, 4, 5)
_LENGTHS = 10
_BEFORE_LAST = np.array(_GRAMS) - 1
_GRAM_FACTOR, _GRAM_SPREAD = np.uint32(0x01000193), np.uint32(_SPREAD)
_COLUMNS = np.arange(_WHOLE)
_FACTORS = np.array((_STEP, 1, 1), np.uint64)
_SALTS = np.array((0, 7 * _STEP, 8 * _STEP), np.uint64)
_KINDS = tuple(
    "".join(kind for position, kind in enumerate(GAZETTEER_KINDS) if bits >> position & 1)
    for bits in range(1 << len(GAZETTEER_KINDS))
)


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """Map words to the lists they are in: by the CRC-32 of lower-case words, with one bit per list."""

    bits: Mapping[int, int]

    @classmethod
    def from_arrays(cls, keys: npt.NDArray[np.uint32], bits: npt.NDArray[np.uint8]) -> Self:
        """Return the lists stored in the weights."""
        return cls(dict(zip(keys.tolist(), bits.tolist(), strict=True)))

    def kinds(self, word: str) -> str:
        """Return the letters of `GAZETTEER_KINDS` for the lists that contain the lower-case word."""
        return _KINDS[self.bits.get(key_of(word), 0)]


class WordFeatures(NamedTuple):
    """The keys (0 for tokens that are not words) and embedding rows of several words.

    `whole` has two or more rows per word, `grams` and `listed` any number.
    """

    keys: npt.NDArray[np.uint32]
    whole: Rows
    whole_sizes: Sizes
    grams: Rows
    gram_sizes: Sizes
    listed: Rows
    listed_sizes: Sizes


def key_of(lower: str) -> int:
    """Return the key of a lower-case word in lists and tables."""
    return crc32(lower.encode("utf-8", "surrogatepass"))


def stem_of(word: str, lower: str) -> str:
    """Return what lists may hold of a word in small letters: without the end that an apostrophe sets off a name."""
    if word.isalpha():
        return lower
    stem, apostrophe, end = lower.replace("\u2019", "'").partition("'")
    long = apostrophe and len(stem) >= _SHORTEST_STEM and word[0].isupper()
    return stem if long and end not in _CONTRACTED else lower


def body(token: str) -> str:
    """Return the token without its trailing blanks; line breaks and a lone blank are bodies too."""
    stripped = token.rstrip()
    if stripped:
        return stripped
    return "\n" * token.count("\n") or " "


def normal_word(word: str) -> str:
    """Return the form of a token from which features are computed: `MAX_WORD` characters, accents composed."""
    word = word[:MAX_WORD]
    return word if word.isascii() else unicodedata.normalize("NFC", word)


def feature_word(word: str) -> str:
    """Return the representative of all words with the same features; of a number, only the first digits count."""
    word = normal_word(word)
    if not word[0].isdigit() or len(word) < _YEAR_DIGITS - 1:
        return word
    kept_digits = 2 if len(word) == _YEAR_DIGITS else 1
    return word[:kept_digits] + "0" * (min(len(word), _DIGITS) - kept_digits)


def features(words: Sequence[str], gazetteer: Gazetteer) -> WordFeatures:
    """Return the rows of normal words, in their order."""
    lettered = [place for place, word in enumerate(words) if word[0].isalpha()]
    lowers = [lowered(words[place]) for place in lettered]
    keys = np.zeros(len(words), np.uint32)
    keys[lettered] = [key_of(lower) for lower in lowers]
    stems = [key_of(stem_of(words[place], lower)) for place, lower in zip(lettered, lowers, strict=True)]
    outlines = [
        (words[place], lower, _case(words[place])) for place, lower in zip(lettered, lowers, strict=True)
    ]
    listed = [
        _listed(*each, bits, gazetteer) for each, bits in zip(outlines, _bits(stems, gazetteer), strict=True)
    ]
    listed_sizes = np.zeros(len(words), np.intp)
    listed_sizes[lettered] = list(map(len, listed))
    framed = [""] * len(words)
    for place, lower in zip(lettered, lowers, strict=True):
        framed[place] = f"^{lower[:_LETTERS_OF_GRAMS]}$"
    grams, gram_sizes = _grams(framed)
    whole, whole_sizes = _whole(words, lettered, outlines, keys[lettered])
    rows = np.fromiter(chain.from_iterable(listed), np.int64, int(listed_sizes.sum()))
    return WordFeatures(keys, whole, whole_sizes, grams, gram_sizes, rows, listed_sizes)


def _bits(keys: Sequence[int], gazetteer: Gazetteer) -> list[int]:
    get = gazetteer.bits.get
    return [get(key, 0) for key in keys]


def _whole(
    words: Sequence[str],
    lettered: list[int],
    outlines: Sequence[tuple[str, str, int]],
    keys: npt.NDArray[np.uint32],
) -> tuple[Rows, Sizes]:
    """Return the rows of whole words: for their letters, letters and case, outline, and first letter."""
    others = {
        place: _number_rows(word) if word[0].isdigit() else [_row(f"P{word[:3]}"), _row(f"p{word[0]}")]
        for place, word in enumerate(words)
        if not word[0].isalpha()
    }
    sizes = np.full(len(words), _WHOLE, np.intp)
    for place, rows in others.items():
        sizes[place] = len(rows)
    starts = np.cumsum(sizes) - sizes
    rows_of_words = np.empty(int(sizes.sum()), np.int64)
    numbers = [
        (
            case + 1,
            (case * 4 + _script(word, lower)) * 16 + min(len(word), _LENGTHS),
            (ord(lower[0]) << 3) + case,
        )
        for word, lower, case in outlines
    ]
    mixed = np.array(numbers, np.uint64).reshape(-1, 3)
    mixed *= _FACTORS
    mixed += _SALTS
    mixed[:, 0] += keys
    rows_of_letters = np.empty((len(lettered), _WHOLE), np.int64)
    rows_of_letters[:, 0] = keys & np.uint32(ROWS - 1)
    rows_of_letters[:, 1:] = _spread(mixed)
    rows_of_words[starts[lettered][:, None] + _COLUMNS] = rows_of_letters
    for place, rows in others.items():
        rows_of_words[starts[place] : starts[place] + len(rows)] = rows
    return rows_of_words, sizes


def _spread(numbers: npt.NDArray[np.uint64]) -> Rows:
    return ((numbers * np.uint64(_SPREAD) & np.uint64(_BITS_32)) >> np.uint64(16)).astype(np.int64)


def _script(word: str, lower: str) -> int:
    return 0 if word.isascii() else 1 if lower[0] < "\u0250" else 2


def _row(feature: str) -> int:
    return crc32(feature.encode("utf-8", "surrogatepass")) & (ROWS - 1)


def _mixed(key: int, salt: int) -> int:
    """Return the row for a number; the salt distinguishes kinds of features."""
    return ((key + salt * _STEP) * _SPREAD & _BITS_32) >> 16


def _case(word: str) -> int:
    """Return 0 for lower case, 1 for an initial capital, 2 for capitals, 3 for a single capital letter, 4 for mixed."""
    if word.islower():
        return 0
    if len(word) == 1:
        return 3
    if word.isupper():
        return 2
    return 1 if word[0].isupper() and word[1:].islower() else _MIXED


@lru_cache(maxsize=2_048)
def _listed_rows(bits: int, case: int) -> tuple[int, ...]:
    """Return the rows for a set of lists, as a whole and for each list."""
    alone = (_mixed(bit * 8 + case, 10) for bit in range(len(GAZETTEER_KINDS)) if bits >> bit & 1)
    return (_mixed(bits * 8 + case, 9), *alone)


def _listed(word: str, lower: str, case: int, bits: int, gazetteer: Gazetteer) -> Sequence[int]:
    rows = _listed_rows(bits, case)
    if len(word) < _SHORTEST_GLUED or (bits and case != _MIXED):
        return rows
    return [*rows, *_glued(word, lower, bits, case, gazetteer)]


def _glued(word: str, lower: str, bits: int, case: int, gazetteer: Gazetteer) -> list[int]:
    """Return the rows for the parts of a name written as one word, as in JaneSmith or janesmith."""
    if case == _MIXED:
        return [_row(f"C{gazetteer.kinds(piece.lower())}") for piece in _PIECE.findall(word)[:4]]
    if bits:
        return []
    kinds = "".join(
        f"{first}{rest}"
        for size in range(3, min(9, len(lower) - 2))
        if "f" in (first := gazetteer.kinds(lower[:size])) and (rest := gazetteer.kinds(lower[size:]))
    )
    return [_row(f"J{kinds[:6]}")] if kinds else []


def _number_rows(word: str) -> list[int]:
    size = min(len(word), _DIGITS)
    rows = [_row(f"D{size}"), _row(f"d{word[0]}{size}")]
    if len(word) == _YEAR_DIGITS:
        rows.append(_row(f"y{word[:2]}"))
    if len(word) < _YEAR_DIGITS - 1:
        rows.append(_row(f"L:{word}"))
    return rows


def _grams(framed: Sequence[str]) -> tuple[Rows, Sizes]:
    """Return the rows of all n-grams of three to five letters, word by word, computed for all words at once."""
    sizes = np.fromiter(map(len, framed), np.intp, len(framed))
    spelled = "".join((*framed, "\0" * max(_GRAMS))).encode("utf-32-le", "surrogatepass")
    padded = np.frombuffer(spelled, np.uint32)
    count = len(padded) - max(_GRAMS)
    left = np.repeat(np.cumsum(sizes), sizes) - np.arange(count)
    hashes = padded[:count]
    rows = np.empty((count, len(_GRAMS)), np.int64)
    for place in range(1, max(_GRAMS)):
        hashes = hashes * _GRAM_FACTOR
        hashes += padded[place : place + count]
        if place + 1 in _GRAMS:
            rows[:, place + 1 - _GRAMS[0]] = (hashes + np.uint32(place)) * _GRAM_SPREAD >> np.uint32(16)
    counts = np.maximum(sizes[:, None] - _BEFORE_LAST, 0).sum(axis=1)
    return rows[left[:, None] > _BEFORE_LAST], counts
