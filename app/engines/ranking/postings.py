"""Sparse columns: for each term, the tools that have it and its weight there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Postings:
    """The non-zero cells of a matrix of terms and tools, term by term.

    ``keys`` are the terms (hashes or numbers), ascending; the cells of ``keys[i]`` are ``starts[i]:starts[i + 1]``.
    """

    keys: Ints
    starts: Ints
    tools: NDArray[np.int32]
    weights: Floats
    count: int

    @classmethod
    def build(cls, keys: Ints, tools: Ints, weights: NDArray[np.floating[Any]], count: int) -> "Postings":
        """Build from cells in any order, each at most once."""
        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        ends = np.append(starts, len(keys)).astype(np.int64)
        return cls(distinct, ends, tools[order].astype(np.int32), weights[order].astype(np.float32), count)

    def frequency(self, keys: Ints) -> Ints:
        """Return for each of ``keys`` how many tools have it."""
        where, present = self._locate(keys)
        lengths = np.zeros(len(keys), dtype=np.int64)
        lengths[present] = self.starts[where[present] + 1] - self.starts[where[present]]
        return lengths

    def scores(self, keys: Ints, weights: Floats) -> Floats:
        """Return for each tool the sum over ``keys`` of its weight in the tool times its weight in ``weights``."""
        where, present = self._locate(keys)
        rows, factors = where[present], weights[present]
        begins = self.starts[rows]
        lengths = self.starts[rows + 1] - begins
        total = int(lengths.sum())
        if not total:
            return np.zeros(self.count, dtype=np.float32)
        shifts = np.repeat(begins - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        cells = shifts + np.arange(total)
        parts = self.weights[cells] * np.repeat(factors, lengths)
        return np.bincount(self.tools[cells], weights=parts, minlength=self.count).astype(np.float32)

    def _locate(self, keys: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        if not len(self.keys) or not len(keys):
            return np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        where = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return where, self.keys[where] == keys


def counted(columns: Sequence[Ints]) -> tuple[Ints, Ints, Ints]:
    """Return the cells ``(key, tool, count)`` of one column of keys for each tool."""
    keys, tools, counts = [], [], []
    for tool, column in enumerate(columns):
        distinct, often = np.unique(column, return_counts=True)
        keys.append(distinct)
        tools.append(np.full(len(distinct), tool, dtype=np.int64))
        counts.append(often.astype(np.int64))
    empty = [np.empty(0, dtype=np.int64)]
    return tuple(np.concatenate(part or empty) for part in (keys, tools, counts))  # type: ignore[return-value]
