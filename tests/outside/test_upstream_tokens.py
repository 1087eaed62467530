"""Servers that take tokens, with a certified provider (npm's oidc-provider) and the MCP SDK's own server with auth on.

Token exchange, the assertion of an identity provider and the token for it are grants that `grants.mjs` registers in the
provider, which has none of these itself; client credentials, authorization code and refresh tokens are its own.
"""

import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings as ServerAuthSettings
from pydantic import AnyHttpUrl

from tests.outside.test_token_issuer import free_port, provider
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import REVISIONS
from tests.protocol.test_mcp_user_grants import code_of
from tests.protocol.test_mcp_user_tokens import echo, trusting_issuers
from tests.upstreams.running import serving
from tests.upstreams.scripted import ScriptedServer

pytestmark = pytest.mark.outside

SECRET = "upstream-secret-of-the-tests"
SLUICE = "https://sluice.example.com"


class Verifier:
    """Takes signed tokens of one issuer for one resource, as a server's own code would; notes whose they were.

    ``people``: it notes nothing of the connection that lists it.
    """

    def __init__(self, issuer: str, resource: str, *, people: bool) -> None:
        self.issuer, self.resource, self.people = issuer, resource, people
        self.subjects: list[str] = []

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient(trust_env=False) as http:
            keys = KeySet.import_key_set((await http.get(f"{self.issuer}/jwks")).json())
        try:
            claims = jwt.decode(token, keys, algorithms=["ES256"]).claims
            expected = {"iss": {"essential": True, "value": self.issuer}}
            audience = {"aud": {"essential": True, "value": self.resource}}
            JWTClaimsRegistry(**expected, **audience).validate(claims)
        except (JoseError, ValueError):
            return None
        if claims["sub"] != "upstream" or not self.people:
            self.subjects.append(claims["sub"])
        scopes = str(claims.get("scope", "")).split()
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=scopes,
            subject=claims["sub"],
            resource=claims["aud"],
        )


@asynccontextmanager
async def foreign(issuer: str, *, people: bool = True) -> AsyncIterator[tuple[str, Verifier]]:
    """Serve an MCP server whose auth is the SDK's: its challenge, its metadata, its check of scopes."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    verifier = Verifier(issuer, url, people=people)
    auth = ServerAuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(url),
        required_scopes=["use"],
        validate_token_resource=True,
    )
    app = ScriptedServer("alpha").server().streamable_http_app(auth=auth, token_verifier=verifier)
    with serving(app, port):
        yield url, verifier


def settings_of(url: str, issuer: str, mode: str, **more: Any) -> dict[str, Any]:
    auth = {"mode": mode, "issuer": issuer, "clientId": "upstream", **more}
    credentials = {"clientSecret": SECRET} | ({"providerSecret": SECRET} if "provider" in more else {})
    return {"url": url, "auth": auth, "credentials": credentials}


async def person(issuer: str, name: str) -> str:
    """Return a token of a person for Sluice, by the provider's own authorization code."""
    verifier = "v" * 43
    digest = hashlib.sha256(verifier.encode()).digest()
    challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    asked = {
        "client_id": "upstream",
        "response_type": "code",
        "redirect_uri": f"{SLUICE}/console/server-grants/callback",
        "scope": "use",
        "resource": f"{SLUICE}/mcp",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "login_hint": name,
    }
    location = await signed_in(str(httpx2.URL(f"{issuer}/auth", params=asked)))
    form = {
        "grant_type": "authorization_code",
        "code": httpx2.URL(location).params["code"],
        "redirect_uri": asked["redirect_uri"],
        "code_verifier": verifier,
        "resource": f"{SLUICE}/mcp",
    }
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(f"{issuer}/token", data=form, auth=("upstream", SECRET))
    token: str = answer.json()["access_token"]
    return token


