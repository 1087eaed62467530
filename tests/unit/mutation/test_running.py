"""What the exit code and the output of pytest say of a mutant."""

import contextlib

import pytest

from tests.mutation.running import KILLED, SURVIVED, TIMED_OUT, judge, verdict
from tests.mutation.selecting import RecordedTest


@pytest.mark.parametrize(
    ("code", "output", "said"),
    [
        (0, "3 passed", SURVIVED),
        (1, "FAILED tests/a.py::t - assert 1 == 2", KILLED),
        (-11, "", KILLED),
        (None, "", TIMED_OUT),
        (1, "E   Failed: Timeout (>60.0s) from pytest-timeout.", TIMED_OUT),
        (4, "ERROR collecting tests/a.py\nERROR: not found: tests/a.py::t", KILLED),
    ],
)
def test_the_end_of_pytest_tells_what_became_of_a_mutant(code, output, said):
    assert verdict(code, output) == said


def test_a_test_that_is_gone_kills_no_mutant():
    with pytest.raises(RuntimeError, match="gone"):
        verdict(4, "ERROR: not found: tests/a.py::t")


class ScriptedTree:
    """Answers each run of tests as the script says, and notes which tests it was given."""

    def __init__(self, *answers):
        self.answers, self.runs = list(answers), []

    def holding(self, _mutant):
        return contextlib.nullcontext()

    def run(self, tests, _limit_s, _test_limit_s):
        self.runs.append(list(tests))
        return self.answers.pop(0)


TABLE = {"mutant_limit_s": 100, "test_limit_s": 60}
UNIT, OTHER = "tests/unit/test_a.py::t", "tests/protocol/test_b.py::t"
LATER = "tests/protocol/test_c.py::t"


def judged(tree, *names):
    tests = [RecordedTest(name, 1.0, 1) for name in names]
    made = judge(tree, None, tests, len(tests), TABLE)
    return made.outcome, made.killer


def test_a_failed_unit_test_kills_at_once():
    assert judged(ScriptedTree((1, f"FAILED {UNIT} - assert 1 == 2")), UNIT, OTHER) == (KILLED, UNIT)


def test_a_failure_that_does_not_come_again_kills_nothing_and_the_tests_go_on():
    tree = ScriptedTree((1, f"FAILED {OTHER} - OSError"), (0, ""), (0, ""))
    assert judged(tree, UNIT, OTHER, LATER) == (SURVIVED, "")
    assert tree.runs == [[UNIT, OTHER, LATER], [OTHER], [LATER]]


def test_a_failure_that_comes_again_kills():
    tree = ScriptedTree((1, f"FAILED {OTHER} - OSError"), (1, f"FAILED {OTHER} - OSError"))
    assert judged(tree, UNIT, OTHER) == (KILLED, OTHER)


def test_a_test_that_was_late_once_is_given_another_chance():
    late = f"FAILED {UNIT} - Failed: Timeout (>60.0s) from pytest-timeout."
    assert judged(ScriptedTree((1, late), (0, "")), UNIT) == (SURVIVED, "")
    assert judged(ScriptedTree((1, late), (1, late)), UNIT) == (TIMED_OUT, UNIT)


def test_a_mutant_that_no_test_reaches_survives():
    assert judged(ScriptedTree()) == (SURVIVED, "")
