"""The short way for our own methods answers exactly as the SDK's transports do, whatever comes in."""

import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.protocol.server import Mcp
from tests.protocol.mcp_harness import Invoke, build, serving
from tests.protocol.mcp_wire import ENVELOPE, HANDSHAKE, MODERN, PREFIX, Wire, client

ITEM = {"type": "text", "text": "Grüße 😀\u2028", "n": 10**29, "f": 1.0, "z": None}
LIST: dict[str, Any] = {"method": "middleware/list", "params": {}}
INVOKE: dict[str, Any] = {
    "method": "middleware/invoke",
    "params": {"name": "timestamp_injector", "context": [ITEM]},
}

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
MESSAGES: list[dict[str, Any]] = [
    LIST,
    INVOKE,
    {**LIST, "id": 0},
    {**LIST, "id": ""},
    {**LIST, "id": 2**70},
    {**LIST, "id": 1.5},
    {**LIST, "id": True},
    {**LIST, "id": None},
    {**LIST, "id": []},
    {**LIST, "jsonrpc": "1.0"},
    {**LIST, "jsonrpc": None},
    {**LIST, "params": None},
    {**LIST, "params": []},
    {**LIST, "params": {"cursor": None}},
    {**LIST, "params": {"cursor": 7}},
    {**LIST, "params": {"cursor": "garbage"}},
    {**LIST, "params": {"unheardOf": 1}},
    {**LIST, "more": "members"},
    {**LIST, "result": {}},
    {"method": "middleware/invoke"},
    {**INVOKE, "params": {"name": "timestamp_injector"}},
    {**INVOKE, "params": {"name": "timestamp_injector", "context": None}},
    {**INVOKE, "params": {"name": "timestamp_injector", "context": {}}},
    {**INVOKE, "params": {"name": "timestamp_injector", "context": []}},
    {**INVOKE, "params": {"name": "timestamp_injector", "context": [None, 1, "x", [], {}]}},
    {**INVOKE, "params": {"name": 7, "context": []}},
    {**INVOKE, "params": {"name": "", "context": []}},
    {**INVOKE, "params": {"name": "nothing", "context": []}},
    {**INVOKE, "params": {**INVOKE["params"], "arguments": None}},
    {**INVOKE, "params": {**INVOKE["params"], "arguments": []}},
    {**INVOKE, "params": {**INVOKE["params"], "arguments": {"a": [1, {"b": None}]}}},
    {**INVOKE, "params": {**INVOKE["params"], "arguments": "x"}},
    {"method": "middleware/Invoke", "params": INVOKE["params"]},
    {"method": "", "params": {}},
    {"method": None, "params": {}},
    {"method": "ping", "params": {}},
]

METAS: list[Any] = [
    {"progressToken": "t"},
    {"progressToken": None},
    {"progressToken": True},
    {"progressToken": 1.5},
    {"progressToken": {}},
    {f"{PREFIX}logLevel": "loud"},
    {f"{PREFIX}logLevel": None},
    {f"{PREFIX}clientCapabilities": None},
    {f"{PREFIX}clientCapabilities": "x"},
    {f"{PREFIX}clientInfo": 7},
    {f"{PREFIX}protocolVersion": "2099-01-01"},
    {f"{PREFIX}protocolVersion": None},
    {"unheard/of": [1]},
]

HEADERS: list[dict[str, str | None]] = [
    {"accept": "application/json"},
    {"accept": "text/event-stream"},
    {"accept": "text/html"},
    {"accept": "application/jsonx"},
    {"accept": "application/json;q=0"},
    {"accept": "Application/JSON , text/event-stream"},
    {"accept": "*/*"},
    {"accept": "application/*;q=0.5, text/*"},
    {"accept": ""},
    {"content-type": "application/json; charset=utf-8"},
    {"content-type": "text/plain"},
    {"content-type": "application/jsonx"},
    {"mcp-method": "middleware/list"},
    {"mcp-method": "Middleware/invoke"},
    {"mcp-method": None},
    {"mcp-name": "timestamp_injector"},
    {"mcp-name": "something else"},
    {"mcp-protocol-version": "2025-06-18"},
    {"mcp-protocol-version": "2099-01-01"},
    {"mcp-protocol-version": ""},
    {"mcp-protocol-version": None},
    {"mcp-session-id": "nonsense"},
    {"mcp-session-id": None},
    {"last-event-id": "7"},
]


