"""Score how relevant a chunk is to a query: BM25 over what the caller may read, cosine, and both combined."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.catalog.search_words import count_words, truncated
from app.engines.documents.words import StemFinder
from app.engines.grounding.stemming import stem

K1: Final = 1.2
B: Final = 0.75
TITLE_WEIGHT: Final = 2
IMAGINED: Final = 50
"""Imaginary chunks added to the count, so that in very small collections not every word counts as common."""

WHOLE_SHARE: Final = 1 / 3
"""How much a whole word counts beside its truncated form, which any form of the word has."""

UNRELATED: Final = 0.1
"""The cosine of unrelated texts, for sentence encoders of this kind."""

EQUAL_VOTE: Final = 0.5
"""The share of the semantic score where words and meaning count alike."""

ALIKE: Final = 0.8
"""The cosine of a query and a text that answers it in almost the same words."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of what a caller may read: its chunks and words, and how many chunks contain each query word."""

    chunks: int
    words: int
    matches: Mapping[str, int]


def rarity(statistics: Statistics, word: str) -> float:
    """Return the inverse document frequency of a word (BM25), above 0, smoothed for small collections."""
    matching = min(statistics.matches.get(word, 0), statistics.chunks)
    return math.log(1 + (statistics.chunks + IMAGINED - matching + 0.5) / (matching + 0.5))


def weight_of(statistics: Statistics, word: str) -> float:
    """Return how much a word of a query counts: its rarity, and less of a word whose truncated form counts besides."""
    share = 1.0 if truncated(word) == word else WHOLE_SHARE
    return share * rarity(statistics, word)


def lexical_scores(
    words: Sequence[str], statistics: Statistics, chunks: Sequence[tuple[str, str, str]]
) -> list[float]:
    """Return for each chunk (title, headings, text) its BM25, divided by the score of every word occurring once.

    So 0 means no word, 1 about all words, and more means more often; scores of different queries are comparable.
    """
    weights = {stem(word): weight_of(statistics, word) for word in words}
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
    counts = finder.counts(text)
    for title_stem, count in finder.counts(title).items():
        counts[title_stem] += TITLE_WEIGHT * count
    for heading_stem, count in finder.counts(headings).items():
        counts[heading_stem] += count
    longer = K1 * (1 - B + B * count_words(text) / usual)
    return sum(weights[counted] * count * (K1 + 1) / (count + longer) for counted, count in counts.items())


def semantic_score(cosine: float) -> float:
    """Return a cosine scaled to 0 (unrelated) to 1 (same meaning)."""
    return min(1.0, max(0.0, (cosine - UNRELATED) / (ALIKE - UNRELATED)))


def fused(lexical: float, semantic: float | None, vote: float = EQUAL_VOTE) -> float:
    """Return the score that orders chunks: the mean of both, as 0 and 1 mean the same in each.

    ``vote`` (0..1) is the share of the semantic one in it.
    """
    return lexical if semantic is None else lexical + vote * (semantic - lexical)


def relevance(score: float) -> float:
    """Return a fused score in the shown range 0..1; the order stays."""
    return min(1.0, score)
