"""Evidence, read once for many claims: its sentences, what occurs in them, and which are nearest to a claim."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from app.engines.grounding.words import NEGATIONS, STOP_WORDS, sentences_of, words_of

Pair = tuple[str, str]
Measured = tuple[int, tuple[float, ...]]
"""The number of words of a sentence, or of a part of a long one, and its features."""

WHOLE_WORDS: Final = 120
"""Evidence up to this many words is used whole; of longer evidence, each sentence of a claim gets the nearest parts."""

LONGEST_PART: Final = 60
"""Most words of one part: a longer sentence is cut, so that text without full stops costs no more than other text."""

_NEAREST: Final = 3
_PLACES: Final = 64
"""Most places kept for one word (the last ones), which bounds the work for texts that repeat themselves."""

_PREFIX: Final = 4


def content_of(stems: Sequence[str]) -> list[str]:
    """Return the content words: those that are not stop words."""
    return [stem for stem in stems if stem not in STOP_WORDS]


def prefix(word: str) -> str | None:
    """Return the beginning that identifies words of one family; None for short words."""
    return word[:_PREFIX] if len(word) >= _PREFIX else None


class EvidencePart:
    """What occurs in a part of evidence; pairs are computed on use, as many parts need only words."""

    def __init__(self, stems: Sequence[str]) -> None:
        self.stems = stems
        self.words = frozenset(stems)

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """Return the pairs of neighbours."""
        return frozenset(pairwise(self.stems))


@dataclass(frozen=True, slots=True)
class Support:
    """The parts of the evidence that a claim is compared with, together."""

    words: frozenset[str]
    prefixes: frozenset[str]
    negates: bool

    @classmethod
    def of(cls, parts: Sequence[EvidencePart]) -> "Support":
        """Join ``parts``."""
        words = frozenset().union(*(part.words for part in parts))
        return cls(
            words,
            frozenset(word[:_PREFIX] for word in words if len(word) >= _PREFIX),
            not NEGATIONS.isdisjoint(words),
        )


class Evidence:
    """The texts that should support a claim."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.measured: dict[str, list[Measured]] = {}
        self.asks = False
        self._parts: list[EvidencePart] = []
        for text in texts:
            self.asks = self.asks or "?" in text
            for place in sentences_of(text):
                words = words_of(text, *place)
                for begin in range(0, len(words), LONGEST_PART):
                    piece = words[begin : begin + LONGEST_PART]
                    self._parts.append(EvidencePart([word.stem for word in piece]))
        short = sum(len(part.stems) for part in self._parts) <= WHOLE_WORDS
        self._whole = Support.of(self._parts) if short else None
        self._places: dict[str, list[int]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        if not short:
            self._index()

    def _index(self) -> None:
        for number in range(len(self._parts) - 1, -1, -1):
            for word in self._parts[number].words:
                if word not in STOP_WORDS:
                    self._counts[word] += 1
                    if len(self._places[word]) < _PLACES:
                        self._places[word].append(number)

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the words of all parts."""
        return frozenset().union(*(part.words for part in self._parts))

    @cached_property
    def pairs(self) -> frozenset[Pair]:
        """Return the pairs of neighbours of all parts."""
        return frozenset().union(*(part.pairs for part in self._parts))

    def nearest(self, stems: Sequence[str]) -> Support:
        """Return what to compare a sentence of these words with: all, or the parts that share most with it."""
        if self._whole is not None:
            return self._whole
        return Support.of([self._parts[number] for number in sorted(self._ranked(stems)[:_NEAREST])])

    def _ranked(self, stems: Sequence[str]) -> list[int]:
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(set(stems)):
            places = self._places.get(word, ())
            weight = math.log(1 + len(self._parts) / self._counts[word]) if places else 0.0
            for number in places:
                scores[number] += weight
        return sorted(
            scores, key=lambda number: (-scores[number] / (4 + len(self._parts[number].stems)) ** 0.3, number)
        )