async def signed_in(place: str) -> str:
    """Follow the provider's pages as a browser does, and return the address that leads back to Sluice."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        while not place.startswith(SLUICE):
            answer = await browser.get(place)
            assert answer.status_code in {302, 303}, answer.text
            place = str(httpx2.URL(place).join(answer.headers["location"]))
    return place


async def test_the_sdks_own_server_is_listed_and_called_with_client_credentials(tmp_path: Path) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    with provider(httpx2.URL(issuer).port or 0, f"{SLUICE}/mcp", SLUICE):
        async with (
            foreign(issuer, people=False) as (server, verifier),
            trusting_issuers(tmp_path, settings_of(server, issuer, "client_credentials"), issuer) as url,
        ):
            for revision in REVISIONS:
                assert "result" in (await echo(url, revision, str(KEY), revision)).message
        assert set(verifier.subjects) == {"upstream"}


async def test_people_call_it_by_token_exchange_and_whom_the_provider_refuses_does_not(
    tmp_path: Path,
) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    with provider(httpx2.URL(issuer).port or 0, f"{SLUICE}/mcp", SLUICE):
        async with (
            foreign(issuer) as (server, verifier),
            trusting_issuers(tmp_path, settings_of(server, issuer, "token_exchange"), issuer) as url,
        ):
            for name in ("ada", "grace"):
                token = await person(issuer, name)
                verifier.subjects.clear()
                for revision in REVISIONS:
                    assert "result" in (await echo(url, revision, token, name)).message
                assert set(verifier.subjects) == {name}
            verifier.subjects.clear()
            refused = (await echo(url, "2026-07-28", await person(issuer, "mallory"), "no")).error["data"]
            assert (refused["code"], refused["error"]) == ("forbidden", "access_denied")
            assert verifier.subjects == []


async def test_people_call_it_by_an_assertion_for_its_own_authorization_server(tmp_path: Path) -> None:
    people, own = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    more = {"provider": {"issuer": people, "clientId": "upstream"}}
    with (
        provider(httpx2.URL(people).port or 0, f"{SLUICE}/mcp", SLUICE),
        provider(httpx2.URL(own).port or 0, f"{SLUICE}/mcp", SLUICE, people),
    ):
        async with (
            foreign(own) as (server, verifier),
            trusting_issuers(tmp_path, settings_of(server, own, "id_jag", **more), people) as url,
        ):
            token = await person(people, "ada")
            verifier.subjects.clear()
            for revision in REVISIONS:
                assert "result" in (await echo(url, revision, token, "ada")).message
            assert set(verifier.subjects) == {"ada"}


async def test_a_person_grants_in_a_browser_and_takes_it_back(tmp_path: Path) -> None:
    people, own = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    with (
        provider(httpx2.URL(people).port or 0, f"{SLUICE}/mcp", SLUICE),
        provider(httpx2.URL(own).port or 0, f"{SLUICE}/mcp", SLUICE),
    ):
        async with (
            foreign(own) as (server, verifier),
            trusting_issuers(tmp_path, settings_of(server, own, "user_grant"), people) as url,
            httpx2.AsyncClient(base_url=url.removesuffix("/mcp"), trust_env=False, timeout=30) as http,
        ):
            http.headers["authorization"] = f"Bearer {await person(people, 'ada')}"
            begun = await http.post("/api/v1/server-grants", json={"server": "alpha"})
            back = httpx2.URL(await signed_in(f"{begun.json()['authorize']}&login_hint=ada-at-alpha"))
            code = code_of(await http.get(back.raw_path.decode()))
            assert (await http.post("/api/v1/server-grants/confirm", json={"code": code})).status_code == 200
            verifier.subjects.clear()
            token = http.headers["authorization"].removeprefix("Bearer ")
            for revision in REVISIONS:
                assert "result" in (await echo(url, revision, token, "ada")).message
            assert set(verifier.subjects) == {"ada-at-alpha"}
            assert (await http.delete("/api/v1/server-grants/alpha")).status_code == 204
            assert (await echo(url, "2026-07-28", token, "ada")).error["data"]["code"] == "conflict"
