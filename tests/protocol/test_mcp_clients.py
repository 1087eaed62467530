"""Independent clients: the Python SDK in both modes, the TypeScript SDK's first and second generation."""

import json
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from tests.protocol.mcp_harness import build, serving
from tests.protocol.mcp_node import node
from tests.protocol.mcp_wire import HANDSHAKE, MODERN

ANYTHING = TypeAdapter(dict[str, Any])
CONTEXT = [{"type": "text", "text": "Grüße 😀"}, {"type": "unheard_of", "kept": [None, 1.5]}]
NAMES = ["pii_redaction", "pii_restoration", "timestamp_injector"]


def request(method: str, **params: Any) -> Any:
    return types.Request[dict[str, Any], str](method=method, params=params)


@pytest.mark.parametrize(("mode", "version"), [("legacy", HANDSHAKE), ("auto", MODERN)])
async def test_the_python_client_lists_and_invokes(mode, version):
    progress = []

    async def told(done, total, message):
        progress.append((done, total))

    headers = {"authorization": "Bearer alice"}
    async with (
        serving(build()) as url,
        httpx2.AsyncClient(headers=headers, timeout=20) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        session = client.session
        listed = await session.send_request(request("middleware/list"), ANYTHING)
        params = {"name": "timestamp_injector", "context": CONTEXT}
        invoked = await session.send_request(
            request("middleware/invoke", **params), ANYTHING, progress_callback=told
        )
        with pytest.raises(MCPError) as refused:
            await session.send_request(request("middleware/invoke", name="nothing", context=[]), ANYTHING)
        negotiated = client.protocol_version

    assert negotiated == version
    assert [found["name"] for found in listed["middleware"]] == NAMES
    assert invoked["content"] == CONTEXT
    assert progress == [(1, 3), (2, 3), (3, 3)]
    assert refused.value.code == -32602
    assert refused.value.data["pointer"] == "/name"


async def run(*arguments: str) -> dict[str, Any]:
    async with serving(build()) as url:
        status, printed = await node(f"clients/{arguments[0]}", url, "alice", *arguments[1:])
    assert status == 0, printed
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def check(seen: dict[str, Any]) -> None:
    assert [found["name"] for found in seen["list"]["middleware"]] == NAMES
    assert seen["invoked"]["content"] == CONTEXT
    assert seen["progress"] == [1, 2, 3]
    assert seen["refused"]["code"] == -32602
    assert seen["refused"]["data"]["pointer"] == "/name"
    assert seen["capabilities"]["extensions"] == {"dev.sluice/contextMiddleware": {}}


async def test_the_typescript_client_of_the_first_generation_lists_and_invokes():
    seen = await run("v1.ts")

    check(seen)
    assert seen["session"] is True
    assert seen["capabilities"]["experimental"] == {"contextMiddleware": {}}


@pytest.mark.parametrize(("mode", "version"), [("legacy", HANDSHAKE), ("auto", MODERN)])
async def test_the_typescript_client_of_the_second_generation_lists_and_invokes(mode, version):
    seen = await run("v2.ts", mode)

    check(seen)
    assert seen["version"] == version
