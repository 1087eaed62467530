"""One of five servers misbehaves: the four others answer every call rightly, and the fifth comes back."""

import asyncio
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest

from app.core.errors import ServiceError
from app.upstream.aggregator import AggregatorOptions, MCPAggregator
from app.upstream.registry import MCPServerSettings, ServerRegistry
from tests.integration.upstream_setup import CUT_STREAMS, free_port, leftovers, serving, until
from tests.sampling import examples
from tests.upstreams import misbehaving as faults
from tests.upstreams.misbehaving import TOOLS, misbehaving
from tests.upstreams.warm import warm_settings

pytestmark = pytest.mark.filterwarnings(CUT_STREAMS)

OTHERS = ("a", "b", "c", "d")
CALLS, WORKERS = examples(25, 5), 2
LONGEST_TURN_S = 3
"""A turn of the loop takes some 15 ms; reading a gigabyte to its end would take far longer."""

OPTIONS = AggregatorOptions(connect_timeout_s=2, max_result_bytes=2 * 1024 * 1024)


@pytest.fixture(scope="module")
def others():
    """Serve four good servers: two speak the modern revision, two only what came before."""
    with ExitStack() as stack:
        reaches = zip(OTHERS, ("http modern", "http modern", "sse", "sse"), strict=True)
        yield {name: stack.enter_context(serving(reach, name)).settings for name, reach in reaches}


def faulty_settings(server, **more):
    return MCPServerSettings(**{"url": server.url, "timeout_s": 3, **more})


async def ready(aggregator):
    """Wait for the good servers: on a busy machine a first connect may need a second attempt."""
    await until(lambda: all(aggregator.connections[name].status.state == "ready" for name in OTHERS))


async def worker(aggregator, server, latencies):
    """Call a good server again and again; a wrong answer or an error fails the test."""
    for number in range(CALLS):
        began = time.perf_counter()
        result = await aggregator.call_tool(f"{server}__add", {"a": number, "b": 1000})
        latencies.append(time.perf_counter() - began)
        assert result.content[0].text == str(number + 1000)


async def burst(aggregator):
    """Return how long each of the good servers' calls took."""
    latencies = []
    async with asyncio.TaskGroup() as group:
        for server in OTHERS * WORKERS:
            group.create_task(worker(aggregator, server, latencies))
    assert len(latencies) == CALLS * WORKERS * len(OTHERS)
    return latencies


async def pester(aggregator, tool, outcomes, stop):
    """Call the faulty server until told to stop, and count what came of it."""
    while not stop.is_set():
        try:
            await aggregator.call_tool(tool, {}, "faulty")
        except ServiceError as error:
            outcomes[error.code] += 1
        else:
            outcomes["answered"] += 1
        await asyncio.sleep(0.005)


async def longest_turn_s(stop):
    """Return the longest CPU time for which the loop served no one; waiting for the machine does not count."""
    longest_s, began = 0.0, time.thread_time()
    while not stop.is_set():
        await asyncio.sleep(0.001)
        now = time.thread_time()
        longest_s, began = max(longest_s, now - began), now
    return longest_s


async def during(aggregator, tool, meanwhile=None, expected=None):
    """Run a burst while the faulty server is pestered; return its latencies and the outcomes at the faulty one.

    It lasts until ``expected``, if any, was among them.
    """
    outcomes, stop = Counter(), asyncio.Event()
    turns = asyncio.create_task(longest_turn_s(stop))
    pestering = [asyncio.create_task(pester(aggregator, tool, outcomes, stop)) for _ in range(3)]
    try:
        if meanwhile is not None:
            await meanwhile()
        latencies = await burst(aggregator)
        await until(lambda: outcomes.total() >= len(pestering) and (not expected or outcomes[expected]))
        return latencies, outcomes
    finally:
        stop.set()
        await asyncio.gather(*pestering)
        assert await turns < LONGEST_TURN_S, "one server's answers held the loop"


def report(fault, without, within):
    def p99(latencies):
        return 1000 * sorted(latencies)[int(0.99 * len(latencies))]

    print(f"{fault}: p99 of the others {p99(without):.1f} ms without, {p99(within):.1f} ms with the fault")


async def hung_up_on(server, method):
    """Wait until no answer of ``method`` that has begun is still read: each is far longer than what may be read."""
    attempts = server.methods().count(method)
    assert attempts > 0
    await until(lambda: server.hung_up >= attempts)


async def recovered(aggregator, tool):
    async with asyncio.timeout(60):
        while True:
            try:
                return await aggregator.call_tool(tool, {}, "faulty")
            except ServiceError:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("hang", "deadline_exceeded"),
        ("drip", "deadline_exceeded"),
        ("silent_stream", "deadline_exceeded"),
        ("huge", "too_large"),
        ("huge_stream", "too_large"),
        ("many_headers", "upstream_unavailable"),
        ("garbage", "upstream_unavailable"),
        ("nan", "upstream_unavailable"),
        ("no_http", "upstream_unavailable"),
        ("broken_stream", "deadline_exceeded"),
        ("cut", "upstream_unavailable"),
        ("fault", "upstream_unavailable"),
        ("lost", "upstream_unavailable"),
    ],
)
async def test_calls_that_go_wrong_at_one_server_harm_no_other(fault, code, others):
    with misbehaving() as server:
        registry = ServerRegistry({**others, "faulty": faulty_settings(server)})
        async with MCPAggregator(registry, options=OPTIONS) as aggregator:
            await aggregator.settled()
            await ready(aggregator)
            without, outcomes = await during(aggregator, "verbatim")
            assert set(outcomes) == {"answered"}, "the control: without a fault the fifth answers, too"
            server.on["tools/call"] = TOOLS[fault]
            within, outcomes = await during(aggregator, "verbatim", expected=code)
            report(fault, without, within)
            # A connection that was given up for lost fails whoever else used it.
            assert set(outcomes) <= {code, "upstream_unavailable"}
            del server.on["tools/call"]
            assert (await recovered(aggregator, "verbatim")).structured_content
            assert all(aggregator.connections[name].status.generation == 1 for name in OTHERS)