def cases(
    wire: Wire, messages: list[dict[str, Any]] = MESSAGES, subject: dict[str, Any] = INVOKE
) -> list[tuple[Any, dict[str, str]]]:
    """Return bodies with their headers, in the form of the wire's revision; ``subject`` goes with odd headers."""

    def body(message: dict[str, Any], meta: Any = None) -> dict[str, Any]:
        full = {"jsonrpc": "2.0", "id": 1, **message}
        if isinstance(full.get("params"), dict) and (wire.modern or meta is not None):
            full["params"] = {
                **full["params"],
                "_meta": {**(ENVELOPE if wire.modern else {}), **(meta or {})},
            }
        return full

    def headers(message: dict[str, Any], **changes: str | None) -> dict[str, str]:
        usual: dict[str, str | None] = {
            "content-type": "application/json",
            **wire.headers(message["method"] or ""),
        }
        if wire.modern and isinstance(message.get("params"), dict) and message["method"] in NAMED:
            usual["mcp-name"] = str(message["params"].get(NAMED[message["method"]]))
        merged = {**usual, **{name.replace("_", "-"): value for name, value in changes.items()}}
        return {name: value for name, value in merged.items() if value is not None}

    found = [(body(message), headers(message)) for message in messages]
    found += [(body(subject, meta), headers(subject, accept="application/json")) for meta in METAS]
    found += [(body(subject, meta), headers(subject)) for meta in METAS]
    found += [(body(subject), headers(subject, **changes)) for changes in HEADERS]
    notification = body(subject)
    del notification["id"]
    return [*found, (notification, headers(subject)), ([body(messages[0])], headers(messages[0]))]


async def answered(wire: Wire, body: Any, headers: dict[str, str]) -> tuple[int, str, Any]:
    response = await wire.http.post(wire.url, content=json.dumps(body).encode(), headers=headers)
    kind = response.headers.get("content-type", "").partition(";")[0]
    text = response.text
    if kind == "application/json":
        message = json.loads(text)
        data = message.get("error", {}).get("data")
        if isinstance(data, dict):
            for changing in ("requestId", "errorId"):
                data.pop(changing, None)
        return response.status_code, kind, (message, list(message.get("result", {})))
    return response.status_code, kind, re.sub(r'"requestId":"[^"]*"', "", text)


@contextlib.asynccontextmanager
async def compared(revision: str, short: Mcp, long: Mcp) -> AsyncIterator[tuple[Wire, Wire]]:
    """Serve both ways and yield a client of each."""
    async with (
        serving(short) as one_url,
        serving(long) as two_url,
        client(one_url, revision) as one,
        client(two_url, revision) as two,
    ):
        yield one, two


async def differing(one: Wire, two: Wire, mine: list[Any], theirs: list[Any]) -> list[Any]:
    """Return the requests that the two answer differently, with both answers."""
    found = []
    for (body, headers), (same, others) in zip(mine, theirs, strict=True):
        answers = await answered(one, body, headers), await answered(two, same, others)
        if answers[0] != answers[1]:
            found.append((body, headers, answers))
    return found


@pytest.mark.parametrize("revision", [HANDSHAKE, MODERN])
async def test_both_ways_give_the_same_answer_to_every_odd_request(revision):
    async with compared(revision, build(direct=True), build(direct=False)) as (one, two):
        assert await differing(one, two, cases(one), cases(two)) == []

    assert len(cases(one)) > 80


async def test_the_short_way_reaches_the_handler_once_and_odd_requests_not_at_all():
    calls = []

    class Counting(Invoke):
        async def invoke(self, caller, name, arguments, items, request, progress=None):
            calls.append(name)
            return await super().invoke(caller, name, arguments, items, request, progress)

    async with serving(build(invoke=Counting())) as url, client(url, MODERN) as wire:
        await wire.invoke("x")
        await wire.invoke("x", headers={"mcp-method": "tools/list"})
        await wire.invoke("x", headers={"accept": "text/html"})
        await wire.invoke("x", meta={f"{PREFIX}protocolVersion": "2099-01-01"})

    assert calls == ["timestamp_injector"]
