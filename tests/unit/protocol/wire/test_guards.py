"""Requests that run are known by their session and number, and no longer than they run."""

from app.protocol.wire.guards import Running


async def test_a_request_can_be_cancelled_while_it_runs_and_is_forgotten_then() -> None:
    running = Running()
    with running.track("s", 1) as first:
        running.cancel("s", 2)
        assert not first.cancel_called
        with running.track("s", 1) as second:
            running.cancel("s", 1)
            assert (first.cancel_called, second.cancel_called) == (False, True)
    assert not running._scopes
