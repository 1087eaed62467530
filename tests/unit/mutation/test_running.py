"""What the exit code and the output of pytest say of a mutant."""

import pytest

from tests.mutation.running import KILLED, SURVIVED, TIMED_OUT, verdict


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
