"""Train the embedded grounding judge: ``python -m app.engines.grounding.training.train BEGIN_DEV.jsonl [WEIGHTS]``."""

import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.engines.grounding.evidence import Evidence
from app.engines.grounding.features import NAMES, features_of

PENALTY = 10.0
ROUNDS = 60
DIGITS = 6
FOLDER = Path(__file__).parents[1] / "weights"
RECIPE = "app/engines/grounding/training"


@dataclass(frozen=True, slots=True)
class Example:
    """An answer, what it should follow from, and whether it does not."""

    response: str
    context: str
    unsupported: bool


def read_examples(path: Path) -> list[Example]:
    """Read lines of JSON with context, response and unsupported (0 or 1)."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [Example(row["response"], row["context"], bool(row["unsupported"])) for row in rows]


def fitted(features: NDArray[np.float64], labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights and, last, the bias of a logistic regression with an L2 penalty (none on the bias)."""
    columns = np.column_stack([features, np.ones(len(features))])
    penalty = np.full(columns.shape[1], PENALTY)
    penalty[-1] = 0.0
    found = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-columns @ found))
        slope = columns.T @ (chance - labels) + penalty * found
        curve = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(penalty)
        found -= np.linalg.solve(curve, slope)
    return found


def trained(examples: list[Example]) -> dict[str, object]:
    """Return the content of the weights' file."""
    rows = [features_of(one.response, Evidence([one.context])) for one in examples]
    labels = np.array([float(one.unsupported) for one in examples])
    features = np.array(rows)
    centres = features.mean(axis=0)
    scales = features.std(axis=0)
    scales[scales < 10**-DIGITS] = 1.0
    found = fitted((features - centres) / scales, labels)
    # The set has mostly unsupported answers; the score is for a stream that has as many of either.
    found[-1] -= np.log(labels.mean() / (1 - labels.mean()))
    return {
        "features": list(NAMES),
        "centres": _rounded(centres),
        "scales": _rounded(scales),
        "weights": _rounded(found[:-1]),
        "bias": round(float(found[-1]), DIGITS),
    }


def _rounded(values: NDArray[np.float64]) -> list[float]:
    """Return what all machines agree on: the last digits depend on the order in which one adds."""
    return [round(float(value), DIGITS) for value in values]


def _manifest(weights: Path, data: Path) -> Iterator[tuple[str, object]]:
    raw = weights.read_bytes()
    yield (
        weights.name,
        {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "bytes": len(raw),
            "licence": "Apache-2.0",
            "recipe": RECIPE,
            "data": [
                {
                    "name": "BEGIN, development part",
                    "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
                    "licence": "CC BY 4.0; the TopicalChat part CDLA-Sharing 1.0, whose results are free",
                    "url": "https://github.com/google/BEGIN-dataset",
                }
            ],
        },
    )


def write(data: Path, folder: Path) -> Path:
    """Train on ``data``; write ``judge.json`` and ``manifest.json`` into ``folder``."""
    weights = folder / "judge.json"
    weights.write_text(json.dumps(trained(read_examples(data)), indent=1) + "\n", encoding="utf-8")
    manifest = json.dumps(dict(_manifest(weights, data)), indent=2) + "\n"
    (folder / "manifest.json").write_text(manifest, encoding="utf-8")
    return weights


if __name__ == "__main__":
    print(write(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else FOLDER))  # noqa: PLR2004
