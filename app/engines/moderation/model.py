"""The classifiers: linear over the words, then a small network that also sees the encoder's vector."""

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
"""The scores of the calibrated points: strict, standard and permissive thresholds, and where a text is plainly bad."""

_UNCONFIRMED = 0.84
"""The highest score that the network may give where the words alone do not speak for the policy."""

_LEAST_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class ModerationClassifier:
    """The weights; ``knots`` are each policy's logits that stand at ``MARKS``: the network's and those by words."""

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
        """Return the classifier that ships."""
        return cls.read(files("app.engines.moderation").joinpath("weights/moderation.npz").read_bytes())

    @classmethod
    def read(cls, data: bytes) -> "ModerationClassifier":
        """Return the classifier in an npz file; its version is the beginning of the file's digest."""
        with np.load(io.BytesIO(data)) as archive:
            arrays = {name: archive[name].astype(np.float32) for name in archive.files}
        return cls(**arrays, version=hashlib.sha256(data).hexdigest()[:12])

    def judged_by_words(self, texts: Sequence[str]) -> Floats:
        """Return the logits of windows by their words alone, a row for each."""
        found = features_of(texts)
        weights = self.words.take(found.columns, axis=0)
        rows = np.empty((len(texts), len(self.words_bias)), dtype=np.float32)
        for number, (start, end) in enumerate(pairwise(found.starts.tolist())):
            # The weights of a window are summed by a product of its values with their rows.
            rows[number] = found.values[start:end] @ weights[start:end] + self.words_bias
        return rows

    def judged(self, vectors: Floats, by_words: Floats) -> Floats:
        """Return the logits of windows by their vectors (a row each) and what their words say."""
        seen = network_input(vectors, by_words)
        hidden = np.maximum(seen @ self.hidden + self.hidden_bias, 0)
        logits: Floats = hidden @ self.output + self.output_bias
        return logits

    def scores(self, logits: Floats, by_words: Floats, neighbours: int) -> Floats:
        """Return the scores 0..1 of windows with a vector; ``neighbours`` is how many windows the text has."""
        found = calibrated(logits - raised(self.knots, neighbours), self.knots)
        confirmed = calibrated(by_words, self.words_knots) >= MARKS[0]
        return np.where(confirmed, found, np.minimum(found, _UNCONFIRMED)).astype(np.float32)

    def scores_by_words(self, by_words: Floats, neighbours: int) -> Floats:
        """Return the scores 0..1 of windows of which only the words are known."""
        return calibrated(by_words - raised(self.words_knots, neighbours), self.words_knots)


def raised(knots: Floats, neighbours: int) -> Floats:
    """Return how much higher each policy's bar is in a text of many windows, each a chance to be flagged wrongly.

    From the standard to the permissive mark the share of wrong flags falls to three tenths, so the logits between
    them say what a smaller share costs; half of it is taken, as the windows of one text are alike.
    """
    steps = np.log(max(neighbours, 1)) / np.log(10 / 3) / 2
    return ((knots[:, 2] - knots[:, 1]) * np.float32(steps)).astype(np.float32)


def network_input(vectors: Floats, by_words: Floats) -> Floats:
    """Return what the network sees: the vector, stretched to the size of its other inputs, and the words' logits."""
    return np.hstack([vectors * np.float32(8), np.tanh(by_words / 4)]).astype(np.float32)


def calibrated(logits: Floats, knots: Floats) -> Floats:
    """Return scores: straight lines between the knots on a logistic scale, continued beyond the outer ones."""
    goals = np.log(np.array(MARKS) / (1 - np.array(MARKS)))
    found = np.empty(logits.shape, dtype=np.float32)
    for policy in range(knots.shape[0]):
        x, points = logits[..., policy], knots[policy]
        first = (goals[1] - goals[0]) / max(points[1] - points[0], _LEAST_STEP)
        last = (goals[-1] - goals[-2]) / max(points[-1] - points[-2], _LEAST_STEP)
        y = np.interp(x, points, goals)
        y = np.where(x < points[0], goals[0] + (x - points[0]) * first, y)
        y = np.where(x > points[-1], goals[-1] + (x - points[-1]) * last, y)
        found[..., policy] = 1 / (1 + np.exp(-np.clip(y, -30, 30)))
    return found
