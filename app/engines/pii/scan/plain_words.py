"""Our own tokenizer: runs of letters or digits, split at camel case, without stop words."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from app.engines.pii.names.nlp import counts, lemma, words
from app.engines.pii.scan.image import CASED, DIGIT, MARK, UNCASED
from app.engines.pii.scan.surroundings import Keywords

_RUNS = re.compile(r"[^\W\d_]+|\d+")
_UNSURE = re.compile(rb"[%c%c]" % (MARK, DIGIT))
"""Letters or digits in only one regular expression engine; here Python's own decides."""

_MAX_CACHED: Final = 32_768
_LONGEST_CACHED: Final = 64


def _kinds() -> npt.NDArray[np.int8]:
    """Return 1 for the bytes of letters in an image, 2 for digits, 0 for all bytes that end a token."""
    kinds = np.zeros(256, np.int8)
    kinds[[code for code in range(128) if chr(code).isalpha()]] = 1
    kinds[CASED] = 1
    kinds[UNCASED:] = 1
    kinds[[*b"0123456789"]] = 2
    return kinds


_KINDS: Final = _kinds()


class PlainWords:
    """Our tokenizer, with a cache of words but not of numbers."""

    def __init__(self) -> None:
        self._cache: dict[str, Keywords] = {}

    def tokens(self, text: str, seen: bytes) -> tuple[Sequence[int], Sequence[int]]:
        """Return the starts and the ends of the runs of letters and of digits."""
        if _UNSURE.search(seen):
            spans = [match.span() for match in _RUNS.finditer(text)]
            return [begin for begin, _ in spans], [end for _, end in spans]
        # The image has an edge on either side, so every run has a change before and one after it.
        kinds = _KINDS[np.frombuffer(seen, np.uint8)]
        changes = (kinds[1:] != kinds[:-1]).nonzero()[0]
        return changes[kinds[changes + 1] > 0].data, changes[kinds[changes] > 0].data

    def keywords(self, token: str) -> Keywords:
        """Return the lemmas of the words in one token that count as context."""
        keywords = self._cache.get(token)
        if keywords is None:
            if token.isdigit():
                return Keywords((0,), (len(token),), (token,))
            if len(token) > _LONGEST_CACHED:
                return _long(token)
            keywords = _keywords(token)
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[token] = keywords
        return keywords


def _keywords(token: str) -> Keywords:
    parts = [(start, part, lemma(part)) for start, part in words(token)]
    kept = [(start, start + len(part), word) for start, part, word in parts if counts(word)]
    return Keywords(*zip(*kept, strict=True)) if kept else Keywords((), (), ())


# A text has few of these, but may need one often.
_long = lru_cache(maxsize=4)(_keywords)
