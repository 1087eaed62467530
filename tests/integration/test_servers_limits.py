"""Where servers may lie, which commands may run, what this process serves, and what an outage leaves untouched."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from app.core.catalog.tool_filter import ExposedTools
from app.core.errors import ForbiddenError, NotFoundError, UpstreamUnavailableError
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from app.services.servers.sealing import SubmittedServer
from app.services.servers.tenant_upstreams import UpstreamRules
from tests.factories import access_service
from tests.integration.serving_setup import LOOPBACK, Serving, forget_servers, serving_process, until
from tests.upstreams.misbehaving import Misbehaving, hang, misbehaving
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer
from tests.upstreams.warm import warm_settings

pytestmark = pytest.mark.in_turn("database_url")

STRICT = UpstreamRules(connect_timeout_s=5)
"""The settings' defaults: servers that were added over REST lie at public addresses only."""


@pytest.fixture(autouse=True)
async def forgotten(database_url: str, tenant: str) -> AsyncIterator[None]:
    yield
    await forget_servers(database_url, tenant)


@pytest.fixture
def url() -> Iterator[str]:
    with serving_http(ScriptedServer("alpha")) as served:
        yield served


@pytest.fixture
def raw() -> Iterator[Misbehaving]:
    with misbehaving() as server:
        yield server


@pytest.fixture
async def strict(database_url: str) -> AsyncIterator[Serving]:
    async with serving_process(database_url, STRICT) as running:
        yield running


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]", "10.0.0.1"]
)
async def test_a_server_added_over_rest_is_not_reached_inside(
    strict: Serving, tenant: str, raw: Misbehaving, host: str
) -> None:
    operator = await strict.tenant(tenant)
    await strict.add(operator, "inside", f"http://{host}:{raw.port}/mcp", headers={"X-Key": "k"})
    trial = await strict.servers.test(operator, "inside")
    assert not trial.inspection.ready and trial.inspection.error
    with pytest.raises(UpstreamUnavailableError):
        await strict.servers.approve(operator, "inside")
    assert raw.requests == []
    (event,) = await strict.events(operator, "servers.test")
    assert (event.outcome, event.details["ready"]) == ("failed", False)


async def test_networks_that_the_host_allows_and_declared_servers_are_reached(
    database_url: str, tenant: str, raw: Misbehaving
) -> None:
    async with serving_process(database_url) as allowing:
        operator = await allowing.tenant(tenant)
        await allowing.add(operator, "inside", raw.url)
        assert (await allowing.servers.test(operator, "inside")).inspection.ready
        await allowing.servers.approve(operator, "inside")
    async with serving_process(database_url, STRICT) as strict:
        await strict.declare(operator, "declared", url=raw.url)
        await until(lambda: strict.connection(operator, "declared") == "ready")
        # What was approved under other settings is not reached either.
        await until(lambda: strict.connection(operator, "inside") == "failed")


async def test_cloud_metadata_is_never_reached_not_even_by_what_is_declared(
    strict: Serving, tenant: str
) -> None:
    operator = await strict.tenant(tenant)
    await strict.declare(operator, "cloud", url="http://169.254.169.254/latest/meta-data")
    await until(lambda: strict.connection(operator, "cloud") == "failed")
    status = strict.upstreams.status(operator.tenant, "cloud")
    assert status is not None and "secrets of a cloud machine" in str(status.error)


