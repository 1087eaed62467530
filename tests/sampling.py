"""Samples of large suites for `make test`: the whole of each runs in another tier, the seed is printed."""

import os
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

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


def take_turns(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return what the marker ``in_turn`` leaves out: each case has one value of its parameter, the next case another.

    Two parameters of two values each leave two of their four pairs, in which every value occurs.
    """
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not WHOLE and hasattr(item, "callspec") and item.get_closest_marker("in_turn"):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for function, cases in functions.items() for item in _out_of_turn(function, cases)]


def _out_of_turn(function: str, cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    named = {name for case in cases for mark in case.iter_markers("in_turn") for name in mark.args}
    values: dict[str, dict[str, int]] = {name: {} for name in named}
    order: dict[str, int] = {}
    places = []
    for case in cases:
        parameters = case.callspec.params
        turn = [_place(values[name], value) for name, value in parameters.items() if name in named]
        others = [(name, value) for name, value in parameters.items() if name not in named]
        places.append((case, turn, _place(order, others)))
    turns = max(map(len, values.values()), default=1) or 1
    start = random.Random(f"{SEED} {function}").randrange(turns)
    return [case for case, turn, number in places if turn and sum(turn, start + number) % turns]


def _place(places: dict[str, int], value: object) -> int:
    """Return the place of ``value`` in the order of appearance, the same one in each process of a run."""
    return places.setdefault(repr(value), len(places))
