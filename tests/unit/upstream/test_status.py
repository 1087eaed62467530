"""How long a connection waits before it tries again."""

from app.upstream.status import LONGEST_DELAY_S, delay_s


def test_pauses_between_attempts_double_up_to_a_bound_and_differ():
    assert all(0.05 <= delay_s(1) <= 0.1 for _ in range(50))
    assert all(LONGEST_DELAY_S / 2 <= delay_s(failures) <= LONGEST_DELAY_S for failures in (12, 100, 10_000))
    assert len({delay_s(3) for _ in range(50)}) > 1
