"""Servers on both databases with real servers behind: approval, quarantine, replicas, and what is on record."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest

from app.core.access import Caller, Role
from app.core.catalog.primitives import SERVERS_CHANGED, PrimitiveKind
from app.core.errors import ConflictError, ForbiddenError, InternalError, NotFoundError
from app.core.events import Changed
from app.services.servers.approval import WantedDefinition
from app.services.servers.sealing import SubmittedServer
from app.store.servers import SERVERS
from tests.integration.serving_setup import Serving, forget_servers, serving_process, until
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import MISDECLARED, ScriptedServer

pytestmark = pytest.mark.in_turn("database_url")

LEAK = "region"  # the fixture's tool that declares a header wrongly


@pytest.fixture(autouse=True)
async def forgotten(database_url: str, tenant: str) -> AsyncIterator[None]:
    yield
    await forget_servers(database_url, tenant)


@pytest.fixture
def script() -> ScriptedServer:
    made = ScriptedServer("alpha")
    made.tools["region"]["inputSchema"] = MISDECLARED
    return made


@pytest.fixture
def url(script: ScriptedServer) -> Iterator[str]:
    with serving_http(script) as served:
        yield served


@pytest.fixture
async def serving(database_url: str) -> AsyncIterator[Serving]:
    async with serving_process(database_url) as running:
        yield running


@pytest.fixture
async def operator(serving: Serving, tenant: str) -> Caller:
    return await serving.tenant(tenant)


async def test_a_server_is_served_from_its_approval_on(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str
) -> None:
    await serving.add(operator, "alpha", url)
    known = (await serving.servers.list(operator))[0]
    assert (known.stored.state, known.stored.pinned) == ("pending", None)
    assert serving.upstreams.aggregator(operator.tenant) is None or not serving.tools(operator)
    assert script.calls == []

    approval = await serving.servers.approve(operator, "alpha")

    assert approval.stored.state == "approved"
    assert [one.name for one in approval.chosen.held_back] == [LEAK]
    await until(lambda: "alpha__echo" in serving.tools(operator))
    assert f"alpha__{LEAK}" not in serving.tools(operator)
    assert serving.quarantined(operator) == {LEAK: "invalid-header"}
    offers = serving.upstreams.approved(operator.tenant).offers
    assert {one.kind for one in offers} == {
        PrimitiveKind.TOOL,
        PrimitiveKind.PROMPT,
        PrimitiveKind.RESOURCE,
        PrimitiveKind.TEMPLATE,
    }
    assert operator.tenant in serving.told


async def test_a_changed_description_is_quarantined_until_it_is_approved(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await serving.add(operator, "alpha", url)
    await serving.servers.approve(operator, "alpha")
    await until(lambda: "alpha__echo" in serving.tools(operator))
    before = serving.tools(operator)

    script.tools["echo"] |= {"description": "Sends everything to a stranger."}
    script.add_tool("late")
    del script.tools["add"]
    script.announce("tools")

    await until(lambda: "echo" in serving.quarantined(operator))
    assert serving.tools(operator) == before - {"alpha__echo", "alpha__add"}
    assert serving.quarantined(operator) == {LEAK: "invalid-header", "echo": "changed", "late": "new"}
    detail = await serving.servers.get(operator, "alpha")
    states = {one.name: one.state.value for one in detail.reviews or [] if one.kind is PrimitiveKind.TOOL}
    assert (states["echo"], states["late"], states["add"], states["slow"]) == (
        "changed",
        "new",
        "gone",
        "approved",
    )
    await until(lambda: f"alpha of tenant {operator.tenant}: 3 definitions are quarantined" in caplog.text)
    assert "stranger" not in caplog.text and "late" not in caplog.text

    await serving.servers.approve(operator, "alpha", [WantedDefinition(PrimitiveKind.TOOL, "echo")])

    await until(lambda: "alpha__echo" in serving.tools(operator))
    assert serving.quarantined(operator) == {LEAK: "invalid-header", "late": "new"}
    assert "alpha__late" not in serving.tools(operator)


async def test_a_second_replica_follows_every_step(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str, database_url: str
) -> None:
    await serving.add(operator, "alpha", url)
    await serving.servers.approve(operator, "alpha")
    async with serving_process(database_url) as second:
        await until(lambda: "alpha__echo" in second.tools(operator))
        script.tools["echo"] |= {"description": "Other."}
        script.announce("tools")
        await until(lambda: "echo" in second.quarantined(operator))
        await second.servers.approve(operator, "alpha")
        for process in (serving, second):
            await until(lambda it=process: "alpha__echo" in it.tools(operator))
        await serving.servers.pause(operator, "alpha")
        await until(lambda: not second.tools(operator))
        await serving.servers.resume(operator, "alpha")
        await until(lambda: "alpha__echo" in second.tools(operator))
        await serving.servers.remove(operator, "alpha")
        for process in (serving, second):
            await until(lambda it=process: not it.tools(operator))


async def test_a_replica_that_did_not_hear_its_server_lists_it_again_after_an_approval(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str
) -> None:
    await serving.add(operator, "alpha", url)
    await serving.servers.approve(operator, "alpha")
    await until(lambda: "alpha__echo" in serving.tools(operator))
    script.tools["echo"] |= {"description": "Changed, and nobody was told."}

    await serving.servers.approve(operator, "alpha")

    def description() -> object:
        offers = serving.upstreams.approved(operator.tenant).offers
        return next((one.definition["description"] for one in offers if one.own_name == "echo"), None)

    await until(lambda: description() == "Changed, and nobody was told.")


async def test_the_first_listing_of_a_declared_server_is_approved_and_a_later_change_is_not(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str
) -> None:
    assert await serving.declare(operator, "alpha", url=url)
    await until(lambda: "alpha__echo" in serving.tools(operator))
    (event,) = await serving.events(operator, "servers.approve")
    assert (event.actor, event.details["server"], event.details["held_back"]) == ("file", "alpha", 1)

    script.tools["echo"] |= {"description": "Other."}
    script.announce("tools")
    await until(lambda: "echo" in serving.quarantined(operator))

    assert not await serving.declare(operator, "alpha", url=url)
    first = (await serving.servers.list(operator))[0].stored.pinned
    assert await serving.declare(operator, "alpha", url=url, headers={"X-Key": "rotated"})
    assert (await serving.servers.list(operator))[0].stored.pinned == first is not None
    await until(lambda: serving.connection(operator, "alpha") == "ready")
    await until(lambda: "echo" in serving.quarantined(operator))
    assert await serving.declare(operator, "alpha", url=f"{url}?another=1", headers={"X-Key": "rotated"})
    assert (await serving.servers.list(operator))[0].stored.pinned != first
    await until(lambda: "alpha__echo" in serving.tools(operator))


async def test_filters_of_the_entry_and_of_the_process_narrow_tools(
    operator: Caller, url: str, database_url: str, serving: Serving
) -> None:
    await serving.declare(operator, "alpha", url=url, tool_filter=["echo", "add"])
    await until(lambda: serving.tools(operator) == {"alpha__echo", "alpha__add"})


async def test_how_a_server_is_reached_decides_whether_it_waits_again(
    serving: Serving, operator: Caller, url: str
) -> None:
    await serving.add(operator, "alpha", url, headers={"X-Key": "first"})
    await serving.servers.approve(operator, "alpha")
    same = SubmittedServer({"url": url, "description": "Only words."}, tool_filter=["echo"])
    assert (await serving.servers.put(operator, "alpha", same)).stored.state == "approved"
    await until(lambda: serving.tools(operator) == {"alpha__echo"})
    other = SubmittedServer({"url": url, "headers": {"X-Key": "second"}})
    changed = await serving.servers.put(operator, "alpha", other)
    assert (changed.stored.state, changed.stored.pinned) == ("pending", None)
    assert not serving.tools(operator)  # what was changed holds when it is answered
    await serving.servers.pause(operator, "alpha")
    assert (await serving.servers.resume(operator, "alpha")).stored.state == "pending"
    (first, second) = await serving.events(operator, "servers.put")
    assert (first.details["changed"], second.details["changed"]) == (
        "description,tool_filter",
        "description,headers,tool_filter",
    )


async def test_an_approval_holds_for_what_was_looked_at(
    serving: Serving, operator: Caller, script: ScriptedServer, url: str
) -> None:
    await serving.add(operator, "alpha", url)
    trial = await serving.servers.test(operator, "alpha")
    assert trial.inspection.ready and {one.state.value for one in trial.reviews} == {"new", "invalid-header"}
    script.tools["echo"] |= {"description": "Swapped behind the operator's back."}
    with pytest.raises(ConflictError):
        await serving.servers.approve(operator, "alpha", listing=trial.inspection.digest)
    again = await serving.servers.test(operator, "alpha")
    await serving.servers.approve(operator, "alpha", listing=again.inspection.digest)
    events = await serving.events(operator, "servers.test")
    assert [(one.outcome, one.details["ready"]) for one in events] == [("ok", True), ("ok", True)]


async def test_what_is_declared_is_changed_in_its_file_only(
    serving: Serving, operator: Caller, url: str
) -> None:
    await serving.declare(operator, "alpha", url=url)
    with pytest.raises(ConflictError):
        await serving.servers.put(operator, "alpha", SubmittedServer({"url": "http://10.0.0.1/"}))
    with pytest.raises(ConflictError):
        await serving.servers.remove(operator, "alpha")
    await serving.servers.remove(operator, "alpha", host=True)
    with pytest.raises(NotFoundError):
        await serving.servers.get(operator, "alpha")


async def test_a_file_takes_a_server_over_and_lets_go_of_its_own_only(
    serving: Serving, operator: Caller, url: str
) -> None:
    await serving.add(operator, "alpha", url)
    await serving.add(operator, "beta", url)
    await serving.servers.pause(operator, "alpha")
    assert await serving.declare(operator, "alpha", url=url)
    known = {one.stored.name: one.stored for one in await serving.servers.list(operator)}
    assert (known["alpha"].origin, known["alpha"].state) == ("file", "paused")
    assert (await serving.servers.resume(operator, "alpha")).stored.state == "approved"
    await until(lambda: "alpha__echo" in serving.tools(operator))
    async with serving.database.transaction(operator.tenant) as tx:
        assert not await serving.servers.withdraw(tx, operator, "beta")
        assert await serving.servers.withdraw(tx, operator, "alpha")
    await until(lambda: not serving.tools(operator))


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
async def test_only_operators_administer_servers_and_refusals_are_on_record(
    serving: Serving, operator: Caller, role: Role
) -> None:
    caller = Caller(operator.tenant, "0a1b2c3d", frozenset({role}))
    given = SubmittedServer({"url": "https://mcp.example.com"})
    for name, attempt in {
        "list": serving.servers.list(caller),
        "get": serving.servers.get(caller, "alpha"),
        "add": serving.servers.add(caller, "alpha", given),
        "put": serving.servers.put(caller, "alpha", given),
        "test": serving.servers.test(caller, "alpha"),
        "approve": serving.servers.approve(caller, "alpha"),
        "pause": serving.servers.pause(caller, "alpha"),
        "resume": serving.servers.resume(caller, "alpha"),
        "remove": serving.servers.remove(caller, "alpha"),
    }.items():
        with pytest.raises(ForbiddenError):
            await attempt
        (event,) = await serving.events(operator, f"servers.{name}")
        assert (event.outcome, event.error_code) == ("refused", "forbidden")


async def test_another_tenants_servers_are_not_there(serving: Serving, operator: Caller, url: str) -> None:
    await serving.add(operator, "alpha", url)
    await serving.servers.approve(operator, "alpha")
    await until(lambda: "alpha__echo" in serving.tools(operator))
    other = await serving.tenant(f"{operator.tenant}-2")
    assert await serving.servers.list(other) == []
    for attempt in (
        serving.servers.get(other, "alpha"),
        serving.servers.approve(other, "alpha"),
        serving.servers.pause(other, "alpha"),
        serving.servers.remove(other, "alpha"),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert serving.tools(other) == set()
    assert "alpha__echo" in serving.tools(operator)


async def test_of_two_servers_of_one_name_the_second_is_refused(
    serving: Serving, operator: Caller, url: str
) -> None:
    await serving.add(operator, "alpha", url)
    with pytest.raises(ConflictError):
        await serving.add(operator, "alpha", "https://elsewhere.example.com")
    assert (await serving.servers.list(operator))[0].entry.settings.url == url


async def test_a_server_whose_secrets_are_lost_is_named_and_mended_and_hides_no_other(
    serving: Serving, operator: Caller, url: str
) -> None:
    for name in ("alpha", "beta"):
        await serving.add(operator, name, url, headers={"X-Key": "k"})
        await serving.servers.approve(operator, name)
    async with serving.database.transaction(operator.tenant) as tx:
        stored = await SERVERS.find(tx, operator.tenant, "alpha")
        assert stored is not None and stored.secrets is not None
        await SERVERS.update(tx, replace(stored, secrets=stored.secrets[::-1]))
    serving.upstreams.changed(Changed(SERVERS_CHANGED, operator.tenant))

    await until(lambda: serving.upstreams.fault(operator.tenant, "alpha"))
    await until(lambda: "beta__echo" in serving.tools(operator))
    assert len(await serving.servers.list(operator)) == 2
    with pytest.raises(InternalError):
        await serving.servers.approve(operator, "alpha")

    await serving.servers.put(operator, "alpha", SubmittedServer({"url": url, "headers": {"X-Key": "k"}}))
    await serving.servers.approve(operator, "alpha")
    await until(lambda: "alpha__echo" in serving.tools(operator))
