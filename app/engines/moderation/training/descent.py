"""Sparse rows and L-BFGS in numpy: the recipe needs nothing that the service does not have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engines.moderation.model import Floats

MEMORY = 8
LEAST_GAIN = 1e-6
STEEP_ENOUGH = 1e-4
MOST_TRIALS = 20

Vector = NDArray[np.float64]
Loss = Callable[[Vector], tuple[float, Vector]]


@dataclass(frozen=True, slots=True)
class SparseRows:
    """A matrix by its rows, none of which is empty: ``starts`` are the offsets of the rows in the other arrays."""

    columns: NDArray[np.int64]
    values: Floats
    starts: NDArray[np.int64]
    width: int

    @classmethod
    def of(cls, rows: Sequence[tuple[NDArray[np.int64], Floats]], width: int) -> "SparseRows":
        """Return the matrix whose rows have these columns and values."""
        lengths = [len(columns) for columns, _ in rows]
        return cls(
            np.concatenate([columns for columns, _ in rows]),
            np.concatenate([values for _, values in rows]),
            np.append(0, np.cumsum(lengths))[:-1],
            width,
        )

    def lengths(self) -> NDArray[np.int64]:
        """Return how many entries each row has."""
        return np.diff(self.starts, append=len(self.columns))

    def __getitem__(self, rows: NDArray[np.int64]) -> "SparseRows":
        lengths = self.lengths()[rows]
        starts = np.append(0, np.cumsum(lengths))[:-1]
        places = np.repeat(self.starts[rows] - starts, lengths) + np.arange(int(lengths.sum()))
        return SparseRows(self.columns[places], self.values[places], starts, self.width)

    def times(self, factors: Floats) -> Floats:
        """Return the product with a vector."""
        products: Floats = np.add.reduceat(self.values * factors[self.columns], self.starts)
        return products

    def transposed(self) -> "Transposed":
        """Return the same entries by columns."""
        order = np.argsort(self.columns, kind="stable")
        columns = self.columns[order]
        starts = np.flatnonzero(np.append(True, columns[1:] != columns[:-1]))
        rows = np.repeat(np.arange(len(self.starts)), self.lengths())[order]
        return Transposed(rows, self.values[order], starts, columns[starts], self.width)


@dataclass(frozen=True, slots=True)
class Transposed:
    """A sparse matrix by its columns; only those that occur are stored."""

    rows: NDArray[np.int64]
    values: Floats
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    width: int

    def times(self, factors: Floats) -> Floats:
        """Return the product of the transposed matrix with a vector."""
        found = np.zeros(self.width, dtype=np.float32)
        found[self.columns] = np.add.reduceat(self.values * factors[self.rows], self.starts)
        return found


def minimized(loss: Loss, start: Vector, rounds: int) -> Vector:
    """Return where a smooth convex ``loss`` (value and gradient) is least: L-BFGS with backtracking."""
    point = start
    value, gradient = loss(point)
    steps: list[Vector] = []
    changes: list[Vector] = []
    for _ in range(rounds):
        direction = -_inverse_times(gradient, steps, changes)
        slope = float(gradient @ direction)
        size = 1.0 if steps else 1.0 / max(float(np.abs(gradient).sum()), 1e-12)
        for _trial in range(MOST_TRIALS):
            following = point + size * direction
            reached, risen = loss(following)
            if reached <= value + STEEP_ENOUGH * size * slope:
                break
            size /= 2
        else:
            return point
        gained = value - reached
        if float((following - point) @ (risen - gradient)) > 0:
            steps = [*steps, following - point][-MEMORY:]
            changes = [*changes, risen - gradient][-MEMORY:]
        point, value, gradient = following, reached, risen
        if gained < LEAST_GAIN * abs(value):
            break
    return point


def _inverse_times(gradient: Vector, steps: list[Vector], changes: list[Vector]) -> Vector:
    """Return the product of the inverse Hessian, as far as the last steps tell it, with ``gradient``."""
    direction = gradient.copy()
    pairs = list(zip(steps, changes, strict=True))
    amounts = []
    for step, change in reversed(pairs):
        amount = float(step @ direction) / float(step @ change)
        direction -= amount * change
        amounts.append(amount)
    if pairs:
        step, change = pairs[-1]
        direction *= float(step @ change) / float(change @ change)
    for (step, change), amount in zip(pairs, reversed(amounts), strict=True):
        direction += (amount - float(change @ direction) / float(step @ change)) * step
    return direction
