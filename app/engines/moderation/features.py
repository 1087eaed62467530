"""What the classifiers see of a window: hashed n-grams of words, of content words and of characters."""

import re

import numpy as np
from numpy.typing import NDArray

from app.engines.hashing import Hashes, bucketed, char_ngrams, word_ngrams

BITS = 16
"""Buckets of each block of features, as a power of two."""

WIDTH = 2 << BITS
"""Number of all features: a block of words, then a block of characters."""

_EMPTY_WORDS = frozenset(
    {
        *("a", "an", "the", "of", "to", "in", "on", "at", "for", "with", "from", "by"),
        *("and", "or", "is", "are", "was", "were", "be", "been", "being", "do", "does", "did"),
        *(
            "can",
            "could",
            "would",
            "should",
            "will",
            "shall",
            "may",
            "might",
            "must",
            "please",
            "that",
            "this",
        ),
        *("these", "those", "it", "its", "as", "so", "very", "really", "just", "some", "any", "best"),
        *("way", "ways", "good", "more", "most"),
    }
)
_WORDS = re.compile(r"\w+")
_LETTERS_APART = re.compile(r"\b(?:\w[ .*_-]){3,}\w\b")
_CONTENT_SALT = np.uint64(0x5851_F42D_4C95_7F2D)


def features(text: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the features of ``text`` that occur, in order, and their values; each block has unit length.

    Pairs of content words stand beside pairs of words, so that a verb meets its object across articles and
    prepositions: what is killed says whether killing matters.
    """
    joined = text
    if _LETTERS_APART.search(text):
        joined = _LETTERS_APART.sub(lambda match: re.sub(r"[ .*_-]", "", match[0]), text)
    meant = " ".join(word for word in _WORDS.findall(joined.lower()) if word not in _EMPTY_WORDS)
    content = word_ngrams(meant, (2, 3))
    with np.errstate(over="ignore"):
        words = np.concatenate([word_ngrams(joined, (1, 2, 3)), content * _CONTENT_SALT])
    columns, values = _block(words, 0)
    more_columns, more_values = _block(char_ngrams(joined, (3, 4, 5)), 1)
    return np.concatenate([columns, more_columns]), np.concatenate([values, more_values])


def _block(hashes: Hashes, number: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    buckets, counts = bucketed(hashes, BITS)
    values = (1 + np.log(counts)).astype(np.float32)
    length = float(np.linalg.norm(values)) or 1.0
    return buckets + (number << BITS), values / length
