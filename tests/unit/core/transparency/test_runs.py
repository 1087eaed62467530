"""Runs of positions say what a set of positions says, and their text means the same when it is read again."""

import random

import pytest

from app.core.transparency.runs import PositionRuns


def test_runs_are_the_set_that_they_were_made_of():
    chance = random.Random(7)
    for _ in range(200):
        first, second = ({chance.randrange(40) for _ in range(chance.randrange(40))} for _ in range(2))
        runs, size = PositionRuns.of(first), chance.randrange(41)
        assert [position for position in range(41) if position in runs] == sorted(first)
        assert str(PositionRuns.parse(str(runs))) == str(runs)
        both, lower = runs | PositionRuns.of(second), runs.below(size)
        assert {position for position in range(41) if position in both} == first | second
        assert {position for position in range(41) if position in lower} == {at for at in first if at < size}
        assert runs.end == max(first, default=-1) + 1
        assert all(last + 1 < following for (_, last), (following, _) in zip(both, [*both][1:], strict=False))


def test_neighbours_are_one_run():
    assert str(PositionRuns([(5, 9), (0, 2), (3, 4), (11, 11)])) == "0-9,11-11"
    assert (len(PositionRuns([(0, 4), (5, 9)])), len(PositionRuns())) == (1, 0)


@pytest.mark.parametrize("text", ["5", "5-3", "-1-4", "a-b", "0-1;3-4", "1-2-3"])
def test_a_text_that_names_no_runs_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        PositionRuns.parse(text)
