"""Fitting: logistic regressions over the words by L-BFGS, then a small network over words and vectors by Adam."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.contracts.moderation import POLICIES
from app.engines.moderation.features import WIDTH, features
from app.engines.moderation.model import Floats, network_input
from app.engines.moderation.training.descent import SparseRows, minimized

Labels = NDArray[np.float32]

WORDS_PENALTY = 2e-5
WORDS_ROUNDS = 40
HIDDEN = 96
ROUNDS = 6
BATCH = 256
RATE = 2e-3
DECAY = 1e-4
DROPPED = 0.2
"""Share of the network's inputs that are left out at random while it learns."""


@dataclass(frozen=True, slots=True)
class Data:
    """Texts as matrices: sparse features, vectors, labels (NaN: unknown), weights, groups by number."""

    words: SparseRows
    vectors: Floats
    labels: Labels
    weights: Floats
    groups: NDArray[np.int64]

    def part(self, rows: NDArray[np.int64]) -> "Data":
        """Return some of the rows."""
        return Data(
            *(self.words[rows], self.vectors[rows], self.labels[rows], self.weights[rows], self.groups[rows])
        )


def word_matrix(texts: Sequence[str]) -> SparseRows:
    """Return the features of ``texts``, a row each."""
    return SparseRows.of([features(text) for text in texts], WIDTH)


def label_matrix(labels: Sequence[Mapping[str, int | None]]) -> Labels:
    """Return labels as numbers; what nobody knows is NaN."""
    rows = [
        [np.nan if row[policy] is None else float(row[policy] or 0) for policy in POLICIES] for row in labels
    ]
    return np.array(rows, dtype=np.float32)


def fit_words(data: Data, penalty: float = WORDS_PENALTY) -> tuple[Floats, Floats]:
    """Return weights (features x columns) and biases of one logistic regression for each column of the labels."""
    fitted = [_fit_one(data, column, penalty) for column in range(data.labels.shape[1])]
    return (
        np.stack([one[:-1] for one in fitted], axis=1).astype(np.float32),
        np.array([one[-1] for one in fitted], dtype=np.float32),
    )


