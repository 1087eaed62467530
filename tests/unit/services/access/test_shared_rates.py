"""Rates over all processes: the script of the buckets itself, on a server in this process, and a clock that moves."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis, FakeServer
from pydantic import SecretStr

from app.core.contracts.leases import Lease, LeaseRequest
from app.core.contracts.policy import Limits
from app.core.errors import OverloadedError, RateLimitedError
from app.places_wiring import shared_rates
from app.services.access.shared_rates import SharedRates
from app.services.access.traffic import Traffic
from app.settings import ConfigurationError, Settings, TrafficSettings
from app.store.access.redis_buckets import RedisBuckets
from tests.unit.services.access.test_traffic import Clock, limits

NO_AUDIT: Any = None
SLOW = limits(rate=0.001, burst=12)
"""No token comes back while a test runs."""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give exchanges and their pauses all the time that a busy machine takes."""
    monkeypatch.setattr("app.services.access.shared_rates.TIMEOUT_S", 30)
    monkeypatch.setattr("app.store.access.redis_buckets._PRESENT_MS", 60_000)


class Process:
    """A process that serves: it has a connection, leases and the traffic that is held to them."""

    def __init__(self, server: FakeServer) -> None:
        self.heard: list[bool] = []
        self.clock = Clock()
        client = FakeAsyncRedis(server=server, decode_responses=True)
        self.rates = SharedRates(RedisBuckets(client), self._changed, self.clock)
        self.traffic = Traffic(rates=self.rates)

    async def _changed(self, together: bool) -> None:
        self.heard.append(together)

    def admitted(self, times: int, bounds: Limits = SLOW, tenant: str = "a") -> int:
        """Return how many of ``times`` calls are admitted; none of them waits for anything."""
        return sum(self._admits(tenant, bounds) for _ in range(times))

    def _admits(self, tenant: str, bounds: Limits) -> bool:
        try:
            self.traffic.spend(tenant, bounds)
        except RateLimitedError:
            return False
        return True

    async def exhausted(self, bounds: Limits = SLOW) -> int:
        """Return how many calls are admitted until the bucket has nothing more to lease."""
        total = 0
        for _ in range(20):
            total += self.admitted(40, bounds)
            self.clock.now += 0.3
            await self.rates.exchange()
        return total


async def processes(count: int, server: FakeServer) -> list[Process]:
    started = [Process(server) for _ in range(count)]
    for _ in range(2):  # the first to ask knows of the others when it asks again
        for process in started:
            await process.rates.exchange()
    assert [process.rates.processes for process in started] == [count] * count
    return started


async def test_processes_that_are_flooded_together_each_have_their_share_at_once() -> None:
    one, two, three = await processes(3, FakeServer())
    assert [process.admitted(30) for process in (one, two, three)] == [4, 4, 4]
    more = [await process.exhausted() for process in (one, two, three)]
    # Who asks first is given what is not charged yet: together at most the shares once more.
    assert sum(more) <= 12
    assert [await process.exhausted() for process in (one, two, three)] == [0, 0, 0]


async def test_one_process_alone_may_use_the_whole_burst() -> None:
    one, _, _ = await processes(3, FakeServer())
    assert await one.exhausted() == 12


async def test_what_is_admitted_on_credit_is_bounded_and_charged() -> None:
    server = FakeServer()
    one, two, three = await processes(3, server)
    assert await one.exhausted() == 12
    # Each of the others has its share once, and never again: the bucket is below zero.
    assert [await two.exhausted(), await three.exhausted()] == [4, 4]
    assert await one.exhausted() + await two.exhausted() + await three.exhausted() == 0


async def test_each_process_by_itself_would_admit_a_burst_of_its_own() -> None:
    assert [Process(FakeServer()).admitted(30) for _ in range(3)] == [12, 12, 12]


async def test_a_process_by_itself_forgets_a_bucket_only_once_it_is_full_again() -> None:
    server = FakeServer()
    server.connected = False
    alone = Process(server)
    await alone.rates.exchange()
    assert alone.admitted(30) == 12
    alone.clock.now += 500  # half a token
    await alone.rates.exchange()
    assert alone.admitted(30) == 0
    alone.clock.now += 13_000
    await alone.rates.exchange()
    assert alone.admitted(30) == 12


async def test_a_process_that_begins_to_count_by_itself_adds_no_time_that_all_counted_together() -> None:
    server = FakeServer()
    (one,) = await processes(1, server)
    assert await one.exhausted() == 12
    one.clock.now += 6000  # six tokens, which the place has given or withheld
    server.connected = False
    await one.rates.exchange()
    assert one.rates.processes == 0
    assert one.admitted(30) == 0
    one.clock.now += 1000
    assert one.admitted(30) == 1


async def test_the_bucket_of_one_tenant_is_not_anothers() -> None:
    (one,) = await processes(1, FakeServer())
    assert one.admitted(30, tenant="a") == 12
    assert one.admitted(30, tenant="b") == 12


async def test_what_one_process_does_not_use_others_may() -> None:
    idle, busy = await processes(2, FakeServer())
    assert idle.admitted(1) == 1
    await idle.rates.exchange()
    assert await busy.exhausted() == 6
    idle.clock.now += 5
    await idle.rates.exchange()
    assert await busy.exhausted() == 4
    assert idle.admitted(5) == 1


async def test_tokens_come_back_with_the_time_of_the_server() -> None:
    (one,) = await processes(1, FakeServer())
    fast = limits(rate=1e6, burst=3)
    assert one.admitted(3, fast) == 3
    await one.rates.exchange()
    await asyncio.sleep(0.002)
    one.clock.now += 0.3
    await one.rates.exchange()
    assert one.admitted(3, fast) == 3


