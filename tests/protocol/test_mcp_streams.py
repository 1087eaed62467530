"""Open streams: GET of the handshake revision and subscriptions/listen of the modern one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from app.core.access import Role
from app.core.errors import ForbiddenError
from app.protocol.wire.notifications import StreamNotification
from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_harness import Access, Sessions, build, serving
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, PREFIX, client, connected
from tests.protocol.requirements import covers

TOOLS = StreamNotification("notifications/tools/list_changed")
PROMPTS = StreamNotification("notifications/prompts/list_changed")
SUBSCRIPTION = f"{PREFIX}subscriptionId"


class Stream:
    """The lines of an event stream, one by one."""

    def __init__(self, response):
        self.status = response.status_code
        self.kind = response.headers.get("content-type", "")
        self._lines = response.aiter_lines()

    async def line(self, seconds: float = 5) -> str | None:
        async with asyncio.timeout(seconds):
            async for found in self._lines:
                if found:
                    return found
        return None

    async def message(self, seconds: float = 5) -> dict[str, Any] | None:
        while (found := await self.line(seconds)) is not None:
            if found.startswith("data:"):
                return json.loads(found[5:])
        return None


@contextlib.asynccontextmanager
async def getting(wire, **headers: str) -> AsyncIterator[Stream]:
    headers = {"mcp-session-id": wire.session, **headers}
    async with wire.http.stream("GET", wire.url, headers=headers) as response:
        yield Stream(response)


@contextlib.asynccontextmanager
async def listening(wire, meta: Any = None, **kinds: Any) -> AsyncIterator[Stream]:
    body = wire.body("subscriptions/listen", {"notifications": kinds}, meta)
    headers = wire.headers("subscriptions/listen")
    async with wire.http.stream("POST", wire.url, json=body, headers=headers) as response:
        yield Stream(response)


@covers("HS-GET")
async def test_a_get_stream_opens_at_once_stays_alive_and_carries_notifications_only():
    mcp = build(ping_s=0.05)
    async with connected(mcp, HANDSHAKE) as wire, getting(wire) as stream:
        assert stream.kind.startswith("text/event-stream")
        assert await stream.line() == ": open"
        assert await stream.line() == ": ping"
        await wire.call("middleware/list")
        mcp.publish(TOOLS)
        assert await stream.message() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


async def test_a_get_stream_must_be_wanted():
    async with connected(build(), HANDSHAKE) as wire, getting(wire, accept="application/json") as stream:
        assert stream.status == 406


@covers("HS-ONE-STREAM")
async def test_a_second_get_stream_of_a_session_replaces_the_first():
    mcp = build()
    async with connected(mcp, HANDSHAKE) as wire, getting(wire) as first:
        await first.line()
        async with getting(wire) as second:
            await second.line()
            mcp.publish(TOOLS)
            assert await second.message()
            assert await first.message() is None


async def test_a_get_stream_ends_when_its_session_does():
    shared = Sessions()
    async with (
        connected(build(sessions=shared, ping_s=0.05), HANDSHAKE) as wire,
        serving(build(sessions=shared)) as other,
    ):
        for url in (wire.url, other):
            await wire.open()
            async with getting(wire) as stream:
                await wire.http.delete(url, headers={"mcp-session-id": wire.session})
                assert await stream.message() is None


def taken_back(_caller):
    return {}


def narrowed(caller):
    return {"alice": replace(caller, roles=frozenset({Role.RESTORER}))}


def moved(caller):
    return {"alice": replace(caller, tenant="elsewhere")}


@pytest.mark.parametrize("opened", [HANDSHAKE, MODERN])
@pytest.mark.parametrize("changed", [taken_back, narrowed, moved])
async def test_a_stream_ends_when_its_credential_gives_less_than_it_did(opened, changed):
    access = Access()
    open_stream = getting if opened == HANDSHAKE else listening
    async with (
        connected(build(authenticator=access, ping_s=0.02), opened) as wire,
        open_stream(wire) as stream,
    ):
        await stream.line()
        access.down = True
        await asyncio.sleep(0.2)
        assert await stream.line()
        access.down, access.keys = False, changed(access.keys["alice"])
        while await stream.line():
            pass


class Bounding(Access):
    """Leaves the caller what a rule for its end user leaves, None: nothing."""

    left: dict[str, Any] | None

    def __init__(self):
        super().__init__()
        self.left = {"user_grants": frozenset({"support", "guests"})}

    async def acting(self, caller, names, request):
        if self.left is None:
            raise ForbiddenError("Nothing is done for this end user.")
        return replace(await super().acting(caller, (), request), **self.left)


@pytest.mark.parametrize("opened", [HANDSHAKE, MODERN])
@pytest.mark.parametrize(
    "left",
    [
        *(None, {"user_grants": frozenset({"support"})}),
        {"user_grants": None, "roles": frozenset({Role.RESTORER})},
    ],
)
async def test_a_stream_ends_when_its_end_user_may_do_less(opened, left):
    access = Bounding()
    open_stream = getting if opened == HANDSHAKE else listening
    async with (
        connected(build(authenticator=access, ping_s=0.02), opened) as wire,
        AsyncExitStack() as opening,
    ):
        wire.http.headers["x-sluice-user"] = "grace"
        stream = await opening.enter_async_context(open_stream(wire))
        await stream.line()
        access.left = {"user_grants": None}  # more than before
        await asyncio.sleep(0.2)
        assert await stream.line()
        access.left = left
        while await stream.line():
            pass


async def test_streams_end_in_good_order_when_the_process_stops():
    mcp = build()
    async with connected(mcp, HANDSHAKE) as wire, getting(wire) as stream:
        await stream.line()
        mcp.drain()
        assert await stream.message() is None
        async with getting(wire) as late:
            assert late.status == 503


async def test_a_stream_that_its_client_left_is_forgotten():
    mcp = build()
    async with connected(mcp, HANDSHAKE) as wire:
        async with getting(wire) as stream:
            await stream.line()
            assert mcp.notifications.open_streams == 1
        async with asyncio.timeout(5):
            while mcp.notifications.open_streams:
                await asyncio.sleep(0.01)


async def test_a_notification_of_one_tenant_reaches_no_other():
    mcp = build()
    async with connected(mcp, HANDSHAKE) as wire, getting(wire) as stream:
        await stream.line()
        mcp.publish(StreamNotification("notifications/tools/list_changed", tenant="globex"))
        mcp.publish(StreamNotification("notifications/prompts/list_changed", tenant="acme"))
        assert (await stream.message())["method"] == "notifications/prompts/list_changed"


async def test_a_client_that_does_not_read_is_cut_off_and_costs_no_memory():
    mcp = build()
    with mcp.notifications.listen("acme") as stuck, mcp.notifications.listen("acme") as reader:
        for _ in range(300):
            mcp.publish(TOOLS)
            await reader.receive()
        received = [told async for told in stuck]

    assert len(received) == 256


@covers("MO-LISTEN-ACK", "MO-LISTEN-FILTER")
async def test_listening_is_acknowledged_first_and_filtered():
    mcp = build(primitives=ConformancePrimitives())
    wanted = {"toolsListChanged": True, "unheardOf": True, "resourceSubscriptions": ["test://a"]}
    async with connected(mcp, MODERN) as wire, listening(wire, **wanted) as stream:
        acknowledged = await stream.message()
        mcp.publish(PROMPTS)
        mcp.publish(StreamNotification("notifications/resources/updated", {"uri": "test://b"}))
        mcp.publish(StreamNotification("notifications/resources/updated", {"uri": "test://a"}))
        mcp.publish(TOOLS)
        told = [await stream.message(), await stream.message()]

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    honored = {"toolsListChanged": True, "resourceSubscriptions": ["test://a"]}
    assert acknowledged["params"]["notifications"] == honored
    assert [one["method"] for one in told] == [
        "notifications/resources/updated",
        "notifications/tools/list_changed",
    ]
    subscription = acknowledged["params"]["_meta"][SUBSCRIPTION]
    assert {one["params"]["_meta"][SUBSCRIPTION] for one in told} == {subscription}


async def test_listening_honors_nothing_that_is_not_served():
    async with connected(build(), MODERN) as wire, listening(wire, toolsListChanged=True) as stream:
        assert (await stream.message())["params"]["notifications"] == {}


async def test_listening_to_too_many_resources_is_refused_and_says_where():
    mcp = build(primitives=ConformancePrimitives())
    async with connected(mcp, MODERN) as wire:
        wanted = {"resourceSubscriptions": [f"test://{number}" for number in range(2_000)]}
        refused = await wire.call("subscriptions/listen", notifications=wanted)

    assert refused.error["code"] == -32602
    assert refused.error["data"]["pointer"] == "/notifications/resourceSubscriptions"


@covers("MO-LISTEN-CLOSE")
async def test_a_listening_stream_that_the_server_ends_ends_with_its_result():
    mcp = build()
    async with connected(mcp, MODERN) as wire, listening(wire) as stream:
        acknowledged = await stream.message()
        mcp.drain()
        last = await stream.message()

    subscription = acknowledged["params"]["_meta"][SUBSCRIPTION]
    assert last["result"]["_meta"][SUBSCRIPTION] == subscription
    assert last["id"] == subscription


async def test_a_stream_of_the_modern_revision_is_no_get():
    async with connected(build(), MODERN) as wire, client(wire.url, MODERN) as other:
        for method in ("GET", "DELETE"):
            response = await other.http.request(method, wire.url, headers=other.headers(""))
            assert response.status_code == 405
            assert response.headers["allow"] == "POST"
