"""Cases that take turns: each value of a marked parameter occurs, and the whole is all of them."""

from collections import Counter
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import pytest

from tests import sampling


class Case:
    """A collected test with its parameters."""

    def __init__(self, name: str, marked: tuple[str, ...], **parameters: int) -> None:
        self.nodeid = f"{name}[{parameters}]"
        self.callspec = SimpleNamespace(params=parameters)
        self.marks = [pytest.mark.in_turn(*marked).mark] if marked else []

    def get_closest_marker(self, _name: str) -> Any:
        return self.marks[0] if self.marks else None

    def iter_markers(self, _name: str) -> list[Any]:
        return self.marks


def kept(cases: list[Any]) -> list[dict[str, int]]:
    waiting = sampling.take_turns(cases)
    return [case.callspec.params for case in cases if case not in waiting]


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WHOLE", False)


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
def test_each_case_has_one_value_and_neighbours_have_different_ones(name: str) -> None:
    cases = [Case(name, ("engine",), engine=engine, shape=shape) for shape in range(6) for engine in range(2)]
    left = kept(cases)
    assert [case["shape"] for case in left] == list(range(6))
    assert all(one["engine"] != other["engine"] for one, other in pairwise(left))


def test_of_two_parameters_alternate_pairs_are_left() -> None:
    pairs = list(product(range(2), repeat=2))
    left = kept([Case("a", ("engine", "revision"), engine=one, revision=two) for one, two in pairs])
    assert Counter(case["engine"] for case in left) == {0: 1, 1: 1}
    assert Counter(case["revision"] for case in left) == {0: 1, 1: 1}


def test_seeds_draw_other_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for seed in range(8):
        monkeypatch.setattr(sampling, "SEED", seed)
        (case,) = kept([Case("a", ("engine",), engine=engine) for engine in range(2)])
        drawn.add(case["engine"])
    assert drawn == {0, 1}


def test_what_is_not_marked_or_has_no_such_parameter_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [Case("a", (), engine=engine) for engine in range(2)]
    other = [Case("b", ("engine",), shape=shape) for shape in range(2)]
    assert len(kept(plain + other)) == 4
    monkeypatch.setattr(sampling, "WHOLE", True)
    assert len(kept([Case("c", ("engine",), engine=engine) for engine in range(2)])) == 2
