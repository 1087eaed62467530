"""Catalogs on both databases: what each change tells subscribers, and the changes that overtake a building."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from app.assembly import Services, opened
from app.core.access import Caller
from app.core.catalog.concerns import ConcernDefinition, ConcernMapping
from app.core.catalog.groups import GroupDefinition
from app.core.catalog.primitives import Catalog, PrimitiveKind
from app.core.tools.disclosure import ToolDescription
from app.services.access.access import HOST
from app.services.catalog.catalogs import LISTS
from app.services.servers.sealing import SubmittedServer
from app.settings import UpstreamsSettings
from tests.factories import caller_of
from tests.integration.serving_setup import forget_servers, until
from tests.protocol.mcp_service import settings_of
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

pytestmark = pytest.mark.in_turn("database_url")

EFFECT = ConcernDefinition(
    name="effect", description="What it does.", values=("read", "write"), default="read"
)


@dataclass
class Shop:
    """A tenant with a server behind it, its catalogs, and what subscribers were told of it."""

    services: Services
    operator: Caller
    told: list[frozenset[str]] = field(default_factory=list)

    async def catalog(self) -> Catalog:
        return await self.services.catalogs.get(self.operator.tenant)

    async def names(self) -> set[str]:
        return set((await self.catalog()).of(PrimitiveKind.TOOL))

    def heard(self, tenant: str, changed: frozenset[str]) -> None:
        if tenant == self.operator.tenant:
            self.told.append(changed)

    async def quiet(self) -> None:
        """Wait until what has changed so far is built and told, and forget it."""
        catalog = None
        while catalog is not await self.catalog():
            catalog = await self.catalog()
            await asyncio.sleep(0.2)
        self.told.clear()

    async def hears(self, *names: str) -> None:
        """Wait until the subscribers were told of these lists, and see that they are told of no other."""
        await until(lambda: frozenset().union(*self.told) >= frozenset(names))
        await asyncio.sleep(0.2)
        assert frozenset().union(*self.told) == frozenset(names)
        self.told.clear()

    async def put_group(self, name: str, *members: tuple[str, str]) -> None:
        listed = [{"kind": kind, "name": pattern} for kind, pattern in members]
        group = GroupDefinition.model_validate({"name": name, "members": listed})
        await self.services.groups.put(self.operator, group)


@pytest.fixture
def script() -> ScriptedServer:
    return ScriptedServer("alpha")


@pytest.fixture
def url(script: ScriptedServer) -> Iterator[str]:
    with serving_http(script) as served:
        yield served


@pytest.fixture
async def services(database_url: str, tenant: str) -> AsyncIterator[Services]:
    async with process(database_url) as found:
        yield found
    await forget_servers(database_url, tenant)


def process(database_url: str):
    local = UpstreamsSettings(allowed_networks=["127.0.0.0/8"])
    return opened(settings_of(database_url).model_copy(update={"upstreams": local}))


@pytest.fixture
async def shop(services: Services, tenant: str, url: str) -> AsyncIterator[Shop]:
    async with services.upstreams.running():
        found = Shop(services, await made(services, tenant))
        services.catalogs.subscribe(found.heard)
        await services.servers.add(found.operator, "alpha", SubmittedServer({"url": url}))
        await services.servers.approve(found.operator, "alpha")
        await services.servers.add(found.operator, "beta", SubmittedServer({"url": url}))
        async with asyncio.timeout(30):
            while "alpha__echo" not in await found.names():
                await asyncio.sleep(0.02)
        await found.quiet()
        yield found


async def made(services: Services, tenant: str) -> Caller:
    await services.tenants.create(HOST, tenant)
    return caller_of(tenant)


async def test_a_group_tells_of_itself_and_of_the_kinds_of_its_members(shop: Shop) -> None:
    await shop.put_group("empty")
    await shop.hears("group")
    await shop.put_group("tools", ("tool", "alpha__echo"))
    await shop.hears("group", "tool")
    await shop.put_group("mixed", ("prompt", "*"), ("resource", "*"), ("template", "*"))
    await shop.hears("group", "prompt", "resource", "template")
    await shop.put_group("stamps", ("middleware", "timestamp_injector"))
    await shop.hears("group", "middleware")
    await shop.put_group("tools", ("tool", "alpha__echo"), ("tool", "alpha__add"))
    await shop.hears("tool")
    await shop.services.groups.delete(shop.operator, "tools")
    await shop.hears("group", "tool")


async def test_concerns_tell_of_the_mapped_kinds_alone(shop: Shop) -> None:
    await shop.services.concerns.put(shop.operator, EFFECT)
    await asyncio.sleep(0.3)
    assert shop.told == []
    tool = ConcernMapping.model_validate({"kind": "tool", "name": "alpha__*", "concerns": {"effect": "read"}})
    await shop.services.concerns.put_mapping(shop.operator, tool)
    await shop.hears("tool concerns")
    await shop.services.concerns.delete_mapping(shop.operator, tool.kind, tool.name)
    await shop.hears("tool concerns")
    nothing = tool.model_copy(update={"name": "nothing__*"})
    await shop.services.concerns.put_mapping(shop.operator, nothing)
    await asyncio.sleep(0.3)
    assert shop.told == []


async def test_a_description_tells_of_tools_and_changes_their_short_form(shop: Shop) -> None:
    await shop.services.descriptions.put(
        shop.operator, "alpha__echo", ToolDescription(short="Says it again.")
    )
    await shop.hears("tool")
    short = (await shop.catalog()).of(PrimitiveKind.TOOL)["alpha__echo"].short
    assert short is not None
    assert short["description"] == "Says it again."
    await shop.services.descriptions.remove(shop.operator, "alpha__echo")
    await shop.hears("tool")


async def test_servers_tell_of_what_they_offer(shop: Shop, script: ScriptedServer) -> None:
    await shop.services.servers.approve(shop.operator, "beta")
    # Both offer the same URIs, so these are shown with their server's name now.
    await shop.hears("tool", "prompt", "resource", "template")
    assert {"alpha__echo", "beta__echo"} <= await shop.names()
    await shop.services.servers.pause(shop.operator, "beta")
    await shop.hears("tool", "prompt", "resource", "template")
    assert "beta__echo" not in await shop.names()

    script.resources["memo://three"] = {"uri": "memo://three", "name": "three"}
    script.announce("resources")
    await shop.hears("resource")

    script.add_tool("late")
    script.announce("tools")
    await until(lambda: shop.services.upstreams.approved(shop.operator.tenant).quarantined)
    await asyncio.sleep(0.3)
    assert shop.told == [], "what is held back changes no list"
    await shop.services.servers.approve(shop.operator, "alpha")
    await shop.hears("tool")
    assert "alpha__late" in await shop.names()


async def test_a_tenant_hears_nothing_of_another_and_sees_nothing_of_it(shop: Shop) -> None:
    other = Shop(shop.services, await made(shop.services, f"{shop.operator.tenant}-2"))
    shop.services.catalogs.subscribe(other.heard)
    assert await other.names() == set()
    await other.quiet()
    await shop.put_group("mine", ("tool", "alpha__echo"))
    await shop.hears("group", "tool")
    assert other.told == []
    assert (await other.catalog()).groups == {}

    await other.put_group("theirs", ("tool", "*"))
    await other.hears("group")
    assert shop.told == []
    assert list((await shop.catalog()).groups) == ["mine"]


async def test_whoever_nobody_asked_for_yet_hears_of_all_lists(services: Services, tenant: str) -> None:
    shop = Shop(services, await made(services, tenant))
    services.catalogs.subscribe(shop.heard)
    await shop.put_group("first")
    await shop.hears(*LISTS)


async def test_a_change_during_a_building_is_neither_lost_nor_kept_from_who_asks_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    table = shop.services.concerns.table

    async def slow(tenant: str) -> object:
        # The groups were read when this is asked for.
        begun.set()
        await go_on.wait()
        return await table(tenant)

    monkeypatch.setattr(type(shop.services.concerns), "table", lambda _self, tenant: slow(tenant))
    # Its warnings wait for the catalog.
    first = asyncio.create_task(shop.put_group("one", ("tool", "alpha__echo")))
    await begun.wait()
    before = asyncio.create_task(shop.catalog())
    await asyncio.sleep(0)
    monkeypatch.undo()
    second = asyncio.create_task(shop.put_group("two", ("tool", "alpha__add")))
    during = await built(shop, ["one", "two"])
    go_on.set()
    await asyncio.gather(first, second)
    assert list((await before).groups) == ["one"]
    assert await shop.catalog() is during, "the building that was overtaken is not kept"
    await shop.hears("group", "tool")


async def built(shop: Shop, groups: list[str]) -> Catalog:
    """Ask again and again, without waiting for what is held up, until the announcement has arrived."""
    async with asyncio.timeout(20):
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    if list((found := await shop.catalog()).groups) == groups:
                        return found


async def test_a_reader_that_gives_up_takes_the_catalog_from_nobody(shop: Shop) -> None:
    shop.services.catalogs.mark_stale(shop.operator.tenant)
    first, second = (asyncio.create_task(shop.catalog()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert "alpha__echo" in (await second).of(PrimitiveKind.TOOL)


async def test_a_change_between_the_question_and_the_first_step_of_its_answer_is_not_lost(shop: Shop) -> None:
    catalogs, tenant = shop.services.catalogs, shop.operator.tenant
    before = await shop.catalog()
    catalogs.mark_stale(tenant)
    asked = asyncio.create_task(shop.catalog())
    await asyncio.sleep(0)  # the question is put, and the task that answers it has not begun
    catalogs.mark_stale(tenant)
    await asked
    assert await shop.catalog() is not before


async def test_what_another_process_changes_is_found(shop: Shop, database_url: str) -> None:
    async with process(database_url) as host:
        elsewhere = Shop(host, shop.operator)
        await elsewhere.put_group("one", ("tool", "alpha__echo"))
        await shop.hears("group", "tool")
        await host.descriptions.put(shop.operator, "alpha__add", ToolDescription(short="Adds."))
        await shop.hears("tool")
        await host.concerns.put(shop.operator, EFFECT)
        mapping = {"kind": "prompt", "name": "alpha__*", "concerns": {"effect": "read"}}
        await host.concerns.put_mapping(shop.operator, ConcernMapping.model_validate(mapping))
        await shop.hears("prompt concerns")
    assert list((await shop.catalog()).groups) == ["one"]
