"""Hashed n-grams of characters and words, in numpy: the features of the embedded classifiers and rankers."""

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

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


def bucketed(hashes: Hashes, bits: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of ``2**bits`` buckets occur, in order, and how often."""
    buckets = (hashes >> np.uint64(64 - bits)).astype(np.int64)
    found, counts = np.unique(buckets, return_counts=True)
    return found, counts.astype(np.int64)


def _ngrams(points: Hashes, sizes: Sequence[int], salt: int) -> Hashes:
    """Hash each window; equal windows of different sizes differ by their salt."""
    parts = []
    with np.errstate(over="ignore"):
        for size in sizes:
            count = len(points) - size + 1
            if count <= 0:
                continue
            value = np.full(count, salt + size, dtype=np.uint64) * _MIX
            for offset in range(size):
                value = (value ^ points[offset : offset + count]) * _PRIME
                value ^= value >> np.uint64(29)
            parts.append(value * _MIX)
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
