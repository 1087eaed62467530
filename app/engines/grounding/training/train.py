"""Train the embedded grounding judge: ``python -m app.engines.grounding.training.train DATA [WEIGHTS]``."""

import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.engines.grounding.evidence import Evidence
from app.engines.grounding.features import NAMES, features_of
from app.engines.grounding.training.sets import Example, TrainingSet, training_sets

PENALTY = 3.0
ROUNDS = 200
HALVINGS = 40
DIGITS = 6
EACH = 1_000.0
"""What the examples of a set of weight 1 weigh together, half of it the unsupported ones."""
FOLDER = Path(__file__).parents[1] / "weights"
RECIPE = "app/engines/grounding/training"

Array = NDArray[np.float64]


def measured(examples: Sequence[Example]) -> tuple[Array, Array]:
    """Return the features of the examples, a row for each, and their labels (1.0 for unsupported)."""
    rows = [features_of(one.response, Evidence([one.context])) for one in examples]
    return np.array(rows), np.array([float(one.unsupported) for one in examples])


def fitted(columns: Array, labels: Array, shares: Array, bounded: int) -> Array:
    """Return the weights of a logistic regression with an L2 penalty on the first ``bounded`` columns.

    Those weights are not negative (Newton's method on the others of them, with projection). ``shares`` says how
    much each row counts.
    """
    penalty = np.zeros(columns.shape[1])
    penalty[:bounded] = PENALTY
    least = np.full(columns.shape[1], -np.inf)
    least[:bounded] = 0.0

    def loss(weights: Array) -> float:
        logits = columns @ weights
        return float(shares @ (np.logaddexp(0, logits) - labels * logits) + penalty @ (weights * weights) / 2)

    found = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (shares * (chance - labels)) + penalty * found
        free = (found > least) | (slope < 0)
        curve = (columns * (shares * chance * (1 - chance))[:, None]).T @ columns + np.diag(penalty)
        step = np.zeros_like(found)
        step[free] = np.linalg.solve(curve[np.ix_(free, free)], slope[free])
        size, before = 1.0, loss(found)
        for _ in range(HALVINGS):
            moved = np.maximum(found - size * step, least)
            if loss(moved) <= before:
                break
            size /= 2
        else:
            break
        found = moved
    return found


def trained(sets: Sequence[TrainingSet]) -> dict[str, object]:
    """Return the content of the weights' file.

    Each set has a bias of its own, so that no weight explains why one set is harder than another. That of the first
    set is kept: its answers and labels are those of people, and half of its weight is unsupported.
    """
    parts = [measured(one.examples) for one in sets]
    features, labels = np.vstack([rows for rows, _ in parts]), np.concatenate([some for _, some in parts])
    belongs = np.repeat(np.arange(len(sets)), [len(some) for _, some in parts])
    scales = features.std(axis=0)
    scales[scales < 10**-DIGITS] = 1.0
    shares = np.concatenate(
        [_balanced(some) * one.weight * EACH for one, (_, some) in zip(sets, parts, strict=True)]
    )
    columns = np.column_stack([features / scales, belongs[:, None] == np.arange(len(sets))])
    found = fitted(columns, labels, shares, len(NAMES))
    return {
        "features": list(NAMES),
        "weights": _rounded(found[: len(NAMES)] / scales),
        "bias": round(float(found[len(NAMES)]), DIGITS),
    }


def _balanced(labels: Array) -> Array:
    """Return shares that add up to 1, to a half for each label."""
    shares: Array = np.where(labels == 1, 0.5 / labels.sum(), 0.5 / (len(labels) - labels.sum()))
    return shares


def _rounded(values: Array) -> list[float]:
    """Return what all machines agree on: the last digits depend on the order in which one adds."""
    return [round(float(value), DIGITS) for value in values]


def _manifest(weights: Path, sets: Sequence[TrainingSet]) -> Iterator[tuple[str, object]]:
    raw = weights.read_bytes()
    yield (
        weights.name,
        {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "bytes": len(raw),
            "licence": "Apache-2.0",
            "recipe": RECIPE,
            "data": list({one.source["name"]: one.source for one in sets}.values()),
        },
    )


def write(sets: Sequence[TrainingSet], folder: Path) -> Path:
    """Train on ``sets``; write ``judge.json`` and ``manifest.json`` into ``folder``."""
    weights = folder / "judge.json"
    weights.write_text(json.dumps(trained(sets), indent=1) + "\n", encoding="utf-8")
    manifest = json.dumps(dict(_manifest(weights, sets)), indent=2) + "\n"
    (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    return weights


if __name__ == "__main__":
    print(write(training_sets(Path(sys.argv[1])), Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER))  # noqa: PLR2004
