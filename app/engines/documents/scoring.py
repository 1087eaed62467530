"""How relevant a chunk is to a question: BM25 over what the caller may read, cosine of vectors, and both together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.engines.documents.words import StemFinder, count_words
from app.engines.grounding.stemming import stem

K1: Final = 1.2
B: Final = 0.75
TITLE_WEIGHT: Final = 2
IMAGINED: Final = 50
"""Chunks that are counted besides those there are, so that the words of the only two documents are not all common."""

UNRELATED: Final = 0.1
"""The cosine of texts that have nothing to do with each other, for sentence encoders of this kind."""

ALIKE: Final = 0.8
"""The cosine of a question and a text that answers it in almost the same words."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of all that a caller may read: its chunks and words, and how many chunks have an asked word."""

    chunks: int
    words: int
    matches: Mapping[str, int]


def rarity(statistics: Statistics, word: str) -> float:
    """Return the inverse document frequency of a word (BM25), above 0; few chunks say little of how rare it is."""
    matching = min(statistics.matches.get(word, 0), statistics.chunks)
    return math.log(1 + (statistics.chunks + IMAGINED - matching + 0.5) / (matching + 0.5))


def lexical_scores(
    words: Sequence[str], statistics: Statistics, chunks: Sequence[tuple[str, str, str]]
) -> list[float]:
    """Return for each chunk (title, headings, text) its BM25 as a part of what one gets with every word once.

    So 0 is no word, 1 about all words, and more is more often; it compares between questions.
    """
    weights = {stem(word): rarity(statistics, word) for word in words}
    once = sum(weights.values())
    if not once:
        return [0.0] * len(chunks)
    usual = max(1.0, statistics.words / max(1, statistics.chunks))
    finder = StemFinder(weights)
    return [_bm25(finder, weights, usual, chunk) / once for chunk in chunks]


def _bm25(
    finder: StemFinder, weights: Mapping[str, float], usual: float, chunk: tuple[str, str, str]
) -> float:
    title, headings, text = chunk
    found = finder.counts(text)
    for one, count in finder.counts(title).items():
        found[one] += TITLE_WEIGHT * count
    for one, count in finder.counts(headings).items():
        found[one] += count
    longer = K1 * (1 - B + B * count_words(text) / usual)
    return sum(weights[one] * count * (K1 + 1) / (count + longer) for one, count in found.items())


def semantic_score(cosine: float) -> float:
    """Return a cosine as 0 (unrelated) to 1 (says the same)."""
    return min(1.0, max(0.0, (cosine - UNRELATED) / (ALIKE - UNRELATED)))


def fused(lexical: float, semantic: float | None) -> float:
    """Return what chunks are ordered by: both scores mean the same by 0 and by 1, so their mean does."""
    return lexical if semantic is None else (lexical + semantic) / 2


def relevance(score: float) -> float:
    """Return a fused score as it is shown, 0..1: the order stays."""
    return min(1.0, score)
