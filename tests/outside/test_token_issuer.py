"""A certified OpenID provider that nobody here wrote (npm's oidc-provider) as the issuer: real flows at every door."""

import asyncio
import base64
import json
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from app.settings.auth import IssuerSettings
from tests.artefacts import ROOT
from tests.integration.service import Service, running_service
from tests.integration.test_doors import DISCOVER, INITIALIZE, MODERN
from tests.integration.test_token_doors import DOORS, INSIDE, MCP, ask
from tests.protocol.mcp_node import BIN

pytestmark = pytest.mark.outside

FOLDER = ROOT / "tests" / "outside" / "issuer"
CALLBACK = "http://127.0.0.1:9/callback"
BACKEND = ("backend", "backend-secret-of-the-tests")
SLUICE = ("sluice", "introspection-secret-of-the-tests")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@contextmanager
def provider(
    port: int, resource: str, console: str = "", trusted: str = "", *, token_seconds: int = 120
) -> Iterator["subprocess.Popen[str]"]:
    """Run the provider until the end of the body.

    ``console`` is the address of the console that it knows, ``trusted`` an identity provider whose assertions it takes,
    ``token_seconds`` how long its access tokens count.
    """
    more = [console, trusted] if trusted else [console] if console else []
    command = [str(BIN / "node"), "issuer.mjs", str(port), resource, *more]
    environment = {**os.environ, "TOKEN_SECONDS": str(token_seconds)}
    process = subprocess.Popen(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        assert any(line.strip() == "ready" for line in iter(process.stdout.readline, "")), process.poll()
        yield process
    finally:
        process.kill()
        process.wait(20)
        process.stdout.close()


@dataclass(frozen=True)
class Company:
    """A service, the provider that it trusts, and a client without a credential."""

    service: Service
    http: httpx2.Client
    issuer: str
    resource: str

    def backend_token(self, scope: str = "use", resource: str | None = None) -> str:
        """Return a token of a service, by client credentials."""
        form = {"grant_type": "client_credentials", "scope": scope, "resource": resource or self.resource}
        answer = httpx2.post(f"{self.issuer}/token", data=form, auth=BACKEND, trust_env=False)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token

    def revoke(self, token: str) -> None:
        """Let the provider take back a token."""
        answer = httpx2.post(
            f"{self.issuer}/token/revocation", data={"token": token}, auth=BACKEND, trust_env=False
        )
        assert answer.status_code == 200, answer.text


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    port, issuer = free_port(), f"http://127.0.0.1:{free_port()}"
    resource = f"http://127.0.0.1:{port}/mcp"
    rules = [
        {"when": {"groups": "auditors"}, "tenant": "default", "roles": ["invoker", "auditor"]},
        {"when": {"groups": "llm-users", "scope": "use"}, "tenant": "default", "roles": ["invoker"]},
        {"when": {"client_id": "backend", "scope": "use"}, "tenant": "default", "roles": ["invoker"]},
    ]
    settings = IssuerSettings.model_validate(
        {
            "issuer": issuer,
            "audience": [resource, f"{resource}/opaque"],
            "rules": rules,
            "introspection": {"clientId": SLUICE[0], "clientSecret": SLUICE[1], "cache": 1},
        }
    )
    folder = Path(tmp_path_factory.mktemp("company"))
    with (
        provider(urlsplit(issuer).port or 0, resource),
        running_service(folder, issuers=[settings], port=port) as service,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as http,
    ):
        yield Company(service, http, issuer, resource)


class Memory:
    """What a client of MCP stores: its registration and its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Person:
    """Signs in at the provider as a person does with a browser, and notes where it was sent."""

    def __init__(self, name: str) -> None:
        self.name, self.visited, self.returned = name, "", ""

    async def open(self, url: str) -> None:
        self.visited = url
        async with httpx2.AsyncClient(trust_env=False) as browser:
            place = f"{url}&login_hint={self.name}"
            while not place.startswith(CALLBACK):
                answer = await browser.get(place)
                assert answer.status_code in {302, 303}, answer.text
                place = urljoin(place, answer.headers["location"])
        self.returned = place

    async def code(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(parse_qsl(urlsplit(self.returned).query)))


def claims_of(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


async def client_of(company: Company, person: Person, memory: Memory) -> AsyncIterator[httpx2.AsyncClient]:
    metadata = OAuthClientMetadata(
        client_name="tests",
        redirect_uris=[AnyUrl(CALLBACK)],
        token_endpoint_auth_method="none",
    )
    flow = OAuthClientProvider(
        company.resource, metadata, memory, redirect_handler=person.open, callback_handler=person.code
    )
    async with httpx2.AsyncClient(auth=flow, timeout=30, trust_env=False) as http:
        yield http


@pytest.mark.parametrize("door", DOORS)
def test_a_service_gets_in_by_client_credentials(company: Company, door: str) -> None:
    token = company.backend_token()
    assert claims_of(token)["aud"] == company.resource
    answer = ask(company.http, door, token)
    assert answer.status_code == INSIDE.get(door, 200), answer.text
    assert ask(company.http, door, company.backend_token(scope="see")).status_code == 403
    changed = f"{token[:-8]}{'A' * 8}"
    assert ask(company.http, door, changed).status_code == 401


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_clients_own_flow_of_mcp_leads_a_person_in(company: Company, revision: str) -> None:
    person, memory = Person("ada"), Memory()
    body, headers = (INITIALIZE, MCP) if revision == "2025-11-25" else (DISCOVER, {**MCP, **MODERN})
    async for http in client_of(company, person, memory):
        answer = await http.post(company.resource, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        assert "result" in answer.text
    asked = dict(parse_qsl(urlsplit(person.visited).query))
    assert "use" in asked["scope"].split() and "see" not in asked["scope"].split()
    assert (asked["resource"], asked["code_challenge_method"]) == (company.resource, "S256")
    assert memory.tokens is not None
    claims = claims_of(memory.tokens.access_token)
    assert (claims["iss"], claims["sub"], claims["aud"]) == (company.issuer, "ada", company.resource)


async def test_a_person_without_a_group_stays_out_and_one_with_it_reads_the_record(company: Company) -> None:
    path = company.resource.removesuffix("/mcp") + "/api/v1/audit/events?limit=1"
    statuses = {}
    for name in ("eve", "ada", "grace"):
        memory = Memory()
        async for http in client_of(company, Person(name), memory):
            with_token = await http.post(company.resource, json=INITIALIZE, headers=MCP)
            assert memory.tokens is not None
            bearer = {"authorization": f"Bearer {memory.tokens.access_token}"}
            read = await asyncio.to_thread(company.http.get, path, headers=bearer)
            statuses[name] = (with_token.status_code, read.status_code)
    assert statuses == {"eve": (403, 403), "ada": (200, 403), "grace": (200, 200)}


def test_an_opaque_token_counts_until_it_is_revoked(company: Company) -> None:
    token = company.backend_token(resource=f"{company.resource}/opaque")
    assert "." not in token
    for door in DOORS.keys() - {"gateway"}:
        assert ask(company.http, door, token).status_code == 200
    # There, what looks like anything may be a provider's own key, which no issuer is to see.
    assert ask(company.http, "gateway", token).status_code == 401
    assert ask(company.http, "gateway", None, **{"x-sluice-key": token}).status_code == INSIDE["gateway"]
    company.revoke(token)
    for _ in range(100):
        answer = ask(company.http, "REST", token)
        if answer.status_code == 401:
            break
        time.sleep(0.05)
    assert answer.status_code == 401


def test_a_provider_that_went_away_harms_no_known_key(
    tmp_path: Path,
) -> None:
    issuer = f"http://127.0.0.1:{free_port()}"
    resource = "https://sluice.example.com/mcp"
    rule = {"when": {"client_id": "backend"}, "tenant": "default", "roles": ["invoker"]}
    settings = IssuerSettings.model_validate({"issuer": issuer, "audience": [resource], "rules": [rule]})
    with (
        running_service(tmp_path, issuers=[settings]) as service,
        httpx2.Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30, trust_env=False) as http,
    ):
        company = Company(service, http, issuer, resource)
        with provider(urlsplit(issuer).port or 0, resource):
            first, second = company.backend_token(), company.backend_token()
            assert ask(http, "REST", first).status_code == 200
        assert ask(http, "REST", second).status_code == 200
