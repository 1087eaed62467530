"""Split text into tokens and word-pieces, with the features that the encoder's lower-case vocabulary loses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import crc32

from app.engines.pii.names.words import MAX_WORD, normal_word

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_LETTER = rf"[^\W\d_{_CJK}]"
_ACCENTS = "[\u0300-\u036f]"
# A word with accents and inner apostrophes; possessive; one CJK character; digits; line breaks; symbol runs.
# The weights were trained on these tokens: another pattern needs other weights.
TOKEN = re.compile(
    rf"{_LETTER}+(?:{_ACCENTS}+{_LETTER}*|['\u2019](?![sS](?!\w)){_LETTER}+)*"
    rf"|['\u2019][sS](?!\w)|[{_CJK}]|\d+|\n+|([^\w\s])\1{{0,63}}|_+|\w"
)
_MARKS = re.compile("[\u0300-\u036f'\u2019]")

FIRST, LAST, MASK = 101, 102, 103
LINE_BREAK = 1
"""An unused entry of the vocabulary; the encoder itself has none for line breaks."""
_UNKNOWN = 100
MOST_PIECES = 6
"""Word-pieces of a token that count; the first few suffice to classify a very long token."""

OUTLINES = ("newline", "number", "sign", "caseless", "lower", "Capital", "X", "UPPER", "mIxed", "MixEd")
CASELESS, LOWER, CAPITAL, LETTER, UPPER, INNER, OUTER = range(3, len(OUTLINES))
LISTS = 128
"""The number of possible sets of word lists with a word: one bit per list."""

_CACHE_WORDS = 16_384
_BLOCK = 1_024


class PieceToken(NamedTuple):
    """A token of a text: offsets, whether white space precedes it, and the network's input for it.

    The input is its word-pieces (at least one), its outline (an index of `OUTLINES`) and the word lists with it.
    """

    start: int
    end: int
    spaced: bool
    ids: tuple[int, ...]
    outline: int
    lists: int


Described = tuple[tuple[int, ...], int, int]


class Cutter:
    """Split texts, with a cache of recent words; a full cache is emptied between two blocks of tokens."""

    def __init__(self, tokenizer: Any, lists: Mapping[int, int]) -> None:
        self._tokenizer = tokenizer
        self.lists = lists
        self._cache: dict[str, Described] = {}

    def tokens(self, text: str) -> Iterator[PieceToken]:
        """Yield the tokens of ``text``."""
        before = 0
        block: list[tuple[int, int, bool]] = []
        for match in TOKEN.finditer(text):
            start, end = match.span()
            block.append((start, end, start > before))
            before = end
            if len(block) == _BLOCK:
                yield from self._described(text, block)
                block = []
        yield from self._described(text, block)

    def _described(self, text: str, block: Sequence[tuple[int, int, bool]]) -> Iterator[PieceToken]:
        words = [text[start : min(end, start + MAX_WORD)] for start, end, _ in block]
        if len(self._cache) > _CACHE_WORDS:
            self._cache.clear()
        if new := [word for word in dict.fromkeys(words) if word not in self._cache]:
            self._learn(new)
        for place, word in zip(block, words, strict=True):
            yield PieceToken(*place, *self._cache[word])

    def _learn(self, words: list[str]) -> None:
        plain = [normal_word(word).encode("utf-8", "replace").decode() for word in words]
        for word, normalized in zip(words, plain, strict=True):
            # Encode one at a time: a batch would start as many threads in each worker as there are cores.
            ids = self._tokenizer.encode(normalized, add_special_tokens=False).ids[:MOST_PIECES]
            placeholder = LINE_BREAK if normalized[0].isspace() else _UNKNOWN
            kinds = self.lists.get(crc32(normalized.lower().encode()), 0)
            self._cache[word] = tuple(ids) or (placeholder,), outline(normalized), kinds


def outline(word: str) -> int:
    """Return the outline of a token: which of its letters are capitals, or that it has no letters."""
    if not word[0].isalpha():
        return 0 if word[0].isspace() else 1 if word[0].isdigit() else 2
    letters = _MARKS.sub("", word)
    if letters.lower() == letters.upper():
        return CASELESS
    if letters.islower():
        return LOWER
    if letters.isupper():
        return LETTER if len(letters) == 1 else UPPER
    if letters[0].isupper():
        return CAPITAL if letters[1:].islower() else OUTER
    return INNER
