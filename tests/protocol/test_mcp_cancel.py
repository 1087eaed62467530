"""Requests that their client no longer wants."""

import asyncio

import pytest

from tests.protocol.mcp_harness import Invoke, build
from tests.protocol.mcp_wire import HANDSHAKE, MODERN, client, connected
from tests.protocol.requirements import covers


class Endless:
    """An invocation that never ends by itself and notes how it ended."""

    def __init__(self):
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, *_):
        self.began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


async def happens(event: asyncio.Event) -> None:
    async with asyncio.timeout(5):
        await event.wait()


@covers("CANCEL-STOPS")
@pytest.mark.parametrize("meta", [None, {"progressToken": "t"}], ids=["json", "stream"])
async def test_a_cancelled_request_stops_and_is_answered(meta):
    work = Endless()
    async with connected(build(invoke=Invoke(script=work)), HANDSHAKE) as wire:
        body = wire.body("middleware/invoke", {"name": "x", "context": []}, meta)
        request = asyncio.create_task(wire.post(body, wire.headers("")))
        await happens(work.began)
        for unknown in (4711, "x", None, 1.5, []):
            assert (await wire.notify("notifications/cancelled", requestId=unknown)).status == 202
        assert not work.cancelled.is_set()
        await wire.notify("notifications/cancelled", requestId=body["id"], reason="changed my mind")
        await happens(work.cancelled)
        reply = await request

    assert reply.error["code"] == -32800


async def test_nobody_cancels_the_request_of_another_session():
    work = Endless()
    async with connected(build(invoke=Invoke(script=work)), HANDSHAKE) as wire:
        body = wire.body("middleware/invoke", {"name": "x", "context": []})
        request = asyncio.create_task(wire.post(body, wire.headers("")))
        await happens(work.began)
        async with client(wire.url, HANDSHAKE, "bob") as other:
            await other.notify("notifications/cancelled", requestId=body["id"])
        await asyncio.sleep(0.05)
        assert not work.cancelled.is_set()
        await wire.notify("notifications/cancelled", requestId=body["id"])
        await request


@covers("MO-CANCEL")
@pytest.mark.parametrize("meta", [None, {"progressToken": "t"}], ids=["json", "stream"])
async def test_a_client_that_leaves_cancels_its_request(revision, meta):
    work = Endless()
    async with connected(build(invoke=Invoke(script=work)), revision) as wire:
        body = wire.body("middleware/invoke", {"name": "x", "context": []}, meta)
        async with client(wire.url, MODERN) as leaving:
            leaving.session = wire.session
            headers = wire.headers("middleware/invoke")
            request = asyncio.create_task(leaving.post(body, headers))
            await happens(work.began)
            request.cancel()
            await asyncio.wait([request])
        await happens(work.cancelled)
