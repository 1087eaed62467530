"""Features of a window for the classifiers: hashed n-grams of words, of content words and of characters."""

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engines.hashing import Hashes, Owners, char_ngrams_of, word_ngrams_of

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


@dataclass(frozen=True, slots=True)
class Ngrams:
    """Which n-grams a window is read by: their sizes, and ``2**bits`` buckets for each of the two blocks.

    ``common`` are the words, in small letters, that are left out of the content words.
    """

    words: tuple[int, ...]
    content: tuple[int, ...]
    characters: tuple[int, ...]
    bits: int
    common: Container[str]

    @property
    def width(self) -> int:
        """Number of all features: a block of words, then a block of characters."""
        return 2 << self.bits


ENGLISH = Ngrams(words=(1, 2, 3), content=(2, 3), characters=(3, 4, 5), bits=16, common=_EMPTY_WORDS)

WIDTH = ENGLISH.width
"""Number of features of the classifiers of English."""

_WORDS = re.compile(r"\w+")
_LETTERS_APART = re.compile(r"\b(?:\w[ .*_-]){3,}\w\b")
_CONTENT_SALT = np.uint64(0x5851_F42D_4C95_7F2D)


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """The features of several texts, one after the other: those of text n are ``starts[n]`` to ``starts[n + 1]``."""

    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    starts: NDArray[np.int64]


def features(text: str) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the features that occur in one text, in order, and their values; see ``features_of``."""
    computed = features_of([text])
    return computed.columns, computed.values


def features_of(texts: Sequence[str], ngrams: Ngrams = ENGLISH) -> TextFeatures:
    """Return the features that occur in each of ``texts``, in order, and their values; each block has unit length.

    Pairs of content words complement pairs of words, so that a verb is paired with its object across articles and
    prepositions: the object of "kill" decides whether it matters. Many short texts take little longer than one.
    """
    joined = [_joined(text) for text in texts]
    content_texts = [
        " ".join(word for word in _WORDS.findall(text.lower()) if word not in ngrams.common)
        for text in joined
    ]
    words, of_words = word_ngrams_of(joined, ngrams.words)
    content, of_content = word_ngrams_of(content_texts, ngrams.content)
    with np.errstate(over="ignore"):
        words = np.concatenate([words, content * _CONTENT_SALT])
    of_words = np.concatenate([of_words, of_content])
    blocks = [
        _block(words, of_words, 0, ngrams.bits),
        _block(*char_ngrams_of(joined, ngrams.characters), 1, ngrams.bits),
    ]
    owners = np.concatenate([owner for owner, _, _ in blocks])
    order = np.argsort(owners, kind="stable")
    return TextFeatures(
        columns=np.concatenate([columns for _, columns, _ in blocks])[order],
        values=np.concatenate([values for _, _, values in blocks])[order],
        starts=np.searchsorted(owners[order], np.arange(len(texts) + 1)),
    )


def _joined(text: str) -> str:
    if not _LETTERS_APART.search(text):
        return text
    return _LETTERS_APART.sub(lambda match: re.sub(r"[ .*_-]", "", match[0]), text)


def _block(
    hashes: Hashes, owners: Owners, number: int, bits: int
) -> tuple[Owners, NDArray[np.int64], NDArray[np.float32]]:
    buckets = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    occupied, counts = np.unique((owners << bits) | buckets, return_counts=True)
    whose = occupied >> bits
    values = (1 + np.log(counts)).astype(np.float32)
    lengths = np.sqrt(np.bincount(whose, weights=values * values)).astype(np.float32)
    return whose, (occupied & ((1 << bits) - 1)) + (number << bits), values / lengths[whose]
