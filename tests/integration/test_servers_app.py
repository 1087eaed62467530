"""Servers in the whole service: readiness, metrics, and tools that appear over MCP after an approval only."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient
from mcp import Client

from app.core.access import DEFAULT_TENANT
from app.core.catalog.servers import MCPServerSettings, ServerEntry
from tests.factories import caller_of
from tests.protocol.mcp_service import service
from tests.upstreams.misbehaving import hang, misbehaving
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

pytestmark = pytest.mark.in_turn("own_database_url")


@pytest.fixture
def script() -> ScriptedServer:
    return ScriptedServer("alpha")


@pytest.fixture
def url(script: ScriptedServer) -> Iterator[str]:
    with serving_http(script) as served:
        yield served


@pytest.fixture
def hanging_url() -> Iterator[str]:
    with misbehaving(on={"initialize": hang}) as server:
        yield server.url


async def declared(app: FastAPI, name: str, url: str) -> None:
    """Declare a server of the default tenant, as `sluice apply` does."""
    entry = ServerEntry(name=name, settings=MCPServerSettings(type="http", url=url))
    services, operator = app.state.services, caller_of(DEFAULT_TENANT)
    async with services.database.transaction(DEFAULT_TENANT) as tx:
        await services.servers.declare(tx, operator, entry)


async def listed(url: str, name: str, *, present: bool) -> None:
    """Wait until a tool is in the list that a client gets, or is not."""
    async with asyncio.timeout(40), Client(url) as client:
        while True:
            found = {tool.name: tool for tool in (await client.list_tools()).tools}
            if (name in found) is present:
                return
            await asyncio.sleep(0.1)


async def until_ready(http: AsyncClient) -> dict[str, Any]:
    async with asyncio.timeout(40):
        while True:
            answer = await http.get("/readyz")
            if answer.status_code == 200:
                body: dict[str, Any] = answer.json()
                return body
            await asyncio.sleep(0.1)


async def test_a_client_sees_a_servers_tools_and_not_one_that_changed(
    own_database_url: str, script: ScriptedServer, url: str
) -> None:
    name = f"a{uuid4().hex[:8]}"
    async with service(own_database_url, required=False) as (mcp, app):
        await declared(app, name, url)
        await listed(mcp, f"{name}__echo", present=True)
        script.tools["echo"] |= {"description": "Now other."}
        script.announce("tools")
        await listed(mcp, f"{name}__echo", present=False)
        await listed(mcp, f"{name}__slow", present=True)
        await app.state.services.servers.approve(caller_of(DEFAULT_TENANT), name)
        await listed(mcp, f"{name}__echo", present=True)
        async with AsyncClient(base_url=mcp.removesuffix("/mcp")) as http:
            assert (await until_ready(http))["checks"]["upstreams"] is True
            shown = (await http.get("/metrics")).text
            assert 'sluice_upstream_servers{state="ready"} ' in shown
            assert name not in shown
            one = (await http.get(f"/api/v1/servers/{name}")).json()
            assert (one["status"]["state"], one["listed"]) == ("ready", True)


async def test_a_server_that_hangs_delays_readiness_for_its_time_limit_only(
    own_database_url: str, hanging_url: str
) -> None:
    name = f"h{uuid4().hex[:8]}"
    async with service(own_database_url, required=False) as (_, app):
        await declared(app, name, hanging_url)
    async with (
        service(own_database_url, required=False) as (mcp, _),
        AsyncClient(base_url=mcp.removesuffix("/mcp")) as http,
    ):
        first = await http.get("/readyz")
        assert (first.status_code, first.json()["checks"]["upstreams"]) == (503, False)
        assert (await until_ready(http))["checks"]["upstreams"] is True
        status = (await http.get(f"/api/v1/servers/{name}")).json()["status"]
        assert status["state"] in {"failed", "connecting"}
