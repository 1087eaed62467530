"""The edge guard: what passes, what is refused with which status, and what it adds."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI, Request
from fastapi import Response as Answer
from httpx2 import ASGITransport, AsyncClient, Response

from app.api.errors import install_error_handlers
from app.core.strictjson import dumps
from app.edge.facts import facts_of
from app.edge.guard import EdgeGuard
from app.edge.lifespan_state import Drain
from app.edge.limits import DeclaredLimits, EdgeLimits, Refused, RouteLimits, check_path, takes

STREAM = "/api/v1/middleware/pii_restoration/stream"


def make_guard(**limits: Any) -> EdgeGuard:
    app = FastAPI()
    install_error_handlers(app)

    @app.post("/echo")
    @app.delete("/echo")
    async def echo(request: Request) -> dict[str, Any]:
        facts = facts_of(request.scope)
        assert await request.body() == (facts.body or b"")
        return {"value": facts.json, "trace": facts.traceparent, "has": facts.body is not None}

    @app.post("/mcp")
    async def mcp(request: Request) -> Any:
        return json.loads(await request.body())

    @app.post(STREAM)
    @takes(RouteLimits(frozenset({"application/x-ndjson", "text/event-stream"})))
    async def stream(request: Request) -> int:
        return sum([len(piece) async for piece in request.stream()])

    @app.get("/livez")
    async def livez() -> str:
        return "ok"

    @app.post("/answer")
    async def answer(request: Request) -> Answer:
        return Answer("data: 1\n\n", headers=await request.json())

    return EdgeGuard(app, EdgeLimits(**limits), DeclaredLimits.of(app.routes))


async def call(guard: EdgeGuard, method: str = "POST", path: str = "/echo", **options: Any) -> Response:
    if isinstance(options.get("content"), bytes):
        options["headers"] = {"content-type": "application/json", **options.get("headers", {})}
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost:8000") as http:
        return await http.request(method, path, **options)


async def test_a_json_body_is_parsed_once_and_passed_on_with_its_bytes() -> None:
    body = b'{"n":123456789012345678901234567890, "k":[null]}'
    answer = await call(make_guard(), content=body)
    assert answer.json()["value"] == {"n": 123456789012345678901234567890, "k": [None]}


async def test_a_request_without_a_body_needs_no_type() -> None:
    for method in ("POST", "DELETE"):
        answer = await call(make_guard(), method)
        assert answer.json()["has"] is False


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"content-type": "text/plain"}, b"{}", 415, "invalid_request"),
        ({"content-type": "application/json; charset=latin-1"}, b"{}", 415, "invalid_request"),
        ({"content-type": "application/jsonp"}, b"{}", 415, "invalid_request"),
        ({"content-type": "application/x-www-form-urlencoded"}, b"a=1", 415, "invalid_request"),
        ({"content-type": "application/x-ndjson"}, b"{}", 415, "invalid_request"),
        ({"content-type": ""}, b"{}", 415, "invalid_request"),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}" * 1000, mtime=0), 415, "invalid_request"),
        ({"content-encoding": "br"}, b"{}", 415, "invalid_request"),
        ({"content-encoding": "identity, gzip"}, b"{}", 415, "invalid_request"),
        ({"host": "evil.example"}, b"{}", 421, "invalid_request"),
        ({"host": "localhost.evil.example"}, b"{}", 421, "invalid_request"),
        ({"host": "localhost:80:80"}, b"{}", 421, "invalid_request"),
        ({"host": ""}, b"{}", 421, "invalid_request"),
        ({"origin": "http://evil.example"}, b"{}", 403, "forbidden"),
        ({"origin": "null"}, b"{}", 403, "forbidden"),
        ({"origin": "https://localhost"}, b"{}", 403, "forbidden"),
        ({"content-length": "-1"}, b"{}", 400, "invalid_request"),
        ({"content-length": "9" * 30}, b"{}", 413, "too_large"),
        ({}, b'{"a":1,"a":2}', 400, "invalid_request"),
        ({}, b'"\\ud83d"', 400, "invalid_request"),
        ({}, b'"\\u0000"', 400, "invalid_request"),
        ({}, b"\xff", 400, "invalid_request"),
        ({}, b"[" * 65 + b"]" * 65, 413, "too_large"),
        ({}, b"[" * 200_000, 413, "too_large"),
        ({}, b'"' + b"x" * 2000 + b'"', 413, "too_large"),
    ],
)
@pytest.mark.parametrize("path", ["/echo", "/mcp"])
async def test_what_the_edge_refuses(
    headers: dict[str, str], content: bytes, status: int, code: str, path: str
) -> None:
    guard = make_guard(max_body_bytes=1000 if len(content) < 100_000 else 10_000_000)
    answer = await call(guard, path=path, headers=headers, content=content)
    assert answer.status_code == status
    body = answer.json()
    if path == "/mcp":
        assert body["jsonrpc"] == "2.0" and body["id"] is None
        assert body["error"]["data"]["code"] == code
        assert body["error"]["data"]["requestId"] == answer.headers["x-request-id"]
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert body["code"] == code and body["request_id"] == answer.headers["x-request-id"]


async def test_a_parse_error_under_mcp_has_the_code_of_json_rpc() -> None:
    answer = await call(make_guard(), path="/mcp", content=b"{")
    assert answer.json()["error"]["code"] == -32700


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:8000"},
        {"host": "[::1]:9"},
        {"host": "LOCALHOST"},
        {"origin": "http://localhost:5173"},
        {"origin": "http://[::1]:5173"},
        {"content-type": 'Application/JSON; charset="UTF-8"'},
        {"content-encoding": "identity"},
    ],
)
async def test_what_the_edge_lets_in(headers: dict[str, str]) -> None:
    assert (await call(make_guard(), headers=headers, content=b"{}")).status_code == 200


@pytest.mark.parametrize("hidden", [b"%2F", b"%2f", b"%5C", b"%5c", b"\\", b"%00", b"\0", b"%25%2f"])
def test_a_path_that_hides_a_slash_a_backslash_or_nul_is_refused(hidden: bytes) -> None:
    scope = {"method": "POST", "path": "/a", "raw_path": b"/api/v1/policies/a" + hidden + b"b"}
    with pytest.raises(Refused) as refused:
        check_path(scope)
    assert refused.value.error.code == "invalid_request"


@pytest.mark.parametrize("plain", [b"", b"/", b"%20", b"%e2%82%ac", b"%252f", b"~:@!$&'()*+,;="])
def test_a_path_that_hides_nothing_passes(plain: bytes) -> None:
    check_path({"method": "POST", "path": "/a", "raw_path": b"/api/v1/policies/a" + plain + b"b"})


async def test_a_port_in_the_list_is_the_only_one() -> None:
    guard = make_guard(allowed_hosts=("sluice.internal:8443",))
    for host, status in (("sluice.internal:8443", 200), ("sluice.internal", 421), ("sluice.internal:1", 421)):
        assert (await call(guard, headers={"host": host})).status_code == status


async def test_probes_may_come_under_any_host_but_no_foreign_origin() -> None:
    assert (await call(make_guard(), "GET", "/livez", headers={"host": "10.1.2.3:8000"})).status_code == 200
    refused = await call(make_guard(), "GET", "/livez", headers={"origin": "http://evil.example"})
    assert refused.status_code == 403


async def test_a_streamed_body_without_a_length_is_counted_too() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100

    headers = {"content-type": "application/json"}
    answer = await call(make_guard(max_body_bytes=5000), content=pieces(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_route_that_declares_streams_takes_their_types_and_no_json() -> None:
    for kind, status in (
        ("application/x-ndjson", 200),
        ("text/event-stream", 200),
        ("application/json", 415),
    ):
        answer = await call(make_guard(), path=STREAM, content=b"{}\n", headers={"content-type": kind})
        assert answer.status_code == status
    headers = {"content-type": "application/x-ndjson"}
    answer = await call(make_guard(max_body_bytes=10), path=STREAM, content=b"x" * 11, headers=headers)
    assert answer.status_code == 413


async def test_a_body_that_does_not_arrive_in_time_ends_in_408() -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    headers = {"content-type": "application/json"}
    answer = await call(make_guard(body_timeout_s=0.1), content=slow(), headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (408, "deadline_exceeded")
    assert answer.headers["connection"] == "close"


async def test_a_request_id_is_ours_and_a_sane_one_of_the_caller_stands_beside_it() -> None:
    kept = await call(make_guard(), headers={"x-request-id": "0123-abcd_XYZ-4567"})
    assert kept.headers["x-client-request-id"] == "0123-abcd_XYZ-4567"
    assert UUID(kept.headers["x-request-id"]).version == 7
    for bad in (
        b"too-short",
        b"123-45-6789",
        b"4111-1111-1111-1111-1111",
        b"x" * 65,
        b"semi;colon;here",
        "späße-und-mehr".encode(),
    ):
        answer = await call(make_guard(), headers={b"x-request-id": bad})
        assert UUID(answer.headers["x-request-id"]).version == 7
        assert "x-client-request-id" not in answer.headers


async def test_a_valid_traceparent_is_passed_on() -> None:
    valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for given, passed in ((valid, valid), ("00-" + "0" * 32 + "-b7ad6b7169203331-01", None), ("Jane", None)):
        answer = await call(make_guard(), headers={"traceparent": given})
        assert answer.json()["trace"] == passed


async def test_every_answer_has_the_security_headers() -> None:
    for answer in (await call(make_guard()), await call(make_guard(), content=b"{")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_a_draining_process_refuses_all_but_probes() -> None:
    guard = make_guard()
    guard.drain.begin()
    refused = await call(guard, content=b"{}")
    assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
    assert refused.headers["connection"] == "close" and refused.headers["retry-after"] == "1"
    assert (await call(guard, "GET", "/livez")).status_code == 200


async def test_a_client_that_leaves_amid_its_body_is_forgotten() -> None:
    guard = make_guard()
    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    scope = {"type": "http", "method": "POST", "path": "/echo", "headers": headers, "client": None}
    await guard(scope, receive, send)
    assert sent == []
    assert b'status="499"' in guard.metrics.exposition()
    assert guard.drain.running == 0


async def test_metrics_name_templates_and_never_paths() -> None:
    guard = make_guard()
    await call(guard, content=dumps({"a": 1}))
    await call(guard, "GET", "/Jane-Canary?q=Jane-Canary")
    text = guard.metrics.exposition().decode()
    assert 'sluice_http_requests_total{method="POST",route="/echo",status="200"} 1.0' in text
    assert 'route="unmatched",status="404"' in text
    assert "Jane-Canary" not in text


async def test_running_requests_are_counted_while_they_run() -> None:
    drain = Drain()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert drain.running == 1
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    assert (await call(EdgeGuard(app, drain=drain))).status_code == 204
    assert drain.running == 0


async def test_a_websocket_is_refused() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await make_guard()({"type": "websocket"}, None, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"content-type": "text/event-stream"}, ["no"]),
        ({"Content-Type": "Text/Event-Stream; charset=utf-8", "X-Accel-Buffering": "yes"}, ["no"]),
        ({"content-type": "text/plain"}, []),
        ({"content-type": "application/x-ndjson", "x-accel-buffering": "no"}, ["no"]),
    ],
)
async def test_an_event_stream_asks_proxies_to_pass_each_event_on(
    headers: dict[str, str], said: list[str]
) -> None:
    answer = await call(make_guard(), path="/answer", json=headers)
    assert answer.headers.get_list("x-accel-buffering") == said
