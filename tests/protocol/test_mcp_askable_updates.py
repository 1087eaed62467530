"""Updates of resources for clients that a server can ask: each has a session of its own there."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.protocol.aggregated_service import OnlyHandshake, aggregated
from tests.protocol.answering import EVERYTHING, answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, PREFIX, REVISIONS, client
from tests.protocol.replicas import keyed
from tests.protocol.test_mcp_streams import Stream, getting
from tests.protocol.test_mcp_subscriptions import UPDATED, followed, until
from tests.upstreams.npm import everything_over_http
from tests.upstreams.running import serving
from tests.upstreams.scripted import ScriptedServer

ONE, TWO = "demo://resource/static/document/features.md", "demo://resource/static/document/startup.md"


@pytest.fixture(scope="module")
def everything():
    with everything_over_http() as entry:
        yield entry


async def told_modern(url: str, uris: list[str], capabilities: dict[str, Any], told: list[Any]) -> None:
    """Listen as a modern client does, and keep what comes."""
    async with client(url, MODERN, None) as wire:
        wire.http.headers["authorization"] = f"Bearer {KEY}"
        meta = {f"{PREFIX}clientCapabilities": capabilities}
        notifications = {"resourceSubscriptions": uris}
        body = wire.body("subscriptions/listen", {"notifications": notifications}, meta)
        headers = {**wire.headers("subscriptions/listen"), "content-type": "application/json"}
        async with wire.http.stream("POST", url, content=json.dumps(body), headers=headers) as response:
            stream = Stream(response)
            while (message := await stream.message(60)) is not None:
                told.append(message)


async def toggle(url: str, capabilities: dict[str, Any]) -> str:
    """Switch, as a modern client, the updates on that the server simulates for this session of its."""
    async with client(url, MODERN, None) as wire:
        wire.http.headers["authorization"] = f"Bearer {KEY}"
        name = "ev__toggle-subscriber-updates"
        meta = {f"{PREFIX}clientCapabilities": capabilities}
        reply = await wire.call("tools/call", meta, {"mcp-name": name}, name=name, arguments={})
        text: str = reply.result["content"][0]["text"]
        return text


def updates(told: list[Any]) -> list[str]:
    return [one["params"]["uri"] for one in told if one.get("method") == UPDATED]


async def test_a_session_that_can_be_asked_hears_of_what_its_own_calls_change(tmp_path, everything):
    async with (
        aggregated(tmp_path, {"ev": everything}) as (url, app),
        answering(url, str(KEY), EVERYTHING) as caller,
        caller.listening(),
        keyed(url, HANDSHAKE) as plain,
        getting(plain) as stream,
    ):
        await stream.line()
        await plain.call("resources/subscribe", uri=ONE)
        assert (await caller.call("resources/subscribe", uri=ONE)).result == {}
        await until(lambda: [len(one.followed) for one in watches(app)] == [1, 1])

        assert (await caller.tool("ev__toggle-subscriber-updates")).result["content"]
        assert (await caller.heard(UPDATED))["params"] == {"uri": ONE}
        await asyncio.sleep(0.5)
        assert updates(caller.told) == [ONE]  # once, and nothing that it does not follow
        # The other client's session at the server was not switched on.
        assert UPDATED not in await methods_within(stream, 1)

        assert (await caller.call("resources/unsubscribe", uri=ONE)).result == {}
        await until(lambda: [len(one.followed) for one in watches(app) if one.own is not None] == [0])
        count = len(updates(caller.told))
        await asyncio.sleep(6)  # the server repeats its updates every five seconds
        assert len(updates(caller.told)) == count


async def test_a_modern_client_that_can_be_asked_hears_of_what_its_own_calls_change(tmp_path, everything):
    async with aggregated(tmp_path, {"ev": everything}) as (url, app):
        told: list[Any] = []
        others: list[Any] = []
        listening = [
            asyncio.create_task(told_modern(url, [ONE], EVERYTHING, told)),
            asyncio.create_task(told_modern(url, [ONE], {"sampling": {}}, others)),
        ]
        try:
            await until(lambda: sum(len(one.followed) for one in watches(app)) == 2)
            assert "Started" in await toggle(url, EVERYTHING)
            await until(lambda: updates(told))
            await asyncio.sleep(0.5)
            assert updates(told) == [ONE]
            assert updates(others) == []  # another kind of client has another session at the server
        finally:
            for task in listening:
                task.cancel()
            await asyncio.wait(listening)
        await until(lambda: not watches(app))
        await until(lambda: not app.state.services.dedicated.pool._followed)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_updates_go_on_after_the_server_was_restarted(tmp_path, revision):
    first, second, told = ScriptedServer(), ScriptedServer(), []
    with contextlib.ExitStack() as running:
        port = running.enter_context(serving(handshake_only(first)))
        servers = {"alpha": {"url": f"http://127.0.0.1:{port}/mcp"}}
        async with aggregated(tmp_path, servers) as (url, app), following(url, revision, told):
            await until(lambda: followed(app) == {"memo://one"})
            await asyncio.to_thread(first.announce, "memo://one")
            await until(lambda: updates(told) == ["memo://one"])

            await asyncio.to_thread(running.close)
            running.enter_context(serving(handshake_only(second), port))
            async with asyncio.timeout(30):
                while len(updates(told)) < 2:
                    await asyncio.sleep(0.2)
                    if second.loop is not None:
                        await asyncio.to_thread(second.announce, "memo://one")
            assert set(updates(told)) == {"memo://one"}


def handshake_only(script: ScriptedServer) -> Any:
    return OnlyHandshake(script.server().streamable_http_app())


@contextlib.asynccontextmanager
async def following(url: str, revision: str, told: list[Any]) -> AsyncIterator[None]:
    """Follow memo://one as a client that can be asked."""
    if revision == HANDSHAKE:
        async with answering(url, str(KEY), EVERYTHING) as caller, caller.listening():
            caller.told = told
            await caller.call("resources/subscribe", uri="memo://one")
            yield
        return
    task = asyncio.create_task(told_modern(url, ["memo://one"], EVERYTHING, told))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def methods_within(stream: Any, seconds: float) -> list[str]:
    methods: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                methods.append((await stream.message())["method"])
    return methods


def watches(app: Any) -> list[Any]:
    return [one for one in app.state.services.subscriptions._watches if not one.turn.locked()]
