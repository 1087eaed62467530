"""What MCP's own clients do about tokens, from the first refusal to the step up, against a provider nobody here wrote.

The clients are the TypeScript SDK's two generations and the Python SDK. Each comes without a token, finds the issuer by
itself, registers, signs a person in, calls, renews its token, and asks for more scopes where it is told which.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import mcp_types as types
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from pydantic import AnyUrl, TypeAdapter

from app.settings.auth import IssuerSettings
from tests.integration.service import running_service
from tests.outside.test_token_issuer import CALLBACK, Company, Memory, Person, claims_of, free_port, provider
from tests.protocol.mcp_node import node
from tests.protocol.mcp_wire import HANDSHAKE, MODERN

pytestmark = pytest.mark.outside

SECONDS = 3
"""How long a token counts."""
ANYTHING = TypeAdapter(dict[str, Any])
TEXT = [{"type": "text", "text": "Call [PERSON_1]."}]
JANE = [{"type": "text", "text": "Call Jane."}]


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Yield a service whose people need one scope more to restore."""
    port, issuer = free_port(), f"http://127.0.0.1:{free_port()}"
    resource = f"http://127.0.0.1:{port}/mcp"
    people = {"groups": "llm-users"}
    rules = [
        {"when": {**people, "scope": ["use", "see"]}, "tenant": "default", "roles": ["invoker", "restorer"]},
        {"when": {**people, "scope": "use"}, "tenant": "default", "roles": ["invoker"]},
    ]
    settings = IssuerSettings.model_validate(
        {"issuer": issuer, "audience": [resource], "rules": rules, "leeway": 0}
    )
    folder = Path(tmp_path_factory.mktemp("flows"))
    with (
        provider(urlsplit(issuer).port or 0, resource, token_seconds=SECONDS),
        running_service(folder, issuers=[settings], port=port) as service,
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as http,
    ):
        yield Company(service, http, issuer, resource)


async def flow(company: Company, *arguments: str) -> dict[str, Any]:
    """Run a client of the TypeScript SDK, and return what it saw."""
    script, person, *more = arguments
    status, printed = await node(f"clients/{script}", company.resource, person, str(SECONDS), *more)
    assert status == 0, printed
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def check(company: Company, seen: dict[str, Any]) -> None:
    """Check what a client of the TypeScript SDK saw."""
    assert seen["first"]["content"] == seen["second"]["content"] == JANE
    assert seen["refreshed"] and seen["visits"] == 1  # renewed without asking the person
    first, second = seen["asked"]
    assert (first["resource"], first["method"]) == (company.resource, "S256")
    assert second["resource"] == company.resource
    assert "use" in first["scope"].split() and "see" not in first["scope"].split()
    assert {"use", "see"} <= set(second["scope"].split())
    assert seen["stopped"] == "UnauthorizedError"  # which tells the application that the person is asked
    assert seen["restored"]["content"] == TEXT and {"use", "see"} <= set(seen["scope"].split())


async def test_the_flow_of_the_typescript_sdks_first_generation(company: Company) -> None:
    seen = await flow(company, "flow1.ts", "ada")
    check(company, seen)
    assert seen["session"]


@pytest.mark.parametrize(("mode", "version"), [("legacy", HANDSHAKE), ("auto", MODERN)])
async def test_the_flow_of_the_typescript_sdks_second_generation(
    company: Company, mode: str, version: str
) -> None:
    seen = await flow(company, "flow2.ts", "ada", mode)
    check(company, seen)
    assert seen["version"] == version


@pytest.mark.parametrize("arguments", [("flow1.ts", "eve"), ("flow2.ts", "eve", "auto")])
async def test_a_person_whom_no_rule_maps_gets_in_with_no_client(
    company: Company, arguments: tuple[str, ...]
) -> None:
    script, person, *more = arguments
    status, printed = await node(f"clients/{script}", company.resource, person, str(SECONDS), *more)
    assert status != 0 and "403" in printed, printed


def invoking(name: str, **arguments: Any) -> Any:
    params = {"name": name, "context": TEXT, "arguments": arguments}
    return types.Request[dict[str, Any], str](method="middleware/invoke", params=params)


@pytest.mark.parametrize(("mode", "version"), [("legacy", HANDSHAKE), ("auto", MODERN)])
async def test_the_flow_of_the_python_sdk(company: Company, mode: Any, version: str) -> None:
    visited: list[dict[str, str]] = []

    class Noting(Person):
        async def open(self, url: str) -> None:
            visited.append(dict(parse_qsl(urlsplit(url).query)))
            await super().open(url)

    person, memory = Noting("ada"), Memory()
    metadata = OAuthClientMetadata(
        client_name="tests", redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(
        company.resource, metadata, memory, redirect_handler=person.open, callback_handler=person.code
    )
    async with (
        httpx2.AsyncClient(auth=auth, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(company.resource, http_client=http), mode=mode) as client,
    ):
        ask = client.session.send_request
        naming = invoking("pii_restoration", redactions={"PERSON_1": "Jane"})
        assert client.protocol_version == version
        assert (await ask(naming, ANYTHING))["content"] == JANE
        assert memory.tokens is not None
        claims = claims_of(memory.tokens.access_token)
        await asyncio.sleep(claims["exp"] - time.time() + 1)
        assert (await ask(naming, ANYTHING))["content"] == JANE
        renewed = claims_of(memory.tokens.access_token)
        assert renewed["exp"] > claims["exp"] and len(visited) == 1
        restored = await ask(invoking("pii_restoration", scope="a-conversation"), ANYTHING)
        assert restored["content"] == TEXT and len(visited) == 2
    assert "see" not in visited[0]["scope"].split() and {"use", "see"} <= set(visited[1]["scope"].split())
    assert {asked["resource"] for asked in visited} == {company.resource}
    assert {asked["code_challenge_method"] for asked in visited} == {"S256"}
