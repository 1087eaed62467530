"""Thresholds: which logits stand at the marks of the score, so that a known share of harmless texts is flagged."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from app.engines.moderation.model import Floats
from app.engines.moderation.training.examples import ORDINARY, Example

SHARES = (0.03, 0.01, 0.003, 0.0005)
"""Share of harmless traffic that the marks 0.35, 0.5, 0.65 and 0.85 let through as flags, over all policies."""

HARD: Mapping[str, float] = {
    "template": 0.06,
    "pair": 0.0375,
    "toxigen": 0.018,
    "davidson": 0.009,
    "surge": 0.018,
    "madlibs": 0.0075,
    "stance": 0.01,
    "crowdcounter": 0.005,
    "plain": 0.01,
}
"""Parts of the harmless traffic that ordinary requests do not have: look-alikes, rude words, talk about groups.

Without them a threshold may lie so low that every look-alike is flagged, as ordinary requests hold no such words.
"""

_HALVINGS = 30


def traffic_weights(examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return how much each example counts in the harmless traffic: 83.5 % ordinary requests, the rest hard texts."""
    sources = np.array([example.source for example in examples])
    harmless = np.array([all(label == 0 for label in example.labels.values()) for example in examples])
    weights = np.zeros(len(examples))
    ordinary = np.isin(sources, sorted(ORDINARY)) & harmless
    weights[ordinary] = (1 - sum(HARD.values())) / max(int(ordinary.sum()), 1)
    for source, share in HARD.items():
        mine = (sources == source) & harmless
        weights[mine] = share / max(int(mine.sum()), 1)
    total: NDArray[np.float64] = weights / weights.sum()
    return total


def knots(logits: Floats, weights: NDArray[np.float64], shares: Sequence[float] = SHARES) -> Floats:
    """Return for each policy (a row) the logits at the marks; no policy takes more of a share than another."""
    counted = weights > 0
    logits, weights = logits[counted], weights[counted]
    order = np.argsort(logits, axis=0, kind="stable")
    columns = [_at_share(logits, weights, order, share) for share in shares]
    # Strictly rising, so that lines can be drawn between them.
    return np.maximum.accumulate(np.stack(columns, axis=1) + 1e-3 * np.arange(len(shares)), axis=1).astype(
        np.float32
    )


def _at_share(
    logits: Floats, weights: NDArray[np.float64], order: NDArray[np.int64], share: float
) -> NDArray[np.float64]:
    """Return the lowest thresholds above which, over all policies, at most ``share`` of the weight lies."""
    low, high = share / (2 * logits.shape[1]), share
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = (logits > _quantiles(logits, weights, order, 1 - middle)).any(axis=1)
        low, high = (low, middle) if weights[above].sum() > share else (middle, high)
    return _quantiles(logits, weights, order, 1 - low)


def _quantiles(
    logits: Floats, weights: NDArray[np.float64], order: NDArray[np.int64], part: float
) -> NDArray[np.float64]:
    found = []
    for policy in range(logits.shape[1]):
        mine = order[:, policy]
        position = int(np.searchsorted(np.cumsum(weights[mine]), part))
        found.append(float(logits[mine[min(position, len(mine) - 1)], policy]))
    return np.array(found)