@pytest.mark.parametrize("method", ["initialize", "tools/list"])
@pytest.mark.parametrize("fault", ["hang", "drip", "huge", "garbage", "cut"])
async def test_a_server_that_cannot_be_connected_or_listed_is_reported_and_hides_no_other(
    method, fault, others
):
    with misbehaving(on={method: TOOLS[fault]}) as server:
        registry = ServerRegistry({"faulty": faulty_settings(server), **others})
        async with MCPAggregator(registry, options=OPTIONS) as aggregator:
            within, outcomes = await during(aggregator, "verbatim", partial(ready, aggregator))
            assert within
            assert outcomes["answered"] == 0
            await until(lambda: aggregator.connections["faulty"].status.state == "failed")
            assert "faulty" in aggregator.connections["faulty"].status.error
            listed = await aggregator.list_tools(return_server_mapping=True)
            assert list(listed) == list(OTHERS)
            if fault in {"huge", "drip"}:
                await hung_up_on(server, method)
            del server.on[method]
            server.on |= {method: faults.PROTOCOL[method]}
            assert (await recovered(aggregator, "verbatim")).structured_content
            assert aggregator.connections["faulty"].status.state == "ready"
            assert list(await aggregator.list_tools(return_server_mapping=True)) == [*OTHERS, "faulty"]


async def test_pages_without_end_are_given_up(others):
    async def endless(exchange):
        page = int((exchange.body["params"] or {}).get("cursor", 0))
        tools = [{"name": f"t{page}", "inputSchema": {"type": "object"}}]
        await exchange.answer({"tools": tools, "nextCursor": str(page + 1)})

    with misbehaving(on={"tools/list": endless}) as server:
        registry = ServerRegistry({"faulty": faulty_settings(server), **others})
        async with MCPAggregator(registry, options=OPTIONS) as aggregator:
            await ready(aggregator)
            assert await burst(aggregator)
            await until(lambda: aggregator.connections["faulty"].status.state == "failed")
            assert aggregator.connections["faulty"].offers == ()


@pytest.mark.parametrize("reach", ["http modern", "sse"])
async def test_a_server_that_dies_and_restarts_in_the_middle_is_found_again(reach, others):
    port = free_port()
    with ExitStack() as first, leftovers():
        faulty = first.enter_context(serving(reach, "faulty", port=port, timeout_s=2))
        registry = ServerRegistry({**others, "faulty": faulty.settings})
        async with MCPAggregator(registry, options=OPTIONS) as aggregator:
            await aggregator.settled()
            await ready(aggregator)
            without, outcomes = await during(aggregator, "echo")
            assert set(outcomes) == {"answered"}

            async def die():
                await asyncio.to_thread(first.close)

            within, outcomes = await during(aggregator, "echo", die, "upstream_unavailable")
            report(f"dies ({reach})", without, within)
            with serving(reach, "faulty", port=port):
                await recovered(aggregator, "echo")
                assert len(await burst(aggregator)) == len(without)


async def test_a_child_that_dies_again_and_again_is_started_again_and_again(others):
    settings = MCPServerSettings(**warm_settings("faulty"), timeout_s=20)
    registry = ServerRegistry({**others, "faulty": settings})
    async with MCPAggregator(registry, options=AggregatorOptions(connect_timeout_s=30)) as aggregator:
        await aggregator.settled()
        for life in (1, 2, 3):
            assert aggregator.connections["faulty"].status.generation == life
            with pytest.raises(ServiceError):
                await aggregator.call_tool("faulty__crash")
            assert await burst(aggregator)
            await recovered(aggregator, "echo")
        assert all(aggregator.connections[name].status.generation == 1 for name in OTHERS)


async def test_a_server_that_changes_its_descriptions_all_the_time_is_listed_but_rarely(others):
    with misbehaving() as server:
        changes = Counter()
        registry = ServerRegistry({**others, "faulty": faulty_settings(server)})

        async def changed(exchange):
            changes["listed"] += 1
            text = f"Description {changes['listed']}"
            await exchange.answer(
                {"tools": [{"name": "verbatim", "description": text, "inputSchema": {"type": "object"}}]}
            )

        server.on["tools/list"] = changed
        async with MCPAggregator(registry, options=OPTIONS) as aggregator:
            await aggregator.settled()
            await ready(aggregator)
            connection = aggregator.connections["faulty"]
            stop = asyncio.Event()

            async def announce():
                while not stop.is_set():
                    connection._on_notification("notifications/tools/list_changed", {})
                    changes["announced"] += 1
                    await asyncio.sleep(0.001)

            announcing = asyncio.create_task(announce())
            before = connection.offers[0].digest
            assert await burst(aggregator)
            await until(lambda: connection.offers[0].digest != before)
            await until(lambda: changes["announced"] >= 200)
            stop.set()
            await announcing
            assert connection.status.generation == 1
            assert changes["listed"] * 10 < changes["announced"]