async def test_commands_come_from_the_file_and_over_rest_only_where_the_host_says_so(
    database_url: str, tenant: str
) -> None:
    command = warm_settings("local")
    given = SubmittedServer({**command, "env": {"GREETING": "hello"}})
    async with serving_process(database_url) as strict:
        operator = await strict.tenant(tenant)
        with pytest.raises(ForbiddenError):
            await strict.servers.add(operator, "local", given)
        await strict.add(operator, "local", "https://mcp.example.com")
        with pytest.raises(ForbiddenError):
            await strict.servers.put(operator, "local", given)
        await strict.servers.remove(operator, "local")
        await strict.declare(operator, "declared", **command)
        await until(lambda: "declared__echo" in strict.tools(operator))
    async with serving_process(database_url, replace(LOOPBACK, stdio_over_rest=True)) as open_door:
        await open_door.servers.add(operator, "local", given)
        await open_door.servers.approve(operator, "local")
        await until(lambda: "local__echo" in open_door.tools(operator))
    async with serving_process(database_url) as strict:
        await until(lambda: "declared__echo" in strict.tools(operator))
        assert strict.connection(operator, "local") is None
        assert "STDIO_OVER_REST" in str(strict.upstreams.fault(operator.tenant, "local"))
        with pytest.raises(ForbiddenError):
            await strict.servers.test(operator, "local")
        counts = strict.upstreams.counts()
        assert counts["ready"] >= 1 and counts["failed"] >= 1


async def test_a_process_serves_the_named_servers_and_the_tools_that_both_filters_allow(
    database_url: str, tenant: str, url: str
) -> None:
    async with serving_process(database_url) as serving:
        operator = await serving.tenant(tenant)
        await serving.declare(operator, "alpha", url=url, tool_filter=["echo", "add", "slow"])
        await serving.declare(operator, "beta", url=url)
        await until(lambda: {"alpha__add", "beta__echo"} <= serving.tools(operator))
    rules = replace(LOOPBACK, servers=frozenset({"alpha"}), filters={"alpha": ExposedTools.parse(["-slow"])})
    async with serving_process(database_url, rules) as narrow:
        await until(lambda: narrow.tools(operator) == {"alpha__add", "alpha__echo"})
        assert narrow.upstreams.names() == ["alpha"]
        assert narrow.connection(operator, "beta") is None


@pytest.mark.parametrize(
    "rules",
    [
        replace(LOOPBACK, servers=frozenset({"nobody", "missing"})),
        replace(LOOPBACK, filters={"nobody": ExposedTools(), "missing": ExposedTools()}),
    ],
)
async def test_names_that_no_tenant_has_stop_the_start(database_url: str, rules: UpstreamRules) -> None:
    with pytest.raises(NotFoundError, match=r"^Servers not found: missing, nobody$") as refused:
        async with serving_process(database_url, rules):
            pass
    assert refused.value.details == {"servers": ["missing", "nobody"]}


@pytest.fixture
def hanging() -> Iterator[Misbehaving]:
    with misbehaving(on={"initialize": hang}) as server:
        yield server


async def test_a_server_that_is_down_or_hangs_holds_nobody_up(
    database_url: str, tenant: str, url: str, hanging: Misbehaving
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
        async with serving_process(database_url) as serving:
            operator = await serving.tenant(tenant)
            for name, where in (("down", down), ("hanging", hanging.url), ("up", url)):
                await serving.declare(operator, name, url=where)
            await until(lambda: "up__echo" in serving.tools(operator))
        async with serving_process(database_url, replace(LOOPBACK, connect_timeout_s=1)) as serving:
            await asyncio.wait_for(serving.upstreams.settled(), 60)
            assert serving.upstreams.ready
            await until(lambda: "up__echo" in serving.tools(operator))
            await until(lambda: serving.connection(operator, "hanging") == "failed")
            assert serving.connection(operator, "down") == "failed"


async def test_a_disabled_tenants_servers_are_left_alone_until_it_is_enabled(
    database_url: str, tenant: str, url: str
) -> None:
    async with serving_process(database_url) as serving:
        operator = await serving.tenant(tenant)
        await serving.declare(operator, "alpha", url=url)
        await until(lambda: serving.tools(operator))
        tenants = TenantService(access_service(serving.database, serving.vault.audit))
        await tenants.disable(HOST, tenant)
        await until(lambda: serving.connection(operator, "alpha") is None and not serving.tools(operator))
        await tenants.enable(HOST, tenant)
        await until(lambda: serving.tools(operator))
