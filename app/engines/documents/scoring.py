"""How relevant a chunk is to a question: BM25 over what the caller may read, cosine of vectors, and both together."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.engines.documents.words import stems_of
from app.engines.grounding.stemming import stem

K1: Final = 1.2
B: Final = 0.75
TITLE_WEIGHT: Final = 2
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
    """Return the inverse document frequency of a word (BM25), above 0."""
    matching = min(statistics.matches.get(word, 0), statistics.chunks)
    return math.log(1 + (statistics.chunks - matching + 0.5) / (matching + 0.5))


def lexical_scores(
    words: Sequence[str], statistics: Statistics, chunks: Sequence[tuple[str, str, str]]
) -> list[float]:
    """Return for each chunk (title, headings, text) its BM25 as a part of the most that any chunk could have: 0..1."""
    weights = {stem(word): rarity(statistics, word) for word in words}
    most = sum(weights.values()) * (K1 + 1)
    if not most:
        return [0.0] * len(chunks)
    usual = max(1.0, statistics.words / max(1, statistics.chunks))
    return [_bm25(weights, usual, chunk) / most for chunk in chunks]


def _bm25(weights: Mapping[str, float], usual: float, chunk: tuple[str, str, str]) -> float:
    title, headings, text = chunk
    body = stems_of(text)
    found = Counter(one for one in body if one in weights)
    for one in stems_of(title):
        if one in weights:
            found[one] += TITLE_WEIGHT
    for one in stems_of(headings):
        if one in weights:
            found[one] += 1
    longer = K1 * (1 - B + B * len(body) / usual)
    return sum(weights[one] * count * (K1 + 1) / (count + longer) for one, count in found.items())


def semantic_score(cosine: float) -> float:
    """Return a cosine as 0 (unrelated) to 1 (says the same)."""
    return min(1.0, max(0.0, (cosine - UNRELATED) / (ALIKE - UNRELATED)))


def relevance(lexical: float, semantic: float | None) -> float:
    """Return the relevance 0..1 of a chunk: by its words alone where there are no vectors, else by both.

    Words that match and a meaning that matches speak for a chunk independently of each other: what is left of the
    doubt after the one is lessened by the other.
    """
    if semantic is None:
        return lexical
    return 1 - (1 - lexical) * (1 - semantic)