def _fit_one(data: Data, column: int, penalty: float) -> NDArray[np.float64]:
    known = ~np.isnan(data.labels[:, column])
    x = data.words[np.flatnonzero(known)]
    y = data.labels[known, column].astype(np.float64)
    weights = balanced(y, data.weights[known].astype(np.float64))
    by_columns = x.transposed()

    def loss(parameters: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        inner = parameters[:-1]
        logits = x.times(inner.astype(np.float32)).astype(np.float64) + parameters[-1]
        errors = weights * (1 / (1 + np.exp(-np.clip(logits, -40, 40))) - y)
        value = float(weights @ np.logaddexp(0, np.where(y > 0, -logits, logits)))
        value += penalty / 2 * float(inner @ inner)
        # Scaled up, so that single precision keeps what each of many texts adds.
        pull = by_columns.times((errors * len(y)).astype(np.float32)).astype(np.float64) / len(y)
        return value, np.append(pull + penalty * inner, errors.sum())

    return minimized(loss, np.zeros(x.width + 1), WORDS_ROUNDS)


def balanced(labels: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that sum to one, of which the positive ones have at least a tenth."""
    positive = labels > 0
    share = float(weights[positive].sum() / max(weights.sum(), 1e-9))
    raised = weights.copy()
    if 0 < share < 0.1:  # noqa: PLR2004 - the tenth
        raised[positive] *= 0.1 * (1 - share) / (0.9 * share)
    result: NDArray[np.float64] = raised / raised.sum()
    return result


def logits_by_words(data: Data, fitted: tuple[Floats, Floats]) -> Floats:
    """Return what the regressions say of each row."""
    columns = [data.words.times(fitted[0][:, column]) for column in range(data.labels.shape[1])]
    return (np.stack(columns, axis=1) + fitted[1]).astype(np.float32)


def crossed(data: Data, folds: int, penalty: float = WORDS_PENALTY) -> Floats:
    """Return for each row what regressions say that have not seen its group: what the network will meet later."""
    found = np.zeros(data.labels.shape, dtype=np.float32)
    for fold in range(folds):
        mine = data.groups % folds == fold
        fitted = fit_words(data.part(np.flatnonzero(~mine)), penalty)
        found[mine] = logits_by_words(data.part(np.flatnonzero(mine)), fitted)
    return found


@dataclass(slots=True)
class Network:
    """The parameters of the small network."""

    hidden: Floats
    hidden_bias: Floats
    output: Floats
    output_bias: Floats

    def __call__(self, vectors: Floats, by_words: Floats) -> Floats:
        """Return logits."""
        inner = np.maximum(network_input(vectors, by_words) @ self.hidden + self.hidden_bias, 0)
        logits: Floats = inner @ self.output + self.output_bias
        return logits


def fit_network(data: Data, by_words: Floats, seed: int) -> Network:
    """Return a network fitted by Adam on what is known of each row; its weights are a running mean over steps."""
    rng = np.random.default_rng(seed)
    seen = network_input(data.vectors, by_words)
    known = ~np.isnan(data.labels)
    targets = np.nan_to_num(data.labels)
    weights = _by_policy(data.labels, data.weights)
    sizes = [(seen.shape[1], HIDDEN), (HIDDEN,), (HIDDEN, len(POLICIES)), (len(POLICIES),)]
    parameters = [
        (rng.standard_normal(size) * np.sqrt(2 / size[0]) if len(size) == 2 else np.zeros(size)).astype(  # noqa: PLR2004
            np.float32
        )
        for size in sizes
    ]
    adam = _Adam(parameters)
    steps = ROUNDS * (len(seen) // BATCH + 1)
    for _ in range(ROUNDS):
        order = rng.permutation(len(seen))
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            kept = _kept((len(rows), seen.shape[1]), rng)
            gradients = _gradients(
                parameters, seen[rows] * kept, targets[rows], weights[rows] * known[rows], rng
            )
            adam.step(gradients, RATE * (1 - adam.steps / (steps + 1)))
    return Network(*(mean.astype(np.float32) for mean in adam.means))


def _by_policy(labels: Labels, weights: Floats) -> Floats:
    """Return the weight of each row for each policy; the mean over all is about one."""
    found = np.zeros(labels.shape)
    for policy in range(labels.shape[1]):
        known = ~np.isnan(labels[:, policy])
        found[known, policy] = balanced(
            labels[known, policy].astype(np.float64), weights[known].astype(np.float64)
        ) * len(labels)
    return found.astype(np.float32)


def _kept(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Return zeros for what is left out, and what keeps the mean for the rest."""
    return (rng.random(shape, dtype=np.float32) >= DROPPED).astype(np.float32) / np.float32(1 - DROPPED)


def _gradients(
    parameters: list[Floats], seen: Floats, targets: Labels, weights: Floats, rng: np.random.Generator
) -> list[Floats]:
    hidden, hidden_bias, output, output_bias = parameters
    before = seen @ hidden + hidden_bias
    kept = _kept(before.shape, rng)
    inner = np.maximum(before, 0) * kept
    logits = inner @ output + output_bias
    error = weights * (1 / (1 + np.exp(-np.clip(logits, -30, 30))) - targets) / np.float32(len(seen))
    back = (error @ output.T) * kept * (before > 0)
    return [
        seen.T @ back + DECAY * hidden,
        back.sum(axis=0),
        inner.T @ error + DECAY * output,
        error.sum(axis=0),
    ]


class _Adam:
    """Adam, with a running mean of the parameters."""

    def __init__(self, parameters: list[Floats]) -> None:
        self.parameters = parameters
        self.first = [np.zeros_like(one) for one in parameters]
        self.second = [np.zeros_like(one) for one in parameters]
        self.means = [one.copy() for one in parameters]
        self.steps = 0

    def step(self, gradients: list[Floats], rate: float) -> None:
        """Move the parameters in place."""
        self.steps += 1
        for number, gradient in enumerate(gradients):
            self.first[number] += 0.1 * (gradient - self.first[number])
            self.second[number] += 0.001 * (gradient**2 - self.second[number])
            first = self.first[number] / (1 - 0.9**self.steps)
            second = self.second[number] / (1 - 0.999**self.steps)
            self.parameters[number] -= rate * first / (np.sqrt(second) + 1e-8)
            self.means[number] += 0.01 * (self.parameters[number] - self.means[number])
