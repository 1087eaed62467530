"""Logistic regression over windows of a text, on hashed n-grams of characters and words and on matches of the rules."""

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.engines.hashing import bucketed, char_ngrams, word_ngrams
from app.engines.injection.matching import Match
from app.engines.injection.wording import CLASSIFIER, HIDDEN_TEXT, KINDS

WEIGHTS: Final = "injection.npz"
WINDOW: Final = 500
STRIDE: Final = 350
CHAR_BITS: Final = 17
WORD_BITS: Final = 16
RULE_KINDS: Final = tuple(kind for kind in KINDS if kind not in {CLASSIFIER, HIDDEN_TEXT})

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TextWindow:
    """A part of a text and how similar it is to an attack, 0..1."""

    start: int
    end: int
    score: float


def spans(length: int) -> list[tuple[int, int]]:
    """Return the windows of a text of that length; they overlap, and the last has full size where possible."""
    if length <= WINDOW:
        return [(0, length)]
    starts = [*range(0, length - WINDOW, STRIDE), length - WINDOW]
    return [(start, start + WINDOW) for start in starts]


def features(text: str) -> tuple[NDArray[np.int64], Floats]:
    """Return the buckets of a window and how often each occurs, damped; characters first, then words."""
    chars, char_counts = bucketed(char_ngrams(text), CHAR_BITS)
    words, word_counts = bucketed(word_ngrams(text), WORD_BITS)
    counts = np.concatenate([char_counts, word_counts]).astype(np.float32)
    return np.concatenate([chars, words + (1 << CHAR_BITS)]), (1.0 + np.log(counts)).astype(np.float32)


def rule_features(matches: Sequence[Match], start: int, end: int) -> Floats:
    """Return by kind the highest score of a rule that matched within ``[start, end)``, and last the highest of all."""
    best = np.zeros(len(RULE_KINDS) + 1, dtype=np.float32)
    for match in matches:
        if match.start < end and start < match.end:
            place = RULE_KINDS.index(match.rule.kind)
            best[place] = max(best[place], match.rule.score)
    best[-1] = best.max()
    return best


@dataclass(frozen=True, slots=True)
class InjectionClassifier:
    """The weights: ``idf`` scales a bucket before the vector is normalised to unit length; ``coef`` weighs the result.

    ``bias`` sets the threshold of the level standard to one half.
    """

    idf: Floats
    coef: Floats
    rules: Floats
    bias: float
    notable: float
    version: str

    @staticmethod
    @lru_cache(maxsize=1)
    def embedded() -> "InjectionClassifier":
        """Return the classifier of this package."""
        return InjectionClassifier.read(
            files("app.engines.injection").joinpath("weights", WEIGHTS).read_bytes()
        )

    @staticmethod
    def read(data: bytes) -> "InjectionClassifier":
        """Return the classifier that is stored in an npz file."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            return InjectionClassifier(
                idf=stored["idf"].astype(np.float32),
                coef=stored["coef"].astype(np.float32),
                rules=stored["rules"].astype(np.float32),
                bias=float(stored["bias"]),
                notable=float(stored["notable"]),
                version=hashlib.sha256(data).hexdigest()[:8],
            )

    def windows(self, text: str, matches: Sequence[Match]) -> Iterator[TextWindow]:
        """Yield the windows of ``text``, in which the rules found ``matches``, with their scores."""
        if not text.strip():
            return
        for start, end in spans(len(text)):
            yield TextWindow(start, end, self.score(text[start:end], rule_features(matches, start, end)))

    def score(self, text: str, rule_scores: Floats) -> float:
        """Return how similar one window is to an attack, 0..1."""
        return float(1.0 / (1.0 + np.exp(-self.logit(text, rule_scores))))

    def logit(self, text: str, rule_scores: Floats) -> float:
        """Return the logit of ``score``."""
        buckets, counts = features(text)
        values = counts * self.idf[buckets]
        length = float(np.sqrt(np.dot(values, values))) or 1.0
        return float(
            np.dot(values, self.coef[buckets]) / length + np.dot(rule_scores, self.rules) + self.bias
        )
