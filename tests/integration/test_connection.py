"""A connection to real servers: every transport, both revisions, and servers that die and come back."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from app.core.catalog.primitives import PrimitiveKind
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.upstream import UpstreamError
from app.upstream.connection import Connection
from tests.integration.upstream_setup import (
    CUT_STREAMS,
    REACHES,
    REVISIONS,
    free_port,
    options,
    serving,
    until,
)

pytestmark = pytest.mark.filterwarnings(CUT_STREAMS)

IN_PROCESS = [reach for reach in REACHES if reach != "stdio"]


@asynccontextmanager
async def connected(reached, **more):
    connection = Connection("scripted", reached.settings, options(reached.reach, **more))
    connection.start()
    try:
        await connection.settled()
        yield connection
    finally:
        await connection.stop()


async def call(connection, name, /, **arguments):
    result = await connection.request("tools/call", {"name": name, "arguments": arguments})
    return result["content"][0]["text"]


@pytest.mark.parametrize("reach", REACHES)
async def test_everything_is_listed_and_called(reach):
    with serving(reach) as reached:
        async with connected(reached) as connection:
            status = connection.status
            assert (status.state, status.error, status.generation) == ("ready", None, 1)
            assert REVISIONS[reach] in {None, status.protocol_version}
            assert status.server_info["name"] == "scripted"
            assert status.instructions == "Ask scripted nicely."
            names = {
                kind: [one.own_name for one in connection.offers if one.kind is kind]
                for kind in PrimitiveKind
            }
            assert {"echo", "add", "grow"} <= set(names[PrimitiveKind.TOOL])
            assert names[PrimitiveKind.PROMPT] == ["greet"]
            assert names[PrimitiveKind.RESOURCE] == ["memo://one", "memo://two"]
            assert names[PrimitiveKind.TEMPLATE] == ["memo://{name}"]
            assert await call(connection, "add", a=2, b=3) == "5"


@pytest.mark.parametrize("reach", IN_PROCESS)
async def test_many_pages_are_one_listing(reach):
    with serving(reach) as reached:
        reached.script.page_size = 2
        async with connected(reached) as connection:
            assert [one.own_name for one in connection.offers if one.kind is PrimitiveKind.TOOL] == list(
                reached.script.tools
            )


@pytest.mark.parametrize("reach", REACHES)
async def test_an_announced_change_is_listed(reach):
    changes = []
    with serving(reach) as reached:
        async with connected(reached, on_change=changes.append) as connection:
            changes.clear()
            await call(connection, "grow", name="late")
            await until(lambda: "late" in [one.own_name for one in connection.offers])
            assert changes == ["scripted"]
            assert connection.status.generation == 1


@pytest.mark.parametrize("reach", IN_PROCESS)
async def test_a_server_that_restarts_is_found_again_with_what_it_offers_then(reach):
    port = free_port()
    with serving(reach, port=port) as reached:
        connection = Connection("scripted", reached.settings, options(reach))
        connection.start()
        await connection.settled()
        assert connection.status.state == "ready"
    try:
        # Calls tell that it is gone; what it offered stays listed.
        async with asyncio.timeout(60):
            while connection.status.state != "failed":
                with pytest.raises(ServiceError):
                    await call(connection, "echo")
                await asyncio.sleep(0.05)
        assert connection.offers
        with serving(reach, port=port) as reached:
            reached.script.add_tool("second_life")
            await until(lambda: connection.status.state == "ready")
            assert "second_life" in [one.own_name for one in connection.offers]
            assert await call(connection, "add", a=1, b=1) == "2"
            assert connection.status.generation == 2
    finally:
        await connection.stop()


async def test_a_child_that_dies_in_a_call_fails_that_call_once_and_is_started_again():
    with serving("stdio") as reached:
        async with connected(reached) as connection:
            with pytest.raises(UpstreamUnavailableError) as failed:
                await call(connection, "crash")
            assert failed.value.details["server"] == "scripted"
            await until(lambda: connection.status.generation == 2)
            assert await call(connection, "add", a=1, b=1) == "2"


@pytest.mark.parametrize("reach", IN_PROCESS)
async def test_updates_of_a_subscribed_resource_arrive_also_after_a_restart(reach):
    heard = []
    port = free_port()

    def hear(server, method, params):
        if method == "notifications/resources/updated":
            heard.append((server, params["uri"]))

    with serving(reach, port=port) as reached:
        connection = Connection("scripted", reached.settings, options(reach, on_notification=hear))
        connection.start()
        await connection.subscribe("memo://one")
        await connection.subscribe("memo://one")
        await connection.unsubscribe("memo://one")
        reached.script.announce("memo://two")
        async with asyncio.timeout(60):
            while not heard:
                reached.script.announce("memo://one")
                await asyncio.sleep(0.1)
        assert set(heard) == {("scripted", "memo://one")}
    try:
        heard.clear()
        with serving(reach, port=port) as reached:
            # Over HTTP a server may be gone and back before anybody asks it: then the same connection goes on.
            async with asyncio.timeout(60):
                while not heard:
                    if reached.script.loop is not None:
                        reached.script.announce("memo://one")
                    await asyncio.sleep(0.1)
            await connection.unsubscribe("memo://one")
    finally:
        await connection.stop()


@pytest.mark.parametrize("reach", REACHES)
async def test_a_caller_that_gives_up_cancels_its_call_and_nothing_else(reach):
    with serving(reach) as reached:
        async with connected(reached) as connection:
            slow = asyncio.create_task(call(connection, "slow"))
            others = [asyncio.create_task(call(connection, "add", a=n, b=n)) for n in range(10)]
            assert await asyncio.gather(*others) == [str(2 * n) for n in range(10)]
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            if reached.script is not None:
                await until(lambda: reached.script.cancelled == ["slow"])
            assert await call(connection, "add", a=1, b=1) == "2"
            assert connection.status.generation == 1


@pytest.mark.parametrize("reach", REACHES)
async def test_a_call_that_takes_too_long_fails_alone(reach):
    with serving(reach, timeout_s=0.3) as reached:
        async with connected(reached) as connection:
            with pytest.raises(ServiceError) as failed:
                await call(connection, "slow")
            assert failed.value.code == "deadline_exceeded"
            assert await call(connection, "add", a=1, b=1) == "2"
            assert connection.status.generation == 1


@pytest.mark.parametrize("reach", REACHES)
async def test_a_servers_own_error_comes_back_with_its_code_words_and_data(reach):
    with serving(reach) as reached:
        async with connected(reached) as connection:
            with pytest.raises(UpstreamError) as refused:
                await call(connection, "refuse", code=-32050, message="Not today.", data={"a": [1]})
            error = refused.value
            assert (error.code, error.message, error.data) == (-32050, "Not today.", {"a": [1]})
            assert connection.status.error is None


@pytest.mark.parametrize("reach", REACHES)
async def test_a_client_with_its_own_connection_is_the_one_that_is_asked(reach):
    asked = []

    async def answer(method, params):
        asked.append(method)
        return {"role": "assistant", "content": {"type": "text", "text": "blue"}, "model": "m"}

    with serving(reach) as reached:
        async with (
            connected(reached) as connection,
            connection.dedicated(
                {"sampling": {}}, on_notification=lambda *_: None, on_request=answer
            ) as link,
        ):
            assert not link.modern
            result = await link.request(
                "tools/call", {"name": "sample", "arguments": {"ask": "colour?"}}, timeout_s=30
            )
            assert result["content"][0]["text"] == "model said blue"
            assert asked == ["sampling/createMessage"]
            with pytest.raises(UpstreamError):
                await call(connection, "sample")
            assert asked == ["sampling/createMessage"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": "/nonexistent/command"}, "command"),
        ({"url": "http://127.0.0.1:1/mcp"}, "the connection is refused"),
        ({"type": "sse", "url": "http://127.0.0.1:1/sse"}, "the connection is refused"),
        ({"command": "true"}, "scripted"),
        ({"command": "cat"}, "scripted"),
    ],
)
async def test_what_reaches_no_server_is_explained_in_a_sentence(given, words):
    connection = Connection("scripted", MCPServerSettings(**given), options(connect_timeout_s=2))
    connection.start()
    await connection.settled()
    assert connection.status.state == "failed"
    assert words in connection.status.error
    assert "Traceback" not in connection.status.error
    assert len(connection.status.error) < 200
    await connection.stop()
