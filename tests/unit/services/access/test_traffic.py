"""Admission: rates, caps and fairness on a clock that the test moves."""

import asyncio
from collections import Counter

import pytest

from app.core.contracts.policy import Limits
from app.core.errors import DeadlineExceededError, OverloadedError, RateLimitedError
from app.services.access.traffic import Traffic

pytestmark = pytest.mark.timeout(20)
"""A broken queue waits for ever; its test fails in seconds all the same."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def limits(*, rate: float = 1e6, burst: int = 1_000_000, in_flight: int = 1000) -> Limits:
    return Limits(requests_per_second=rate, burst=burst, in_flight=in_flight)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def admitted(traffic: Traffic, tenant: str, bounds: Limits) -> bool:
    try:
        async with traffic.admit(tenant, bounds):
            return True
    except RateLimitedError:
        return False


async def test_a_burst_is_served_and_then_the_rate_holds() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    bounds = limits(rate=10, burst=5)
    assert [await admitted(traffic, "a", bounds) for _ in range(7)] == [True] * 5 + [False] * 2
    clock.now += 0.25
    assert [await admitted(traffic, "a", bounds) for _ in range(4)] == [True, True, False, False]


async def test_the_refusal_says_when_to_come_back() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    bounds = limits(rate=2, burst=1)
    assert await admitted(traffic, "a", bounds)
    with pytest.raises(RateLimitedError) as refusal:
        async with traffic.admit("a", bounds):
            pass
    assert refusal.value.retry_after_s == pytest.approx(0.5)
    assert refusal.value.details == {"limit": "requests_per_second", "value": 2}
    clock.now += 0.5
    assert await admitted(traffic, "a", bounds)


async def test_one_tenants_empty_bucket_does_not_touch_another() -> None:
    traffic = Traffic(clock=Clock())
    bounds = limits(rate=1, burst=1)
    assert await admitted(traffic, "a", bounds)
    assert not await admitted(traffic, "a", bounds)
    assert await admitted(traffic, "b", bounds)


async def test_a_clock_that_steps_back_gives_no_tokens() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    bounds = limits(rate=1, burst=1)
    assert await admitted(traffic, "a", bounds)
    clock.now -= 500
    assert not await admitted(traffic, "a", bounds)


async def test_changed_limits_hold_from_the_next_request() -> None:
    traffic = Traffic(clock=Clock())
    assert await admitted(traffic, "a", limits(rate=1, burst=100))
    assert await admitted(traffic, "a", limits(rate=1, burst=1))
    assert not await admitted(traffic, "a", limits(rate=1, burst=1))


async def test_requests_over_the_in_flight_cap_are_refused_and_the_slot_comes_back() -> None:
    traffic = Traffic(clock=Clock())
    bounds = limits(in_flight=2)
    async with traffic.admit("a", bounds), traffic.admit("a", bounds):
        with pytest.raises(OverloadedError) as refusal:
            async with asyncio.timeout(1), traffic.admit("a", bounds):
                pass
        assert refusal.value.details == {"limit": "in_flight", "value": 2}
        assert refusal.value.retry_after_s
        assert await admitted(traffic, "b", bounds)
    assert await admitted(traffic, "a", bounds)
    assert traffic.running == 0


async def test_a_failing_request_gives_its_slot_back() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    with pytest.raises(ZeroDivisionError):
        async with traffic.admit("a", limits()):
            raise ZeroDivisionError
    assert await admitted(traffic, "a", limits())


async def _serve(traffic: Traffic, tenant: str, served: list[str]) -> None:
    async with traffic.admit(tenant, limits()):
        served.append(tenant)
        await asyncio.sleep(0)


async def test_free_slots_go_round_robin_so_a_noisy_tenant_delays_only_itself() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []
    async with traffic.admit("other", limits()):
        noisy = [asyncio.create_task(_serve(traffic, "noisy", served)) for _ in range(40)]
        await settle()
        quiet = [asyncio.create_task(_serve(traffic, f"quiet{i}", served)) for i in range(4)]
        await settle()
        assert traffic.waiting == 44
    await asyncio.gather(*noisy, *quiet)
    assert Counter(served[:5]) == Counter(["noisy", "quiet0", "quiet1", "quiet2", "quiet3"])
    assert (traffic.running, traffic.waiting) == (0, 0)


async def test_a_single_queue_would_fail_the_fairness_test() -> None:
    """Negative control: with everybody in one lane the quiet requests come last."""
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []

    async def serve(name: str) -> None:
        async with traffic.admit("everybody", limits()):
            served.append(name)

    async with traffic.admit("other", limits()):
        tasks = [asyncio.create_task(serve(name)) for name in [*["noisy"] * 40, "quiet"]]
        await settle()
    await asyncio.gather(*tasks)
    assert served[-1] == "quiet"


async def test_the_queue_of_a_tenant_is_bounded_and_others_still_get_in_line() -> None:
    traffic = Traffic(slots=1, queue_per_tenant=2, clock=Clock())
    served: list[str] = []
    async with traffic.admit("a", limits()):
        waiting = [asyncio.create_task(_serve(traffic, "a", served)) for _ in range(2)]
        await settle()
        with pytest.raises(OverloadedError) as refusal:
            # Without its limit the request would wait in the queue, for as long as the test does.
            async with asyncio.timeout(1), traffic.admit("a", limits()):
                pass
        assert refusal.value.details == {"limit": "queue_per_tenant", "value": 2}
        waiting.append(asyncio.create_task(_serve(traffic, "b", served)))
        await settle()
    await asyncio.gather(*waiting)
    assert sorted(served) == ["a", "a", "b"]


async def test_whoever_stops_waiting_leaves_no_trace() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []
    async with traffic.admit("a", limits()):
        gone = [asyncio.create_task(_serve(traffic, "b", served)) for _ in range(3)]
        stays = asyncio.create_task(_serve(traffic, "c", served))
        await settle()
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        assert traffic.waiting == 1
    await stays
    assert (served, traffic.running, traffic.waiting) == (["c"], 0, 0)


async def test_a_slot_that_arrives_with_a_cancellation_is_handed_on() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []
    async with traffic.admit("a", limits()):
        gone = asyncio.create_task(_serve(traffic, "b", served))
        await settle()
        stays = asyncio.create_task(_serve(traffic, "c", served))
        await settle()
    gone.cancel()  # its turn has come, but it has not run yet
    await asyncio.gather(gone, stays, return_exceptions=True)
    assert (served, traffic.running) == (["c"], 0)


async def test_a_cancelled_waiter_is_passed_over_before_it_wakes() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []
    async with traffic.admit("a", limits()):
        gone = asyncio.create_task(_serve(traffic, "b", served))
        stays = asyncio.create_task(_serve(traffic, "c", served))
        await settle()
        gone.cancel()  # not yet woken when the slot becomes free
    await asyncio.gather(gone, stays, return_exceptions=True)
    assert (served, traffic.running, traffic.waiting) == (["c"], 0, 0)


async def test_any_mix_of_work_and_cancellation_returns_every_slot() -> None:
    traffic = Traffic(slots=3, queue_per_tenant=50, clock=Clock())
    served: list[str] = []
    tasks = [asyncio.create_task(_serve(traffic, f"t{i % 7}", served)) for i in range(200)]
    for number in range(0, 200, 3):
        await asyncio.sleep(0)
        tasks[number].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (traffic.running, traffic.waiting) == (0, 0)
    assert len(served) >= 133


async def test_tenants_that_went_quiet_are_forgotten_and_busy_ones_are_not() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    slow = limits(rate=0.001, burst=1)
    assert await admitted(traffic, "slow", slow)
    for number in range(5000):
        clock.now += 0.01
        assert await admitted(traffic, f"t{number}", limits(rate=1000, burst=2))
    assert len(traffic._lanes) < 4200
    assert not await admitted(traffic, "slow", slow)


async def test_a_tenant_with_requests_in_flight_is_not_forgotten_however_full_its_bucket_is() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    one = limits(in_flight=1)
    async with traffic.admit("busy", one):
        clock.now += 1000
        for number in range(5000):
            assert await admitted(traffic, f"t{number}", limits())
        with pytest.raises(OverloadedError):
            async with asyncio.timeout(1), traffic.admit("busy", one):
                pass
    assert await admitted(traffic, "busy", one)


async def test_a_tenant_whose_bucket_is_full_again_at_this_very_moment_is_forgotten() -> None:
    clock = Clock()
    traffic = Traffic(clock=clock)
    for number in range(4096):
        assert await admitted(traffic, f"t{number}", limits(rate=1, burst=2))
    clock.now += 1
    assert await admitted(traffic, "another", limits())
    assert list(traffic._lanes) == ["another"]


async def test_requests_that_wait_count_as_in_flight() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    served: list[str] = []
    async with traffic.admit("other", limits()):
        waiting = asyncio.create_task(_serve(traffic, "a", served))
        await settle()
        with pytest.raises(OverloadedError) as refusal:
            async with asyncio.timeout(1), traffic.admit("a", limits(in_flight=1)):
                pass
        assert refusal.value.details["limit"] == "in_flight"
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        waiting = asyncio.create_task(_serve(traffic, "a", served))
        await settle()
    await waiting
    assert await admitted(traffic, "a", limits(in_flight=1)), "whoever gave up waiting is not in flight"


async def test_as_many_requests_run_at_once_as_there_are_slots() -> None:
    traffic = Traffic(slots=2, clock=Clock())
    served: list[str] = []
    async with traffic.admit("a", limits()), traffic.admit("b", limits()):
        assert traffic.running == 2
        waiting = asyncio.create_task(_serve(traffic, "c", served))
        await settle()
        assert (traffic.running, traffic.waiting, served) == (2, 1, [])
    await waiting


async def test_the_pause_is_never_too_short_to_be_worth_it() -> None:
    traffic = Traffic(clock=Clock())
    fast = limits(rate=1e6, burst=1)
    assert await admitted(traffic, "a", fast)
    with pytest.raises(RateLimitedError) as refusal:
        traffic.spend("a", fast)
    assert refusal.value.retry_after_s == 0.01


async def test_whoever_waits_for_a_turn_too_long_is_told_that_nothing_was_done() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    until = asyncio.get_running_loop().time() + 0.01
    async with traffic.admit("a", limits()):
        with pytest.raises(DeadlineExceededError) as refusal:
            async with asyncio.timeout(5), traffic.turn("b", limits(), until):
                pass
        assert refusal.value.details == {"deadline_ms": 30_000}
    async with traffic.turn("b", limits(), asyncio.get_running_loop().time() + 5):
        assert traffic.running == 1
    assert (traffic.running, traffic.waiting) == (0, 0)


async def test_requests_that_are_only_counted_have_limits_that_no_policy_changes() -> None:
    traffic = Traffic(plain=limits(rate=0.001, burst=1), clock=Clock())
    assert await admitted(traffic, "b", limits())
    await traffic.count("a")
    with pytest.raises(RateLimitedError):
        await traffic.count("a")


async def test_a_request_that_only_counts_takes_a_token_and_nothing_else() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    traffic.spend("a", limits(rate=0.001, burst=2))
    traffic.spend("a", limits(rate=0.001, burst=2))
    with pytest.raises(RateLimitedError):
        traffic.spend("a", limits(rate=0.001, burst=2))
    assert traffic.running == 0


async def test_calls_to_servers_hold_no_slot_and_are_capped_for_each_server_of_a_tenant() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    few = limits(in_flight=2)
    with traffic.forwarded("a", "x", few), traffic.forwarded("a", "x", few):
        with pytest.raises(OverloadedError), traffic.forwarded("a", "x", few):
            pass
        with traffic.forwarded("a", "y", few), traffic.forwarded("b", "x", few):
            assert traffic.running == 0
            assert await admitted(traffic, "a", few)
    with traffic.forwarded("a", "x", few):
        pass
    assert traffic._forwarded == {}


async def test_work_within_a_counted_request_waits_for_a_slot_without_a_token() -> None:
    traffic = Traffic(slots=1, clock=Clock())
    once = limits(burst=1)
    until = asyncio.get_running_loop().time() + 5
    async with traffic.admit("a", once):
        waiting = asyncio.create_task(_slot(traffic, "a", once, until))
        await settle()
        assert not waiting.done()
    assert await waiting == 1
    with pytest.raises(DeadlineExceededError):
        async with traffic.slot("a", once, until):
            await _slot(traffic, "a", once, asyncio.get_running_loop().time())
    assert (traffic.running, traffic.waiting) == (0, 0)


async def _slot(traffic: Traffic, tenant: str, bounds: Limits, until: float) -> int:
    async with traffic.slot(tenant, bounds, until):
        return traffic.running
