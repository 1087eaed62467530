"""The short way of an ordinary invocation answers and records what the general way does, to the byte."""

import asyncio
import contextlib
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from fastapi import FastAPI

from app.core.content.context import Context
from app.core.contracts.middleware import Middleware, Outcome
from app.main import create_app
from app.middlewares.timestamp_injector import TimestampArguments, TimestampInjector
from app.protocol.wire.front import Front
from app.services.access.sessions import session_key
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import ENVELOPE, HANDSHAKE, MODERN, PREFIX, REVISIONS, Wire
from tests.protocol.test_mcp_direct import INVOKE, cases

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
VARYING = {"id", "at", "request_id", "duration_us", "writer", "leaf", "mac"}
NAME = "timestamp_injector"
TEXT = {"type": "text", "text": "Grüße 😀\u2028", "n": 10**29, "f": 1e16, "z": None}
POLICY = {
    "allowed_middlewares": [NAME, "pii_redaction", "pii_restoration", "tool_filter", "prompt_injection"],
    "fixed_arguments": {NAME: {"format": "iso"}},
    "limits": {"requests_per_second": 10_000, "burst": 10_000, "max_blocks": 20},
}
ARGUMENTS: list[Any] = [
    {},
    None,
    [],
    "x",
    {"format": "iso"},
    {"format": "unix"},
    {"placement": "after", "timezone": "Europe/Berlin"},
    {"timezone": "Nowhere/None"},
    {"unheardOf": 1},
    {"strict": True},
]
CONTEXTS: list[Any] = [
    [TEXT],
    [],
    {},
    None,
    "x",
    ["bare"],
    [None],
    [1, []],
    [{"type": "text"}],
    [{"type": "image", "data": "AAAA", "mimeType": "image/png"}],
    [{"type": "unheard-of", "x": {"y": ["z"]}}],
    [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": [{"type": "text", "text": "I"}]}],
    [{"type": "tool_result", "content": [{"type": "text", "text": '{"a": "b"}'}]}],
    [TEXT] * 30,
    [{"type": "text", "text": "BUG"}],
    [{"type": "text", "text": "long " * 40_000}],
]
STOPPED: list[Any] = []
"""The middlewares that were stopped while they were slow."""

NAMES: list[Any] = [
    NAME,
    "nothing",
    "alpha__nothing",
    "hallucination_detection",
    "tool_filter",
    "",
    "Zoë",
    7,
    None,
]


@dataclass
class Door:
    """One service: its address, its database, and how often its general ways were entered."""

    url: str
    database: Path
    general: list[str] = field(default_factory=list)
    session: str = ""

    def rows(self) -> list[dict[str, Any]]:
        """Return what is recorded, without what differs from call to call.

        The key of digests is the installation's own, so each stands as the number of the row that had it first.
        """
        numbers: dict[str | None, int] = {}
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            connection.row_factory = sqlite3.Row
            recorded = connection.execute("SELECT * FROM audit_event ORDER BY id").fetchall()
        rows = [{name: row[name] for name in row.keys() if name not in VARYING} for row in recorded]  # noqa: SIM118
        for number, row in enumerate(rows):
            for name in ("in_hmac", "out_hmac", "scope_ref"):
                row[name] = row[name] and numbers.setdefault(row[name], number)
        return rows


class Failing(Middleware[TimestampArguments]):
    """The middleware that adds the time, which has a bug and may be slow."""

    name = NAME
    arguments = TimestampArguments

    def __init__(self, right: TimestampInjector) -> None:
        super().__init__(right.engines)
        self.right = right

    async def apply(self, context: Context, arguments: TimestampArguments) -> Outcome:
        if any(leaf.text == "BUG" for leaf in context.leaves):
            raise ValueError("BUG")
        if any(leaf.text == "SLOW" for leaf in context.leaves):
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                STOPPED.append(self)
                raise
        return self.right.transformed(context, arguments)


@pytest.fixture
async def doors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Door, Door]]:
    """Serve twice, with the short ways and without; a text BUG is one for the middleware."""
    general, front = FastAPI.__call__, Front.__call__
    entered: defaultdict[int, list[str]] = defaultdict(list)  # by the port that the request came to

    async def rest(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            entered[scope["server"][1]].append(scope["path"])
        await general(self, scope, receive, send)

    async def mcp(self: Any, scope: Any, receive: Any, send: Any) -> None:
        entered[scope["server"][1]].append(scope["path"])
        await front(self, scope, receive, send)

    monkeypatch.setattr(FastAPI, "__call__", rest)
    monkeypatch.setattr(Front, "__call__", mcp)
    with unchanged_logging():
        async with contextlib.AsyncExitStack() as stack:
            served = []
            for ordinary in (True, False):
                database = tmp_path / f"{ordinary}.db"
                app = create_app(settings_of(f"sqlite:///{database}"), now=lambda: NOON, ordinary=ordinary)
                url = await stack.enter_async_context(listening(app))
                middlewares = app.state.services.registry.middlewares
                middlewares[NAME] = Failing(middlewares[NAME])
                door = Door(url.removesuffix("/mcp"), database, entered[urlsplit(url).port or 0])
                served.append(door)
                await put_policy(door, POLICY)
                door.session = await begun(door)
                door.general.clear()
            yield served[0], served[1]


async def begun(door: Door) -> str:
    async with http() as client:
        wire = Wire(f"{door.url}/mcp", client, HANDSHAKE)
        await wire.open()
        return str(wire.session)


def http() -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {KEY}", "accept": "application/json, text/event-stream"}
    return httpx2.AsyncClient(headers=headers, timeout=30)


async def put_policy(door: Door, policy: dict[str, Any]) -> None:
    async with http() as client:
        path = f"{door.url}/api/v1/policies"
        version = (await client.get(path)).json()["version"]
        answer = await client.put(f"{path}?expected_version={version}", json=policy)
        answer.raise_for_status()


Request = tuple[str, bytes, list[tuple[str, str]]]
"""Path, body, headers."""


async def answers(door: Door, requests: list[Request]) -> list[Any]:
    """Return status, headers in their order and body of each answer, without what differs from call to call."""
    found = []
    async with http() as client:
        for path, body, headers in requests:
            sent = [(name, value.replace("SESSION", door.session)) for name, value in headers]
            response = await client.post(door.url + path, content=body, headers=sent)
            shown = [
                (name.decode(), UUID.sub("ID", value.decode()).replace(door.session, "SESSION"))
                for name, value in response.headers.raw
                if name.lower() != b"date"
            ]
            found.append((response.status_code, shown, UUID.sub("ID", response.text)))
    return found


async def compare(doors: tuple[Door, Door], requests: list[Request]) -> list[Any]:
    """Return the answers, having compared them and the records of both ways."""
    short, general = doors
    mine, theirs = await answers(short, requests), await answers(general, requests)
    for request, one, other in zip(requests, mine, theirs, strict=True):
        assert one == other, request
    for row, other in zip(short.rows(), general.rows(), strict=True):
        assert {name: pair for name in row if (pair := (row[name], other[name]))[0] != pair[1]} == {}
    return mine


def rest_requests() -> list[Request]:
    plain = [("content-type", "application/json")]
    base = {"arguments": {}, "context": [TEXT]}

    def request(body: Any, name: Any = NAME, query: str = "", headers: Any = plain) -> Request:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return f"/api/v1/middleware/{name}/invoke{query}", raw, headers

    found = [request(base), request({"context": [TEXT]})]
    found += [request({**base, "arguments": arguments}) for arguments in ARGUMENTS]
    found += [request({**base, "context": context}) for context in CONTEXTS]
    found += [
        request(base, name) for name in (*NAMES, "UPPER", "a" * 65, "pii_redaction/x", "%74imestamp_injector")
    ]
    found += [request(base, query=query) for query in ("?", "?x=1", "?arguments=1")]
    found += [
        request(body) for body in ([], None, 7, "x", {}, {**base, "more": 1}, b"", b"{", b'{"a":1,"a":2}')
    ]
    found += [
        request(base, "pii_restoration"),
        request({**base, "arguments": {"scope": "s"}}, "pii_restoration"),
    ]
    odd = (
        [("content-type", "application/json; charset=utf-8")],
        [("content-type", "application/json"), ("accept", "text/html")],
        [("content-type", "text/plain")],
        [("content-type", "application/json"), ("origin", "http://localhost")],
        [("content-type", "application/json"), ("origin", "http://evil.example")],
        [("content-type", "application/json"), ("host", "evil.example")],
        [("content-type", "application/json"), ("x-request-id", "client-0123456789")],
        [("content-type", "application/json"), ("content-encoding", "gzip")],
    )
    return [*found, *(request(base, headers=headers) for headers in odd)]


def mcp_requests(revision: str) -> list[Request]:
    modern = revision == MODERN
    usual = [("content-type", "application/json"), ("mcp-protocol-version", revision)]
    usual.append(("mcp-method", "middleware/invoke") if modern else ("mcp-session-id", "SESSION"))
    meta: dict[str, Any] = {"_meta": ENVELOPE} if modern else {}
    base = {"name": NAME, "context": [TEXT]}

    def request(
        params: Any, headers: Any = (), envelope: Any = None, path: str = "/mcp", fields: Any = usual
    ) -> Request:
        message = {"jsonrpc": "2.0", "id": 1, "method": "middleware/invoke", "params": {**params, **meta}}
        return path, json.dumps({**message, **(envelope or {})}).encode(), [*fields, *headers]

    wire = Wire("", http(), revision)
    wire.session = "SESSION"
    found = [("/mcp", json.dumps(body).encode(), list(headers.items())) for body, headers in cases(wire)]
    found += [request(base), request(base, envelope={"id": "text"}), request(base, envelope={"id": 2**70})]
    found += [request({**base, "arguments": arguments}) for arguments in ARGUMENTS]
    found += [request({**base, "context": context}) for context in CONTEXTS]
    found += [request({**base, "name": name}) for name in NAMES]
    found += [request({"context": [TEXT]}), request({"name": NAME}), request({**base, "more": 1})]
    found += [request({**base, "name": "pii_restoration", "arguments": {"scope": "s"}})]
    found += [
        request(base, path=path) for path in ("/mcp/", "/mcp/groups/none", "/mcp/interceptors", "/mcp?x=1")
    ]
    found += [request(base, envelope={"params": params}) for params in (None, [], {}, "x")]
    found += [request(base, envelope={"more": 1}), request(base, envelope={"result": {}})]
    found += [
        request(base, headers=[pair])
        for pair in (
            *(("mcp-name", name) for name in (NAME, "nothing", "=?base64?eA==?=")),
            *(("origin", origin) for origin in ("http://localhost", "http://evil.example")),
            *(
                ("host", host)
                for host in ("localhost", "LOCALHOST:80", "localhost:x", "evil.example", "[::1]:9")
            ),
            *(("accept", kind) for kind in ("text/html", "application/json ;q=1")),
            ("x-request-id", "client-0123456789"),
            ("traceparent", f"00-{'1' * 32}-{'2' * 16}-01"),
            ("mcp-protocol-version", revision),
            ("mcp-method", "middleware/invoke"),
            ("mcp-session-id", "SESSION"),
            ("content-type", "application/json"),
        )
    ]
    found += [request(base, fields=usual[:number]) for number in range(3)]
    if not modern:
        found.append(request(base, fields=[*usual[:2], ("mcp-session-id", "another")]))
        found.append(request({**base, "_meta": ENVELOPE}))
    extra = {f"{PREFIX}clientInfo": 7}, {f"{PREFIX}clientCapabilities": {"sampling": {}}}, {"x": 1}
    found += [request(base, envelope={"params": {**base, "_meta": {**ENVELOPE, **more}}}) for more in extra]
    return found


async def test_rest_answers_and_records_alike_on_both_ways(doors):
    found = await compare(doors, rest_requests())

    statuses = {status for status, _, _ in found}
    assert statuses >= {200, 400, 403, 404, 413, 415, 421, 422, 500}
    short, general = doors
    assert len(general.general) > len(short.general) + 15
    assert json.loads(found[0][2])["content"][0]["text"].startswith(
        "[Current time: 2026-03-04T12:00:00+00:00]"
    )


@pytest.mark.parametrize("revision", REVISIONS)
async def test_mcp_answers_and_records_alike_on_both_ways(doors, revision):
    found = await compare(doors, mcp_requests(revision))

    texts = [text for _, _, text in found]
    for code in ("invalid_arguments", "blocked_by_policy", "too_large", "internal_error", "invalid_request"):
        assert any(f'"code":"{code}"' in text for text in texts), code
    short, general = doors
    assert len(general.general) > len(short.general) + 15


async def test_a_handle_of_the_other_revision_is_no_session_on_either_way(doors):
    handle = "A" * 43
    for door in doors:
        with contextlib.closing(sqlite3.connect(door.database, timeout=30)) as connection, connection:
            connection.execute(
                "INSERT INTO session (tenant, id, principal, revision, data, created, last_seen)"
                " SELECT tenant, ?, principal, ?, '{}', created, last_seen FROM session LIMIT 1",
                (session_key(handle), MODERN),
            )
    path, _, headers = mcp_requests(HANDSHAKE)[-1]
    call = {"jsonrpc": "2.0", "id": 1, **INVOKE, "params": {"name": NAME, "context": [TEXT]}}
    body = json.dumps(call).encode()
    used = [(name, handle if value == "SESSION" else value) for name, value in headers]
    (refused, served) = await compare(doors, [(path, body, used), (path, body, headers)])
    assert (refused[0], served[0]) == (404, 200)
    assert len(doors[0].general) == 1


@pytest.mark.parametrize("revision", [*REVISIONS, None])
async def test_originals_are_kept_alike_and_refusals_for_haste_are_alike(doors, revision):
    item = {"type": "text", "text": "Write to jane.canary@example.com."}
    body = {"name": "pii_redaction", "context": [item], "arguments": {"scope": "s"}}
    (path, _, headers) = rest_requests()[0] if revision is None else mcp_requests(revision)[-1]
    if revision is None:
        path, message = path.replace(NAME, "pii_redaction"), {k: v for k, v in body.items() if k != "name"}
    else:
        meta = {"_meta": ENVELOPE} if revision == MODERN else {}
        message = {**INVOKE, "jsonrpc": "2.0", "id": 1, "params": {**body, **meta}}
    request = (path, json.dumps(message).encode(), headers)
    first, second = await compare(doors, [request, request])
    assert "jane.canary" not in first[2] and "EMAIL" in first[2] and first == second

    for door in doors:
        # One token, and the next so late that a busy machine does not get it by its slowness.
        await put_policy(door, {**POLICY, "limits": {"requests_per_second": 0.001, "burst": 1}})
    short, general = [
        [
            (
                status,
                [("retry-after", "") if name == "retry-after" else (name, value) for name, value in headers],
                text,
            )
            for status, headers, text in await answers(door, [request] * 3)
        ]
        for door in doors
    ]
    assert short == general
    assert [status for status, _, _ in short] == [200, 429, 429]


def slow_request(revision: str) -> Request:
    path, body, headers = mcp_requests(revision)[len(cases(Wire("", http(), revision)))]
    message = json.loads(body)
    message["params"]["context"] = [{"type": "text", "text": "SLOW"}]
    return path, json.dumps(message).encode(), headers


async def test_a_client_can_cancel_its_call_on_both_ways(doors):
    slow = slow_request(HANDSHAKE)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    cancel = (slow[0], json.dumps(note).encode(), slow[2])
    found = []
    for door in doors:
        waiting = asyncio.create_task(answers(door, [slow]))
        await asyncio.sleep(0.5)
        assert [status for status, _, _ in await answers(door, [cancel])] == [202]
        found += await asyncio.wait_for(waiting, 5)
    assert found[0] == found[1]
    assert "cancelled" in found[0][2]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_that_leaves_ends_its_call_on_both_ways(doors, revision):
    STOPPED.clear()
    for number, door in enumerate(doors, 1):
        waiting = asyncio.create_task(answers(door, [slow_request(revision)]))
        await asyncio.sleep(0.5)
        waiting.cancel()
        async with asyncio.timeout(5):
            while len(STOPPED) < number:
                await asyncio.sleep(0.02)
    assert doors[0].general == []


@pytest.mark.parametrize("revision", [*REVISIONS, None])
async def test_an_ordinary_call_enters_no_general_way_and_an_odd_one_does(doors, revision):
    requests = rest_requests() if revision is None else mcp_requests(revision)
    plain = requests[0] if revision is None else requests[len(cases(Wire("", http(), revision)))]
    short, general = doors
    await answers(short, [plain] * 2)
    await answers(general, [plain] * 2)
    assert (short.general, len(general.general)) == ([], 2)

    (path, body, headers) = plain
    await answers(short, [(path + "?", body.replace(b'"context"', b'"more": 1, "context"'), headers)])
    assert len(short.general) == 1
