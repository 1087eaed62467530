"""Paths that speak another API: their credential, their form of a refusal, and everything else as elsewhere."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from httpx2 import ASGITransport, AsyncClient, Response
from starlette.responses import Response as Plain
from starlette.routing import Route, Router

from app.core.access import Caller, Role
from app.core.errors import InvalidRequestError, ServiceError, UnauthenticatedError
from app.edge.guard import EdgeGuard
from app.edge.lifespan_state import Served
from app.edge.limits import DeclaredLimits, EdgeLimits, RouteLimits, needs, takes
from app.edge.surfaces import ForeignRefusal, ForeignSurface, RawHeaders


def credential(headers: RawHeaders) -> str | None:
    keys = [value.decode() for name, value in headers if name in {b"x-key", b"x-other-key"}]
    if len(keys) > 1:
        raise InvalidRequestError("Send one key.")
    return keys[0] if keys else None


def refusal(error: ServiceError, status: int | None) -> ForeignRefusal:
    return ForeignRefusal(status or 418, json.dumps({"theirs": error.code}).encode())


SURFACE = ForeignSurface(
    "/theirs/", credential, refusal, lambda path: ForeignRefusal(426, json.dumps({"at": path}).encode())
)


class OneKey:
    async def authenticate(self, bearer: str | None, _address: str | None) -> Caller:
        if bearer != "mine":
            raise UnauthenticatedError("No.")
        return Caller("t", "k", frozenset({Role.INVOKER}))

    async def refuse(self, *_: Any) -> None:
        raise AssertionError


@needs(Role.INVOKER, action="theirs")
async def endpoint(request: Request) -> Plain:
    body = await request.body()
    if body == b"{}":
        return Plain(headers={"x-request-id": "of-the-provider", "x-query": request.url.query})
    raise InvalidRequestError("Nothing of ours.")


def make_guard(**limits: Any) -> EdgeGuard:
    app = FastAPI()
    app.routes.append(Route("/theirs/{path:path}", endpoint, methods=["GET", "POST"]))
    app.routes.append(Route("/ours", endpoint, methods=["GET", "POST"]))
    served = Served(OneKey())
    declared = DeclaredLimits.of(app.routes)
    return EdgeGuard(app, EdgeLimits(**limits), declared, served, surfaces=(SURFACE,))


async def post(guard: EdgeGuard, path: str, *, content: bytes = b"{}", **headers: str) -> Response:
    sent = [("content-type", "application/json")] + [
        (name.replace("_", "-"), value) for name, value in headers.items()
    ]
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost:8000") as http:
        return await http.post(path, headers=sent, content=content)


async def test_the_credential_is_read_where_the_surface_has_it() -> None:
    assert (await post(make_guard(), "/theirs/x", x_key="mine")).status_code == 200
    refused = await post(make_guard(), "/theirs/x", authorization="Bearer mine")
    assert refused.status_code == 418 and refused.json() == {"theirs": "unauthenticated"}
    assert (await post(make_guard(), "/ours", x_key="mine")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "content", "status", "code"),
    [
        ({"x_key": "mine", "x_other_key": "mine"}, b"{}", 418, "invalid_request"),
        ({"x_key": "mine"}, b'{"a":1,"a":2}', 418, "invalid_request"),
        ({"x_key": "mine"}, b'"' + b"x" * 2000 + b'"', 418, "too_large"),
        ({"x_key": "mine", "host": "evil.example"}, b"{}", 421, "invalid_request"),
    ],
)
async def test_refusals_of_the_edge_have_the_form_of_the_surface(
    headers: dict[str, str], content: bytes, status: int, code: str
) -> None:
    answer = await post(make_guard(max_body_bytes=1000), "/theirs/x", content=content, **headers)
    assert (answer.status_code, answer.json()) == (status, {"theirs": code})
    elsewhere = await post(make_guard(max_body_bytes=10), "/ours", content=b"[" * 20)
    assert elsewhere.json()["type"].startswith("urn:sluice:error:")


async def test_a_query_is_the_surfaces_own_affair() -> None:
    answer = await post(make_guard(), "/theirs/x?beta=true", x_key="mine")
    assert answer.headers["x-query"] == "beta=true"


async def test_an_id_of_the_provider_keeps_its_header_and_ours_has_another() -> None:
    answer = await post(make_guard(), "/theirs/x", x_key="mine")
    assert answer.headers.get_list("x-request-id") == ["of-the-provider"]
    assert len(answer.headers["x-sluice-request-id"]) == 36


async def test_a_websocket_gets_the_answer_of_the_surface_where_the_server_can_send_one() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    able = {"type": "websocket", "path": "/theirs/live", "extensions": {"websocket.http.response": {}}}
    await make_guard()(able, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == 426 and json.loads(sent[1]["body"]) == {"at": "/theirs/live"}
    sent.clear()
    for scope in ({**able, "path": "/ours"}, {**able, "extensions": {}}):
        await make_guard()(scope, None, send)  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}] * 2


def page(error: ServiceError, status: int, request_id: str) -> ForeignRefusal:
    body = f"<p>{status} {error.code} {request_id}".encode()
    return ForeignRefusal(status, body, b"text/html", [(b"content-security-policy", b"theirs")])


class OneSession(OneKey):
    async def authenticate(self, bearer: str | None, _address: str | None) -> Caller:
        return await super().authenticate("mine" if bearer == "session" else None, None)


async def test_a_surface_for_people_has_pages_for_errors_a_gate_of_its_own_and_open_paths() -> None:
    @takes(RouteLimits(frozenset({"text/plain"}), whole=True, most=10))
    async def echo(request: Request) -> Plain:
        return Plain(await request.body())

    paths = ("/pages/enter", "/pages/{path:path}")
    app = Router([Route(path, echo, methods=["POST"]) for path in paths])
    surface = ForeignSurface("/pages/", credential, page=page, open_paths=frozenset({"/pages/enter"}))
    served = Served(OneKey(), gates={"/pages/": OneSession()})
    guard = EdgeGuard(app, EdgeLimits(), DeclaredLimits.of(app.routes), served, surfaces=(surface,))
    plain = {"content-type": "text/plain"}
    async with AsyncClient(transport=ASGITransport(guard), base_url="http://localhost") as http:
        opened = await http.post("/pages/enter", content=b"key", headers=plain)
        assert (opened.status_code, opened.text) == (200, "key")
        large = await http.post("/pages/enter", content=b"k" * 11, headers=plain)
        assert large.status_code == 413
        chunked = await http.post("/pages/enter", content=_pieces(), headers=plain)
        assert chunked.status_code == 413
        for key, status in (("session", 200), ("mine", 401), ("", 401)):
            answer = await http.post("/pages/other", content=b"form", headers={**plain, "x-key": key})
            assert answer.status_code == status, key
        assert answer.text == f"<p>401 unauthenticated {answer.headers['x-request-id']}"
        assert (answer.headers["content-type"], answer.headers["content-security-policy"]) == (
            "text/html",
            "theirs",
        )
        ours = await http.post("/ours", headers={"authorization": "Bearer session"})
        assert ours.json()["code"] == "unauthenticated"


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(3):
        yield b"12345"
