"""Hashed n-grams of characters and words, in numpy: the features of the embedded classifiers and rankers."""

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Owners = NDArray[np.int64]
"""The number of the text to which each n-gram belongs."""

_PRIME = np.uint64(1_099_511_628_211)
_MIX = np.uint64(0x9E37_79B9_7F4A_7C15)
_SPACES = re.compile(r"\s+")
_WORDS = re.compile(r"\w+")


def char_ngrams(text: str, sizes: Sequence[int] = (3, 4, 5)) -> Hashes:
    """Return the hashes of the n-grams of characters of ``text``, lower-cased, with one space for each gap."""
    spaced = f" {_SPACES.sub(' ', text.lower()).strip()} "
    points = np.frombuffer(spaced.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    return _ngrams(points, sizes, salt=1)


def word_ngrams(text: str, sizes: Sequence[int] = (1, 2)) -> Hashes:
    """Return the hashes of the n-grams of words of ``text``, lower-cased; a word is a run of letters and digits."""
    words = [zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in _WORDS.findall(text.lower())]
    return _ngrams(np.array(words, dtype=np.uint64), sizes, salt=1000)


def char_ngrams_of(texts: Sequence[str], sizes: Sequence[int] = (3, 4, 5)) -> tuple[Hashes, Owners]:
    """Return the hashes of all ``texts``, as of ``char_ngrams``, and the number of the text of each."""
    spaced = [f" {_SPACES.sub(' ', text.lower()).strip()} " for text in texts]
    points = np.frombuffer("".join(spaced).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(
        np.uint64
    )
    return _owned(points, [len(text) for text in spaced], sizes, salt=1)


def word_ngrams_of(texts: Sequence[str], sizes: Sequence[int] = (1, 2)) -> tuple[Hashes, Owners]:
    """Return the hashes of all ``texts``, as of ``word_ngrams``, and the number of the text of each."""
    words = [_WORDS.findall(text.lower()) for text in texts]
    different = {word for each in words for word in each}
    keys = {word: zlib.crc32(word.encode("utf-8", "surrogatepass")) for word in different}
    points = np.array([keys[word] for each in words for word in each], dtype=np.uint64)
    return _owned(points, [len(each) for each in words], sizes, salt=1000)


def bucketed(hashes: Hashes, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of ``2**bits`` buckets occur, in order, and how often."""
    buckets = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    occurring, counts = np.unique(buckets, return_counts=True)
    return occurring, counts.astype(np.int64)


def _ngrams(points: Hashes, sizes: Sequence[int], salt: int) -> Hashes:
    """Hash each window; equal windows of different sizes differ by their salt."""
    parts = [_hashed(points, size, salt) for size in sizes if len(points) >= size]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)


def _owned(points: Hashes, lengths: Sequence[int], sizes: Sequence[int], salt: int) -> tuple[Hashes, Owners]:
    """Hash the windows of concatenated texts, except those that span two texts."""
    owners = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    parts, whose = [np.empty(0, dtype=np.uint64)], [np.empty(0, dtype=np.int64)]
    for size in sizes:
        if len(points) >= size:
            first = owners[: len(points) - size + 1]
            inside = first == owners[size - 1 :]
            parts.append(_hashed(points, size, salt)[inside])
            whose.append(first[inside])
    return np.concatenate(parts), np.concatenate(whose)


def _hashed(points: Hashes, size: int, salt: int) -> Hashes:
    count = len(points) - size + 1
    with np.errstate(over="ignore"):
        value = np.full(count, salt + size, dtype=np.uint64) * _MIX
        for offset in range(size):
            value ^= points[offset : offset + count]
            value *= _PRIME
            value ^= value >> np.uint64(29)
        return value * _MIX
