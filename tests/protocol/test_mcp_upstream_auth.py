"""Servers behind that take tokens of their authorization server: as which client this service calls them."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.responses import JSONResponse, Response

from app.main import create_app
from app.settings import UpstreamsSettings
from tests.protocol.aggregated_service import OnlyHandshake, aggregated, connection_of
from tests.protocol.mcp_service import KEY, listening, settings_of, unchanged_logging
from tests.protocol.mcp_wire import REVISIONS, client
from tests.protocol.passing_service import call
from tests.upstreams.authorizing import (
    CLIENT_ID,
    SECRET,
    AuthorizationServer,
    Guarded,
    authorization_server,
    guarded_http,
)
from tests.upstreams.scripted import ScriptedServer


@pytest.fixture
def authority() -> Iterator[AuthorizationServer]:
    with authorization_server() as made:
        yield made


@pytest.fixture
def guarded(authority: AuthorizationServer) -> Iterator[Guarded]:
    with guarded_http(ScriptedServer("alpha"), authority) as made:
        yield made


def entry(guarded: Guarded, **auth: Any) -> dict[str, Any]:
    own = {"mode": "client_credentials", "issuer": guarded.authority.url, "clientId": CLIENT_ID}
    return {"url": guarded.url, "auth": {**own, **auth}, "credentials": {"clientSecret": SECRET}}


@asynccontextmanager
async def bare(folder: Path) -> AsyncIterator[tuple[str, FastAPI]]:
    """Serve everything without a server behind it."""
    settings = settings_of(f"sqlite:///{folder}/aggregated.db")
    upstreams = UpstreamsSettings(allowed_networks=("127.0.0.0/8",), connect_timeout_s=30)
    with unchanged_logging():
        app = create_app(settings.model_copy(update={"upstreams": upstreams}))
        async with listening(app) as url:
            yield url, app


def rest(url: str) -> httpx2.AsyncClient:
    place = url.removesuffix("/mcp") + "/api/v1"
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx2.AsyncClient(base_url=place, headers=headers, timeout=30, trust_env=False)


def grants(authority: AuthorizationServer) -> list[Mapping[str, str]]:
    wanted = ("grant_type", "resource", "scope")
    return [{name: form[name] for name in wanted if name in form} for form in authority.asked]


@pytest.mark.parametrize("handshake", [False, True], ids=["modern", "handshake"])
async def test_calls_of_both_revisions_go_on_with_the_services_own_token(
    tmp_path: Path, authority: AuthorizationServer, handshake: bool
) -> None:
    around = OnlyHandshake if handshake else (lambda app: app)
    with guarded_http(ScriptedServer("alpha"), authority, around) as guarded:
        async with aggregated(tmp_path, {"alpha": entry(guarded)}) as (url, _):
            for revision in REVISIONS:
                async with client(url, revision, str(KEY)) as wire:
                    reply = await call(wire, "alpha__echo", {"text": revision})
                    assert revision in reply.text
        assert guarded.calls() == [("service", f"echo {revision}") for revision in REVISIONS]
    # One token serves the listing and all calls; whom it is for and what it opens is what the server says.
    asked = {"grant_type": "client_credentials", "resource": guarded.url, "scope": "see use"}
    assert grants(authority) == [asked]
    assert str(KEY) not in guarded.bearers


async def test_a_refused_token_is_renewed_once_and_the_call_goes_through(
    tmp_path: Path, authority: AuthorizationServer, guarded: Guarded
) -> None:
    async with (
        aggregated(tmp_path, {"alpha": entry(guarded)}) as (url, _),
        client(url, "2026-07-28", str(KEY)) as wire,
    ):
        authority.tokens.clear()
        assert "again" in (await call(wire, "alpha__echo", {"text": "again"})).text
        assert len(authority.asked) == 2
        # Where no token helps, the caller is told so, and the server is asked no third time.
        guarded.bearers.clear()
        authority.answer = lambda _form: JSONResponse({"access_token": "never", "token_type": "Bearer"})
        authority.tokens.clear()
        reply = await call(wire, "alpha__echo", {"text": "never"})
        assert reply.error["data"]["code"] == "upstream_unavailable"
        assert len(authority.asked) == 3
        assert guarded.bearers[1:] == ["never"]


FAULTS = {
    "refuses": (lambda: JSONResponse({"error": "invalid_client"}, 401), "it refuses (invalid_client)"),
    "says something of its own": (
        lambda: JSONResponse({"error": "zq7-canary", "error_description": "zq7-canary"}, 400),
        "it refuses (status 400)",
    ),
    "is broken": (lambda: Response("zq7-canary", 500), "it answers with status 500"),
    "redirects": (lambda: Response(None, 307, {"location": "http://127.0.0.1:1/"}), "status 307"),
    "sends no JSON": (lambda: Response("zq7-canary"), "its answer is no JSON"),
    "sends no token": (lambda: JSONResponse({"zq7": "canary"}), "its answer has no token"),
    "sends a header": (
        lambda: JSONResponse({"access_token": "a\r\nX-Zq7: canary", "token_type": "Bearer"}),
        "its answer has no token",
    ),
    "has another type": (
        lambda: JSONResponse({"access_token": "zq7", "token_type": "mac"}),
        "its token is of a type that is not supported",
    ),
    "sends too much": (
        lambda: JSONResponse({"access_token": "zq7", "more": "a" * 300_000}),
        "its answer is too large",
    ),
}


async def test_an_authorization_server_that_gives_no_token_is_told_in_words_of_ours(
    tmp_path: Path, authority: AuthorizationServer, guarded: Guarded
) -> None:
    async with bare(tmp_path) as (url, app), rest(url) as http:
        added = await http.post("/servers", json={"name": "alpha", "settings": entry(guarded)})
        assert added.status_code == 201, added.text
        for name, (answer, told) in FAULTS.items():
            authority.answer = lambda _form, answer=answer: answer()  # type: ignore[misc]
            tried = (await http.post("/servers/alpha/test")).json()
            assert not tried["ready"], name
            assert told in tried["status"]["error"], (name, tried["status"]["error"])
            assert "zq7" not in str(tried).lower() and SECRET not in str(tried)
        authority.answer = None
        assert (await http.post("/servers/alpha/test")).json()["ready"]
        assert connection_of(app, "alpha") is None
        events = (await http.get("/audit/events?action=servers.test&limit=100")).text
    assert SECRET not in events and not any(token in events for token in authority.tokens)


MISLED = {
    "the server names others": ({"named": ["http://127.0.0.1:1"]}, {}, "other authorization servers"),
    "the metadata is another's": ({}, {"issuer": "http://127.0.0.1:1"}, "names another issuer"),
    "the token endpoint is in a cloud's network": (
        {},
        {"token_endpoint": "http://169.254.169.254/token"},
        "its address is refused",
    ),
    "the token endpoint is no https": ({}, {"token_endpoint": "http://192.0.2.1/token"}, "is refused"),
    "there is none": ({}, {"token_endpoint": None}, "has no token_endpoint"),
}


@pytest.mark.parametrize("case", MISLED)
async def test_the_secret_goes_to_no_other_authorization_server(
    tmp_path: Path, authority: AuthorizationServer, guarded: Guarded, case: str
) -> None:
    server, metadata, told = MISLED[case]
    for name, value in server.items():
        setattr(guarded, name, value)
    authority.metadata = metadata
    async with bare(tmp_path) as (url, _), rest(url) as http:
        await http.post("/servers", json={"name": "alpha", "settings": entry(guarded)})
        tried = (await http.post("/servers/alpha/test")).json()
    assert not tried["ready"] and told in tried["status"]["error"], tried
    assert not authority.asked


async def test_secrets_are_sealed_kept_and_never_sent_to_another_issuer(
    tmp_path: Path, authority: AuthorizationServer, guarded: Guarded
) -> None:
    async with bare(tmp_path) as (url, _), rest(url) as http:
        settings = entry(guarded)
        lacking = {**settings, "credentials": {}}
        refused = await http.post("/servers", json={"name": "alpha", "settings": lacking})
        assert refused.status_code == 422 and "clientSecret" in refused.text
        assert (await http.post("/servers", json={"name": "alpha", "settings": settings})).status_code == 201
        shown = (await http.get("/servers/alpha")).json()["settings"]
        assert shown["credentials"] == {"clientSecret": None}
        assert shown["auth"]["issuer"] == authority.url
        kept = {**settings, "credentials": {"clientSecret": None}}
        assert (await http.put("/servers/alpha", json={"settings": kept})).status_code == 200
        assert (await http.post("/servers/alpha/test")).json()["ready"]
        elsewhere = {**kept, "auth": {**settings["auth"], "issuer": "https://other.example.com"}}
        refused = await http.put("/servers/alpha", json={"settings": elsewhere})
        assert refused.status_code == 422 and "again" in refused.text
    assert all(SECRET.encode() not in file.read_bytes() for file in tmp_path.glob("aggregated.db*"))


async def test_a_server_without_metadata_gets_tokens_for_its_own_url(
    tmp_path: Path, authority: AuthorizationServer, guarded: Guarded
) -> None:
    own = entry(guarded, resource=guarded.url, scopes=["use"], clientAuth="client_secret_post")
    guarded.named = []  # what its metadata says is not asked for where the settings name the resource
    async with bare(tmp_path) as (url, _), rest(url) as http:
        await http.post("/servers", json={"name": "alpha", "settings": own})
        assert (await http.post("/servers/alpha/test")).json()["ready"]
    assert grants(authority) == [
        {"grant_type": "client_credentials", "resource": guarded.url, "scope": "use"}
    ]
