"""The guard around an engine elsewhere: circuit, limit, fallback, shadow; without any network."""

import asyncio

import pytest

from app.core.contracts.engines import EngineReport, Grounding
from app.core.deadlines import TimeLimit, remaining_s
from app.core.errors import UpstreamUnavailableError
from app.engines.resilience import Breaker, EngineFallback, RemoteEngineError, Rules, State

REMOTE = Grounding([0.1], EngineReport("remote", "1"))
EMBEDDED = Grounding([0.9], EngineReport("embedded", "1"))
FALLEN = Grounding([0.9], EngineReport("embedded", "1", degraded=True))


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


async def embedded():
    return EMBEDDED


async def healthy():
    return REMOTE


async def failing():
    raise RemoteEngineError("status 500")


async def hanging():
    await asyncio.Event().wait()


def guard(clock=None, **rules):
    told = []
    made = EngineFallback(
        "grounding",
        Rules(**rules),
        lambda one, other: one.scores == other.scores,
        lambda _capability, outcome: told.append(outcome),
        clock or Clock(),
    )
    return made, told


def test_a_breaker_opens_after_failures_in_a_row_only():
    breaker = Breaker(2, 10, Clock())
    assert not breaker.failed()
    breaker.succeeded()
    assert not breaker.failed()
    assert breaker.admits()
    assert breaker.failed()
    assert breaker.state is State.OPEN
    assert not breaker.admits()


def test_an_open_breaker_lets_one_probe_through_after_its_pause():
    clock = Clock()
    breaker = Breaker(1, 10, clock)
    breaker.failed()
    clock.now = 9.9
    assert not breaker.admits()
    clock.now = 10
    assert breaker.admits()
    assert breaker.state is State.HALF_OPEN
    assert not breaker.admits()  # the others do not wait for the probe


@pytest.mark.parametrize(("answered", "state"), [(True, State.CLOSED), (False, State.OPEN)])
def test_the_probe_decides(answered, state):
    clock = Clock()
    breaker = Breaker(1, 10, clock)
    breaker.failed()
    clock.now = 20
    breaker.admits()
    breaker.succeeded() if answered else breaker.failed()
    assert breaker.state is state
    assert breaker.admits() is answered


def test_a_probe_whose_caller_left_is_tried_again():
    clock = Clock()
    breaker = Breaker(1, 10, clock)
    breaker.failed()
    clock.now = 20
    breaker.admits()
    breaker.abandoned()
    assert breaker.admits()


def test_a_failure_that_comes_late_does_not_prolong_the_pause_as_a_new_one():
    clock = Clock()
    breaker = Breaker(1, 10, clock)
    assert breaker.failed()
    assert not breaker.failed()  # of a call that was already under way


async def test_a_healthy_engine_serves_and_is_not_degraded():
    one, told = guard()
    assert await one.call(healthy, embedded) is REMOTE
    assert told == ["served"]


async def test_a_failing_engine_is_replaced_and_the_result_says_so():
    one, told = guard()
    assert await one.call(failing, embedded) == FALLEN
    assert told == ["fallback"]


async def test_a_hanging_engine_is_replaced_after_its_limit():
    one, _ = guard(timeout_s=0.05)
    assert await one.call(hanging, embedded) == FALLEN


async def test_without_fallback_the_refusal_says_when_to_try_again():
    one, told = guard(fallback=False, cool_down_s=7)
    with pytest.raises(UpstreamUnavailableError) as caught:
        await one.call(failing, embedded)
    assert caught.value.retry_after_s == 7
    assert told == ["refused"]


async def test_a_fault_of_our_own_is_not_hidden_by_the_fallback():
    one, _ = guard()

    async def wrong():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await one.call(wrong, embedded)


async def test_when_the_embedded_engine_fails_too_its_error_stands():
    async def absent():
        raise UpstreamUnavailableError("The encoder is not installed.")

    one, _ = guard()
    with pytest.raises(UpstreamUnavailableError, match="encoder"):
        await one.call(failing, absent)


async def test_a_cancelled_probe_leaves_the_circuit_ready_for_another():
    clock = Clock()
    one, _ = guard(clock, failures=1, cool_down_s=10, timeout_s=60)
    await one.call(failing, embedded)
    clock.now = 20
    probe = asyncio.create_task(one.call(hanging, embedded))
    await asyncio.sleep(0)
    assert await one.call(healthy, embedded) == FALLEN  # nobody else is let through meanwhile
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await one.call(healthy, embedded) is REMOTE


async def test_the_engine_elsewhere_may_use_half_of_the_time_that_is_left():
    loop, seen = asyncio.get_running_loop(), []

    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(remaining_s())

    one, _ = guard(timeout_s=60)
    async with TimeLimit(loop.time() + 2):
        assert await one.call(slow, embedded) == FALLEN
    assert 0 < seen[0] <= 1


async def test_callers_in_a_hurry_do_not_take_the_engine_away_from_others():
    loop = asyncio.get_running_loop()
    one, told = guard(timeout_s=60, failures=1)
    async with TimeLimit(loop.time() + 2):
        assert await one.call(hanging, embedded) == FALLEN
    assert one.breaker.state is State.CLOSED
    assert await one.call(healthy, embedded) is REMOTE
    assert told == ["fallback", "served"]


async def test_time_limits_end_the_block_and_are_forgotten_after_it():
    loop = asyncio.get_running_loop()
    assert remaining_s() is None

    async def endless():
        async with TimeLimit(loop.time() + 0.01):
            assert remaining_s() <= 0.01
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        await endless()
    assert remaining_s() is None


async def test_tasks_that_a_call_starts_know_its_limit():
    loop = asyncio.get_running_loop()

    async def left():
        return remaining_s()

    async with TimeLimit(loop.time() + 60):
        assert await asyncio.create_task(left()) > 0


async def test_a_shadow_is_compared_and_never_serves():
    one, told = guard(shadow=True)
    assert await one.call(healthy, embedded) is EMBEDDED
    await one._shadows.wait()
    assert await one.call(embedded, embedded) is EMBEDDED
    await one._shadows.wait()
    assert told == ["differed", "agreed"]


async def test_a_failing_shadow_degrades_nothing_and_is_left_alone_in_the_end():
    one, told = guard(shadow=True, failures=2)
    for _ in range(4):
        assert await one.call(failing, embedded) is EMBEDDED
        await one._shadows.wait()
    assert told == ["shadow_failed"] * 2
    assert one.breaker.state is State.OPEN
