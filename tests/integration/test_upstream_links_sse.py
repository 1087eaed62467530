"""Servers of the legacy transport that misbehave."""

import asyncio

import pytest

from app.core.errors import (
    DeadlineExceededError,
    InvalidArgumentsError,
    TooLargeError,
    UpstreamUnavailableError,
)
from tests.upstreams.links import call, linked
from tests.upstreams.misbehaving import hang, misbehaving, sends_body, streams
from tests.upstreams.running import serving_sse
from tests.upstreams.scripted import ScriptedServer


def settings(url):
    return {"type": "sse", "url": url}


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:9/elsewhere",
        "https://127.0.0.1/mcp",
        "//169.254.169.254/latest",
        "file:///etc/passwd",
        "http://[broken",
        "http://127.0.0.1:99999/",
    ],
)
async def test_messages_are_posted_to_the_same_origin_only(endpoint):
    with misbehaving(on={"GET": streams(f"event: endpoint\ndata: {endpoint}\n\n", end=False)}) as server:
        with pytest.raises(UpstreamUnavailableError, match="own address"):
            async with linked(settings(server.url)):
                pass
        assert server.methods() == ["GET"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (streams('data: {"jsonrpc":"2.0"}\n\n', end=False), UpstreamUnavailableError),
        (streams("event: endpoint\ndata: " + "x" * 2_000_000 + "\n\n"), UpstreamUnavailableError),
        (streams(), UpstreamUnavailableError),
        (streams(": hello\n\n", end=False), DeadlineExceededError),
        (hang, DeadlineExceededError),
        (sends_body(b"{}"), UpstreamUnavailableError),
        (sends_body(b"", status=404), UpstreamUnavailableError),
        (sends_body(b"", status=307, Location="http://127.0.0.1:9/"), UpstreamUnavailableError),
    ],
)
async def test_what_is_no_such_server_is_not_connected_to(answer, error):
    with misbehaving(on={"GET": answer}) as server, pytest.raises(error):
        async with linked(settings(server.url), connect_timeout_s=1.0):
            pass


async def test_addresses_are_checked_here_as_well():
    with misbehaving() as server:
        with pytest.raises(InvalidArgumentsError):
            async with linked(settings(server.url), allowed_networks=()):
                pass
        assert server.requests == []


async def test_an_answer_that_is_too_large_fails_its_call_and_the_next_is_answered():
    with serving_sse(ScriptedServer()) as url:
        async with linked(settings(url), max_result_bytes=10_000) as link:
            with pytest.raises(TooLargeError):
                await call(link, "echo", {"x": "y" * 20_000})
            assert (await call(link, "echo", {"a": 1}))["structuredContent"] == {"a": 1}


async def test_a_server_that_goes_away_closes_the_link_and_fails_what_waits():
    with serving_sse(ScriptedServer()) as url:
        opened = linked(settings(url))
        link = await opened.__aenter__()
        waiting = asyncio.create_task(call(link, "slow"))
        await asyncio.sleep(0.1)
    with pytest.raises(UpstreamUnavailableError):
        await waiting
    async with asyncio.timeout(20):
        await link.wait_closed()
    await opened.__aexit__(None, None, None)
