"""Servers behind that are called with the rights of users: by token exchange, or an assertion of their provider."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from starlette.responses import JSONResponse, Response

from app.core.errors import ForbiddenError
from app.settings import AuthSettings
from app.settings.auth import IssuerSettings
from tests.protocol.aggregated_service import OnlyHandshake, aggregated, connection_of
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import REVISIONS, Reply, client
from tests.protocol.passing_service import call
from tests.protocol.test_mcp_upstream_auth import rest
from tests.upstreams.authorizing import (
    AUDIENCE,
    CLIENT_ID,
    EXCHANGE,
    JWT_BEARER,
    SECRET,
    AuthorizationServer,
    Guarded,
    authorization_server,
    guarded_http,
)
from tests.upstreams.scripted import ScriptedServer


@pytest.fixture
def provider() -> Iterator[AuthorizationServer]:
    with authorization_server() as made:
        yield made


def exchanging(guarded: Guarded, **auth: Any) -> dict[str, Any]:
    own = {"mode": "token_exchange", "issuer": guarded.authority.url, "clientId": CLIENT_ID}
    return {"url": guarded.url, "auth": {**own, **auth}, "credentials": {"clientSecret": SECRET}}


def asserting(guarded: Guarded, provider: AuthorizationServer, **auth: Any) -> dict[str, Any]:
    own = {
        "mode": "id_jag",
        "issuer": guarded.authority.url,
        "clientId": CLIENT_ID,
        "provider": {"issuer": provider.url, "clientId": CLIENT_ID},
    }
    credentials = {"clientSecret": SECRET, "providerSecret": SECRET}
    return {"url": guarded.url, "auth": {**own, **auth}, "credentials": credentials}


def trusting(
    folder: Path, settings: dict[str, Any], *providers: AuthorizationServer, **more: Any
) -> AbstractAsyncContextManager[str]:
    """Serve everything with a server alpha, for keys and for users of the providers."""
    return trusting_issuers(folder, settings, *(provider.url for provider in providers), **more)


@asynccontextmanager
async def trusting_issuers(
    folder: Path,
    settings: dict[str, Any],
    *names: str,
    upstreams: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncIterator[str]:
    """Do so for users of the issuers with these names; ``more`` are further settings of each."""
    rules = [
        {"when": {"groups": "backends"}, "tenant": "default", "roles": ["invoker", "delegate"]},
        {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]},
    ]
    issuers = tuple(
        IssuerSettings.model_validate({"issuer": name, "audience": [AUDIENCE], "rules": rules, **more})
        for name in names
    )
    auth = AuthSettings(bootstrap_key=SecretStr(str(KEY)), issuers=issuers)
    async with aggregated(folder, {"alpha": settings}, sections={"auth": auth}, **(upstreams or {})) as (
        url,
        _,
    ):
        yield url


async def echo(url: str, revision: str, token: str, text: str) -> Reply:
    async with client(url, revision, token) as wire:
        return await call(wire, "alpha__echo", {"text": text})


@pytest.mark.parametrize("handshake", [False, True], ids=["modern", "handshake"])
async def test_each_user_calls_with_the_users_own_token_over_connections_of_the_users_own(
    tmp_path: Path, provider: AuthorizationServer, handshake: bool
) -> None:
    people = ["ada", "grace", "ADA", "ada ", "ada:grace"]
    tokens = {name: provider.user_token(name) for name in people}
    around = OnlyHandshake if handshake else (lambda app: app)
    with guarded_http(ScriptedServer("alpha"), provider, around) as guarded:
        async with trusting(tmp_path, exchanging(guarded), provider) as url:
            for _ in range(2):
                calls = [
                    echo(url, revision, token, f"{name} of {revision}")
                    for name, token in tokens.items()
                    for revision in REVISIONS
                ]
                replies = await asyncio.gather(*calls)
                assert all("result" in reply.message for reply in replies)
        wanted = {(name, f"echo {name} of {revision}") for name in people for revision in REVISIONS}
        assert set(guarded.calls()) == wanted
        assert len(guarded.calls()) == 2 * len(wanted)
        sessions = defaultdict(set)
        for subject, session, _ in guarded.seen:
            if subject != "service":
                sessions[session].add(subject)
        assert handshake == any(session is not None for session in sessions)
        assert all(len(subjects) == 1 for session, subjects in sessions.items() if session is not None)
        exchanged = [form for form in provider.asked if form["grant_type"] == EXCHANGE]
        # The user's own token is shown to its issuer alone, once for each user; the server never sees it.
        assert sorted(form["subject_token"] for form in exchanged) == sorted(tokens.values())
        assert {form["resource"] for form in exchanged} == {guarded.url}
        assert not set(tokens.values()) & set(guarded.bearers)


@pytest.mark.parametrize("issued", ["id_token", "refresh_token", "id-jag"])
async def test_what_is_no_access_token_reaches_no_server(
    tmp_path: Path, provider: AuthorizationServer, issued: str
) -> None:
    def answer(form: dict[str, str]) -> Response:
        token = provider.give("ada", form["resource"])
        kind = f"urn:ietf:params:oauth:token-type:{issued}"
        told = {"access_token": token, "token_type": "N_A" if issued == "id-jag" else "Bearer"}
        return JSONResponse({**told, "issued_token_type": kind} if form["grant_type"] == EXCHANGE else told)

    with guarded_http(ScriptedServer("alpha"), provider) as guarded:
        async with trusting(tmp_path, exchanging(guarded), provider) as url:
            provider.answer = answer
            before = len(guarded.bearers)
            for revision in REVISIONS:
                error = (await echo(url, revision, provider.user_token("ada"), "no")).error
                assert error["data"]["code"] == "upstream_unavailable"
            assert len(guarded.bearers) == before and not guarded.calls()


async def test_whoever_has_no_token_of_a_user_is_refused_before_anything_is_sent(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    with (
        guarded_http(ScriptedServer("alpha"), provider) as guarded,
        authorization_server() as stranger,
    ):
        backend = provider.user_token("crm", groups=["backends"])
        async with trusting(tmp_path, exchanging(guarded), provider, stranger) as url:
            for revision in REVISIONS:
                told = {}
                for name, token in {"key": str(KEY), "stranger": stranger.user_token("ada")}.items():
                    told[name] = (await echo(url, revision, token, "no")).error["data"]
                async with client(url, revision, backend) as wire:
                    wire.http.headers["x-sluice-user"] = "ada"
                    told["delegate"] = (await call(wire, "alpha__echo", {"text": "no"})).error["data"]
                assert {data["code"] for data in told.values()} == {"forbidden"}, told
            async with rest(url) as http:
                events = (await http.get("/audit/events?action=tool.call&limit=100")).json()["items"]
        assert not guarded.calls()
        assert {form["grant_type"] for form in provider.asked} == {"client_credentials"}
        assert not stranger.asked
        assert [event["outcome"] for event in events] == ["refused"] * 6, events


async def test_a_narrower_token_of_the_same_user_gets_a_token_of_its_own(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    wide, narrow = provider.user_token("ada", scope="a b"), provider.user_token("ada", scope="a")
    with guarded_http(ScriptedServer("alpha"), provider) as guarded:
        async with trusting(tmp_path, exchanging(guarded), provider) as url:
            for token in (wide, narrow, wide):
                assert "result" in (await echo(url, "2026-07-28", token, "hello")).message
    exchanged = [form["subject_token"] for form in provider.asked if form["grant_type"] == EXCHANGE]
    assert exchanged == [wide, narrow]
    used = [provider.sources[token] for token in guarded.bearers if provider.sources.get(token)]
    assert [token for token, _ in itertools.groupby(used)] == [wide, narrow, wide]


async def test_the_connection_that_lists_a_server_carries_no_call_and_follows_nothing(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    with guarded_http(ScriptedServer("alpha"), provider) as guarded:
        async with aggregated(tmp_path, {"alpha": exchanging(guarded)}) as (_, app):
            connection = connection_of(app, "alpha")
            for method, params in {
                "tools/call": {"name": "echo", "arguments": {}},
                "resources/read": {"uri": "memo://one"},
            }.items():
                with pytest.raises(ForbiddenError):
                    await connection.request(method, params)
            with pytest.raises(ForbiddenError):
                await connection.subscribe("memo://one")
        assert {what for _, _, what in guarded.seen} & {"tools/call echo ", "resources/read"} == set()


async def test_a_refused_token_of_a_user_is_renewed_once(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    ada = provider.user_token("ada")
    with guarded_http(ScriptedServer("alpha"), provider) as guarded:
        async with trusting(tmp_path, exchanging(guarded), provider) as url:
            assert "result" in (await echo(url, "2026-07-28", ada, "first")).message
            provider.tokens = {
                token: given for token, given in provider.tokens.items() if given.subject != "ada"
            }
            assert "result" in (await echo(url, "2026-07-28", ada, "second")).message
            # Now the issuer refuses her: what is cached serves on until it ends or the server refuses it.
            provider.refused.add("ada")
            provider.tokens = {
                token: given for token, given in provider.tokens.items() if given.subject != "ada"
            }
            reply = await echo(url, "2026-07-28", ada, "third")
        error = reply.error
        assert "www-authenticate" not in reply.headers  # no other token for this service would help
        assert (error["data"]["code"], error["data"]["error"]) == ("forbidden", "invalid_grant")
        assert guarded.calls() == [("ada", "echo first"), ("ada", "echo second")]


async def test_an_issuer_that_gives_no_answer_is_no_fault_of_the_user(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    ada = provider.user_token("ada")
    with guarded_http(ScriptedServer("alpha"), provider) as guarded:
        async with trusting(tmp_path, exchanging(guarded), provider) as url:
            provider.answer = lambda _form: Response("zq7-canary", 503)
            for revision in REVISIONS:
                reply = await echo(url, revision, ada, "down")
                assert reply.error["data"]["code"] == "upstream_unavailable"
                assert "zq7" not in reply.text and ada not in reply.text
        assert not guarded.calls()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_an_assertion_of_the_identity_provider_opens_the_servers_own_authorization_server(
    tmp_path: Path, provider: AuthorizationServer, revision: str
) -> None:
    ada, grace = provider.user_token("ada"), provider.user_token("grace")
    with authorization_server() as own:
        own.trusted = provider
        with guarded_http(ScriptedServer("alpha"), own) as guarded:
            async with trusting(tmp_path, asserting(guarded, provider), provider) as url:
                for name, token in {"ada": ada, "grace": grace}.items():
                    assert "result" in (await echo(url, revision, token, name)).message
                refused = (await echo(url, revision, str(KEY), "key")).error
            assert guarded.calls() == [("ada", "echo ada"), ("grace", "echo grace")]
            assert refused["data"]["code"] == "forbidden"
        asked = [form for form in own.asked if form["grant_type"] == JWT_BEARER]
        # The assertion is for that authorization server and that resource; the user's token stays at the provider.
        assert [form["resource"] for form in asked] == [guarded.url] * 2
        assert {form["audience"] for form in provider.asked} == {own.url}
        assert all(token not in str(own.asked) for token in (ada, grace))
        assert not {ada, grace} & set(guarded.bearers)


async def test_a_provider_that_gives_another_token_than_an_assertion_is_not_believed(
    tmp_path: Path, provider: AuthorizationServer
) -> None:
    ada = provider.user_token("ada")
    with authorization_server() as own:
        own.trusted = provider
        with guarded_http(ScriptedServer("alpha"), own) as guarded:
            async with trusting(tmp_path, asserting(guarded, provider), provider) as url:
                provider.metadata = {"token_endpoint": f"{own.url}/token"}
                own.answer = None
                error = (await echo(url, "2026-07-28", ada, "lied to")).error
        assert error["data"]["code"] in {"upstream_unavailable", "forbidden"}
        assert not guarded.calls()
