"""Samples of large suites for `make test`: the whole of each runs in another tier, the seed is printed."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
SEED = int(os.environ.get("SLUICE_TEST_SEED", "1"))
"""The same in each process of a run; another one draws other samples."""
WHOLE = os.environ.get("SLUICE_TEST_WHOLE") == "1"
"""Whether properties are tried on all their examples, as `make soak` does."""


def examples(whole: int, sampled: int) -> int:
    """Return how many examples a property is tried on: ``whole`` in `make soak`, ``sampled`` in `make test`."""
    return whole if WHOLE else sampled


def sample(suite: str, population: Sequence[T], count: int) -> list[T]:
    """Return ``count`` different members in their order, the same ones for a suite's name and the seed."""
    chosen = random.Random(f"{SEED} {suite}").sample(range(len(population)), count)
    return [population[number] for number in sorted(chosen)]
