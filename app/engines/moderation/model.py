"""The classifiers: a linear one over the words, then a small network that also reads the encoder's vector."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from app.engines.moderation.features import features_of

Floats = NDArray[np.float32]

MARKS = (0.35, 0.5, 0.65, 0.85)
"""Scores of the calibrated points: strict, standard and permissive thresholds, and beyond doubt."""

_UNCONFIRMED = 0.84
"""The highest score of the network where the words alone do not indicate the policy."""

_LEAST_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class ModerationClassifier:
    """The weights; ``knots`` are each policy's logits at ``MARKS``, for the network and for the words."""

    words: Floats
    words_bias: Floats
    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: Floats
    knots: Floats
    words_knots: Floats
    version: str

    @classmethod
    def embedded(cls) -> "ModerationClassifier":
        """Return the classifier of this package."""
        return cls.read(files("app.engines.moderation").joinpath("weights/moderation.npz").read_bytes())

    @classmethod
    def read(cls, data: bytes) -> "ModerationClassifier":
        """Return the classifier in an npz file; its version is the beginning of the file's digest."""
        with np.load(io.BytesIO(data)) as archive:
            arrays = {name: archive[name].astype(np.float32) for name in archive.files}
        return cls(**arrays, version=hashlib.sha256(data).hexdigest()[:12])

    def judged_by_words(self, texts: Sequence[str]) -> Floats:
        """Return the logits of windows by their words alone, a row for each."""
        window_features = features_of(texts)
        weights = self.words.take(window_features.columns, axis=0)
        rows = np.empty((len(texts), len(self.words_bias)), dtype=np.float32)
        for number, (start, end) in enumerate(pairwise(window_features.starts.tolist())):
            # The product of a window's values with the rows of their weights sums them.
            rows[number] = window_features.values[start:end] @ weights[start:end] + self.words_bias
        return rows

    def judged(self, vectors: Floats, by_words: Floats) -> Floats:
        """Return the logits of windows from their vectors (a row each) and the logits of their words."""
        seen = network_input(vectors, by_words)
        hidden = np.maximum(seen @ self.hidden + self.hidden_bias, 0)
        logits: Floats = hidden @ self.output + self.output_bias
        return logits

    def scores(self, logits: Floats, by_words: Floats, neighbours: int) -> Floats:
        """Return the scores 0..1 of windows with a vector; ``neighbours`` is the number of windows of the text."""
        scores = calibrated(logits - raised(self.knots, neighbours), self.knots)
        confirmed = calibrated(by_words, self.words_knots) >= MARKS[0]
        return np.where(confirmed, scores, np.minimum(scores, _UNCONFIRMED)).astype(np.float32)

    def scores_by_words(self, by_words: Floats, neighbours: int) -> Floats:
        """Return the scores 0..1 of windows without a vector, from their words only."""
        return calibrated(by_words - raised(self.words_knots, neighbours), self.words_knots)


def raised(knots: Floats, neighbours: int) -> Floats:
    """Return how much to raise each policy's threshold in a text of many windows, each a possible false positive.

    From the standard to the permissive mark the false positives fall to three tenths, so the logits between the marks
    give the price of a lower rate; half of it is used, as the windows of one text are alike.
    """
    steps = np.log(max(neighbours, 1)) / np.log(10 / 3) / 2
    return ((knots[:, 2] - knots[:, 1]) * np.float32(steps)).astype(np.float32)


def network_input(vectors: Floats, by_words: Floats) -> Floats:
    """Return the network's input: the vector, scaled to the size of the other inputs, and the words' logits."""
    return np.hstack([vectors * np.float32(8), np.tanh(by_words / 4)]).astype(np.float32)


def calibrated(logits: Floats, knots: Floats) -> Floats:
    """Return scores by linear interpolation between the knots on a logistic scale, extrapolated outside."""
    goals = np.log(np.array(MARKS) / (1 - np.array(MARKS)))
    scores = np.empty(logits.shape, dtype=np.float32)
    for policy in range(knots.shape[0]):
        x, points = logits[..., policy], knots[policy]
        first = (goals[1] - goals[0]) / max(points[1] - points[0], _LEAST_STEP)
        last = (goals[-1] - goals[-2]) / max(points[-1] - points[-2], _LEAST_STEP)
        y = np.interp(x, points, goals)
        y = np.where(x < points[0], goals[0] + (x - points[0]) * first, y)
        y = np.where(x > points[-1], goals[-1] + (x - points[-1]) * last, y)
        scores[..., policy] = 1 / (1 + np.exp(-np.clip(y, -30, 30)))
    return scores
