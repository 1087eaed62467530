"""The place for tools, prompts and resources: a provider's faults are treated like our own."""

import asyncio
from typing import Any

import mcp_types as types
import pytest

from app.protocol.wire.primitives import Method
from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_harness import build
from tests.protocol.mcp_wire import MODERN, client, connected

CANARY = "canary-4711"


class Provider(ConformancePrimitives):
    """A provider whose one tool does what the test says."""

    calls_back = False

    def __init__(self, behaviour):
        super().__init__()
        self.behaviour = behaviour

    def methods(self):
        async def call(context: Any, params: types.CallToolRequestParams) -> Any:
            return await self.behaviour(context, params)

        return {**super().methods(), "tools/call": Method(types.CallToolRequestParams, call)}


async def call(wire, **options):
    headers = {"mcp-name": "tool"} if wire.modern else {}
    return await wire.call("tools/call", name="tool", headers=headers, **options)


async def wrong_result(*_):
    return CANARY


async def wrong_model(*_):
    return types.Tool.model_validate({"name": [CANARY]})


async def crash(*_):
    raise KeyError(CANARY)


@pytest.mark.parametrize("behaviour", [wrong_result, wrong_model, crash])
async def test_a_bug_of_a_provider_shows_an_error_id_and_nothing_else(revision, behaviour):
    async with connected(build(primitives=Provider(behaviour)), revision) as wire:
        reply = await call(wire)

    assert reply.error["code"] == -32603
    assert reply.error["data"]["errorId"] == reply.error["data"]["requestId"]
    assert CANARY not in reply.text


async def test_an_error_of_the_protocol_keeps_its_data_and_gets_the_request_id(revision):
    async with connected(build(primitives=Provider(crash)), revision) as wire:
        headers = {"mcp-name": "test://nothing"} if wire.modern else {}
        reply = await wire.call("resources/read", uri="test://nothing", headers=headers)

    assert reply.error["code"] == -32602
    assert reply.error["data"]["uri"] == "test://nothing"
    assert reply.error["data"]["requestId"]


async def test_a_client_that_leaves_cancels_its_tool_call(revision):
    began, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(*_):
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with connected(build(primitives=Provider(endless)), revision) as wire:
        async with client(wire.url, MODERN) as leaving:
            body = wire.body("tools/call", {"name": "tool"})
            headers = {**wire.headers("tools/call"), "mcp-name": "tool"}
            request = asyncio.create_task(leaving.post(body, headers))
            await began.wait()
            request.cancel()
            await asyncio.wait([request])
        async with asyncio.timeout(5):
            await cancelled.wait()