async def test_without_the_place_each_process_counts_by_itself_and_says_so_once() -> None:
    server = FakeServer()
    (one,) = await processes(1, server)
    assert one.admitted(5) == 5
    await one.rates.exchange()
    server.connected = False
    for _ in range(3):
        await one.rates.exchange()
    await asyncio.sleep(0)
    assert one.rates.processes == 0
    assert one.heard == [False]
    assert one.admitted(30) == 7
    one.clock.now += 1000  # one token, by the clock of this process
    assert one.admitted(30) == 1
    server.connected = True
    for _ in range(3):
        await one.rates.exchange()
    await asyncio.sleep(0)
    assert one.heard == [False, True]
    assert one.rates.processes == 1
    assert one.admitted(30) == 0  # nobody has a share anew because Redis was gone


async def test_what_is_missing_at_the_start_is_said_and_found_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.access.shared_rates._RETRY_S", 0.001)
    server = FakeServer()
    server.connected = False
    one = Process(server)
    async with one.rates.running():
        assert one.admitted(30) == 12
        server.connected = True
        async with asyncio.timeout(20):
            while one.heard != [False, True]:
                await asyncio.sleep(0.001)
        assert one.rates.processes == 1
    assert one.heard == [False, True]


class Silent(RedisBuckets):
    """Takes every question and answers none."""

    def __init__(self) -> None:
        self.left = False

    async def lease(self, requests: Sequence[LeaseRequest]) -> tuple[int, list[Lease]]:
        await asyncio.Event().wait()
        raise AssertionError

    async def leave(self) -> None:
        self.left = True


async def test_a_place_that_is_silent_keeps_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.access.shared_rates.TIMEOUT_S", 0.01)
    heard: list[bool] = []

    async def changed(together: bool) -> None:
        heard.append(together)

    buckets = Silent()
    rates = SharedRates(buckets, changed)
    async with rates.running():
        assert rates.take("calls:a", SLOW) == 0
        await asyncio.sleep(0)
    assert heard == [False]
    assert buckets.left


async def test_a_refusal_says_when_to_come_back() -> None:
    (one,) = await processes(1, FakeServer())
    bounds = limits(rate=2, burst=1)
    assert one.admitted(1, bounds) == 1
    await one.rates.exchange()
    with pytest.raises(RateLimitedError) as refusal:
        one.traffic.spend("a", bounds)
    assert refusal.value.retry_after_s is not None
    assert 0.05 <= refusal.value.retry_after_s <= 0.5


async def test_the_leases_are_kept_in_the_background() -> None:
    one, _ = await processes(2, FakeServer())
    async with one.rates.running():
        bounds = limits(rate=0.001, burst=200)
        total = 0
        async with asyncio.timeout(20):
            while total < 200:
                total += one.admitted(10, bounds)
                await asyncio.sleep(0.001)
        assert one.admitted(10, bounds) == 0


async def test_a_shared_url_without_the_extra_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    url = SecretStr("redis://:hunter2@127.0.0.1/0")
    monkeypatch.delitem(sys.modules, "app.store.access.redis_buckets")
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigurationError) as caught:
        async with shared_rates(Settings(traffic=TrafficSettings(shared_url=url)), NO_AUDIT):
            pass
    (sentence,) = caught.value.faults
    assert "SLUICE_TRAFFIC__SHARED_URL" in sentence
    assert "sluice-mcp[redis]" in sentence
    assert "hunter2" not in sentence


async def test_without_a_shared_url_nothing_is_shared() -> None:
    async with shared_rates(Settings(), NO_AUDIT) as rates:
        assert rates is None


async def running(process: Process, times: int, stack: AsyncExitStack, bounds: Limits) -> int:
    """Return how many of ``times`` calls get in; they run until the stack ends."""
    total = 0
    for _ in range(times):
        with suppress(OverloadedError):
            await stack.enter_async_context(process.traffic.admit("a", bounds))
            total += 1
    return total


async def test_what_is_in_flight_is_capped_over_all_processes() -> None:
    one, two = await processes(2, FakeServer())
    bounds = limits(in_flight=12)
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        assert await running(one, 30, first, bounds) == 6
        await one.rates.exchange()
        assert await running(one, 30, first, bounds) == 6
        # The other always has its share; what one holds beyond its own is not given twice.
        assert await running(two, 30, second, bounds) == 6
        for _ in range(4):
            two.clock.now += 0.3
            await two.rates.exchange()
            assert await running(two, 30, second, bounds) == 0
        await first.aclose()
        one.clock.now += 2
        await one.rates.exchange()
        two.clock.now += 0.3
        assert await running(two, 1, second, bounds) == 0
        await two.rates.exchange()
        assert await running(two, 30, second, bounds) == 6


async def test_calls_to_one_server_are_capped_over_all_processes_too() -> None:
    one, two = await processes(2, FakeServer())
    bounds = limits(in_flight=4)
    with ExitStack() as stack:
        for process in (one, two):
            for _ in range(2):
                stack.enter_context(process.traffic.forwarded("a", "crm", bounds))
            with pytest.raises(OverloadedError):
                stack.enter_context(process.traffic.forwarded("a", "crm", bounds))
        stack.enter_context(one.traffic.forwarded("a", "docs", bounds))


async def test_a_process_alone_has_the_whole_cap() -> None:
    server = FakeServer()
    one, _ = await processes(2, server)
    server.connected = False
    await one.rates.exchange()
    async with AsyncExitStack() as stack:
        assert await running(one, 30, stack, limits(in_flight=12)) == 12
