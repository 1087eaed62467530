"""Intervals of figures: draw the items of a set again, with replacement, and see how far the figure moves."""

from collections.abc import Callable, Sequence

import numpy as np

ROUNDS = 1_000
_PARTS = (2.5, 97.5)


def share(hits: Sequence[bool]) -> str:
    """Return the share of hits with its 95 % interval: ``.953 (.941-.964)``."""
    values = np.asarray(hits, dtype=float)
    return of(len(values), lambda chosen: float(values[chosen].mean()))


def of(size: int, figure: Callable[[np.ndarray], float]) -> str:
    """Return ``figure`` of all items and its 95 % interval over sets of as many items, drawn again."""
    draw = np.random.default_rng(15)
    drawn = [figure(draw.integers(0, size, size)) for _ in range(ROUNDS)]
    low, high = np.percentile(drawn, _PARTS)
    return f"{written(figure(np.arange(size)))} ({written(low)}-{written(high)})"


def of_sets(by_set: Sequence[Sequence[float]]) -> str:
    """Return the mean of the sets' means and its 95 % interval; each set is drawn again by itself."""
    draw = np.random.default_rng(15)
    sets = [np.asarray(values, dtype=float) for values in by_set]
    drawn = [
        np.mean([values[draw.integers(0, len(values), len(values))].mean() for values in sets])
        for _ in range(ROUNDS)
    ]
    low, high = np.percentile(drawn, _PARTS)
    mean = float(np.mean([values.mean() for values in sets]))
    return f"{written(mean)} ({written(low)}-{written(high)})"


def rate(counts: Sequence[int], sizes: Sequence[int], unit: int) -> str:
    """Return how many there are in ``unit`` of size, with its 95 % interval over the texts."""
    found, length = np.asarray(counts), np.asarray(sizes)
    return of(len(found), lambda chosen: float(found[chosen].sum() / length[chosen].sum() * unit))


def written(value: float) -> str:
    """Return a figure with three digits behind the point."""
    return f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"
