"""Groups on both databases: stored, nested, imported, kept from contradicting each other, and remembered."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.catalog.groups import GroupDefinition
from app.core.catalog.primitives import GROUPS_CHANGED, Catalog, Member, Primitive, PrimitiveKind
from app.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.events import Changed
from app.services.access.access import HOST
from app.services.catalog.group_changes import replace_groups
from app.services.catalog.group_trees import GroupTrees
from app.services.catalog.groups import GroupService
from app.store.changes import Changes
from app.store.database import Database
from app.store.servers import SERVERS, StoredServer
from tests.integration.access_setup import Replica, replica_on

EMAIL = {"name": "email", "title": "E-mail", "members": [{"kind": "tool", "name": "mail__*"}]}
WORK = {"name": "work", "members": [{"kind": "group", "name": "email"}]}
MOMENT = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
async def operator(replica: Replica, tenant: str) -> Caller:
    await replica.tenants.create(HOST, tenant)
    return await replica.caller(tenant, Role.OPERATOR)


@pytest.fixture
def groups(replica: Replica) -> GroupService:
    trees = GroupTrees(replica.database)
    return GroupService(replica.database, replica.audit, trees, ["pii_redaction"], replica.clock.now)


def defined(*values: dict[str, Any]) -> list[GroupDefinition]:
    return [GroupDefinition.model_validate(value) for value in values]


async def put(groups: GroupService, caller: Caller, *values: dict[str, Any]) -> None:
    for one in defined(*values):
        await groups.put(caller, one)


async def names(groups: GroupService, caller: Caller) -> dict[str, tuple[str, ...]]:
    return {one.definition.name: one.parents for one in await groups.list(caller)}


async def add_server_named(database: Database, tenant: str, name: str) -> None:
    async with database.transaction(tenant) as tx:
        assert await SERVERS.add(
            tx,
            StoredServer(
                tenant=tenant,
                name=name,
                document={},
                secrets=None,
                origin="api",
                state="approved",
                pinned=None,
                created=MOMENT,
                created_by="cli",
                updated=MOMENT,
            ),
        )


async def test_a_group_is_stored_whole_and_read_as_it_was_written(
    groups: GroupService, operator: Caller
) -> None:
    value = {
        **EMAIL,
        "description": "Mail.",
        "annotations": {"title": "Mail", "priority": 0.5},
        "icons": [{"src": "data:image/png;base64,AA=="}],
        "_meta": {"dev.example/n": 10**30},
    }

    saved = await groups.put(operator, defined(value)[0])

    assert saved.created
    assert (await groups.get(operator, "email")).definition.declared() == defined(value)[0].declared()
    again = await groups.put(operator, defined({"name": "email"})[0])
    assert not again.created
    assert (await groups.get(operator, "email")).definition.declared() == {"name": "email", "members": []}
    assert again.group.created == saved.group.created


async def test_the_tree_is_remembered_until_a_change_is_announced(
    groups: GroupService, operator: Caller, replica: Replica
) -> None:
    await put(groups, operator, EMAIL)
    assert (await groups.tree(operator.tenant)).direct(PrimitiveKind.TOOL, "mail__send") == ("email",)
    replica.statements.clear()
    first = await groups.tree(operator.tenant)
    assert replica.statements == []
    groups.trees.changed(Changed(GROUPS_CHANGED, "another"))
    assert await groups.tree(operator.tenant) is first
    for announced in (Changed(GROUPS_CHANGED, operator.tenant), Changed("all")):
        groups.trees.changed(announced)
        assert await groups.tree(operator.tenant) is not first
        first = await groups.tree(operator.tenant)


async def test_a_change_is_announced_and_recorded_with_it(
    groups: GroupService, operator: Caller, database: Database
) -> None:
    async with replica_on(database) as other:
        heard: asyncio.Queue[Changed] = asyncio.Queue()
        changes = Changes(database)
        changes.subscribe(heard.put_nowait)
        async with changes.running():
            await put(groups, operator, EMAIL)
            while (await asyncio.wait_for(heard.get(), 20)) != Changed(GROUPS_CHANGED, operator.tenant):
                pass
        (event,) = await other.events(operator.tenant, action="groups.put")
    assert dict(event.details) == {"name": "email", "members": 1}


async def test_groups_nest_in_several_parents(groups: GroupService, operator: Caller) -> None:
    await put(groups, operator, EMAIL, WORK, {**WORK, "name": "home"})

    assert await names(groups, operator) == {"email": ("home", "work"), "home": (), "work": ()}


@pytest.mark.parametrize(
    ("stored", "added", "cycle"),
    [
        ([], {"name": "a", "members": [{"kind": "group", "name": "a"}]}, ["a", "a"]),
        (
            [EMAIL, WORK],
            {"name": "email", "members": [{"kind": "group", "name": "work"}]},
            ["email", "work", "email"],
        ),
    ],
)
async def test_a_cycle_is_refused_by_its_name_and_nothing_is_stored(
    groups: GroupService,
    operator: Caller,
    stored: list[dict[str, Any]],
    added: dict[str, Any],
    cycle: list[str],
    replica: Replica,
) -> None:
    await put(groups, operator, *stored)
    before = await groups.list(operator)

    with pytest.raises(ConflictError) as refusal:
        await groups.put(operator, defined(added)[0])

    assert refusal.value.details == {"pointer": "/members", "cycle": cycle}
    assert await groups.list(operator) == before
    (event,) = await replica.events(operator.tenant, outcome="refused")
    assert (event.action, event.error_code) == ("groups.put", "conflict")


async def test_two_changes_that_would_make_a_cycle_together_do_not(
    groups: GroupService, operator: Caller
) -> None:
    await put(groups, operator, {"name": "a"}, {"name": "b"})
    a_in_b, b_in_a = (
        [Member(kind=PrimitiveKind.GROUP, name="a")],
        [Member(kind=PrimitiveKind.GROUP, name="b")],
    )

    results = await asyncio.gather(
        groups.change_members(operator, "b", a_in_b, []),
        groups.change_members(operator, "a", b_in_a, []),
        return_exceptions=True,
    )

    assert sorted(type(one).__name__ for one in results) == ["ConflictError", "SavedGroup"]


async def test_unknown_groups_and_servers_are_refused_with_the_place(
    groups: GroupService, operator: Caller, database: Database
) -> None:
    unknown_group = {"name": "a", "members": [{"kind": "tool", "name": "x"}, {"kind": "group", "name": "z"}]}
    with pytest.raises(InvalidArgumentsError) as refusal:
        await groups.put(operator, defined(unknown_group)[0])
    assert refusal.value.details["pointer"] == "/members/1/name"

    with_server = {"name": "a", "members": [{"kind": "tool", "name": "x", "server": "mail"}]}
    with pytest.raises(InvalidArgumentsError) as refusal:
        await groups.put(operator, defined(with_server)[0])
    assert refusal.value.details["pointer"] == "/members/0/server"

    await add_server_named(database, operator.tenant, "mail")
    await groups.put(operator, defined(with_server)[0])


async def test_a_member_whose_server_was_removed_does_not_stop_an_export_from_being_read_again(
    groups: GroupService, operator: Caller, database: Database
) -> None:
    await add_server_named(database, operator.tenant, "mail")
    with_server = {"name": "a", "members": [{"kind": "tool", "name": "x", "server": "mail"}]}
    await put(groups, operator, with_server)
    async with database.transaction(operator.tenant) as tx:
        await SERVERS.remove(tx, operator.tenant, "mail")

    plan = await groups.import_(operator, defined(*(await groups.export(operator))["groups"]))

    assert plan.unchanged == ["a"]


async def test_members_are_added_and_removed_by_themselves(groups: GroupService, operator: Caller) -> None:
    await put(groups, operator, EMAIL)
    added, removed = (
        Member(kind=PrimitiveKind.PROMPT, name="mail__reply"),
        Member(kind=PrimitiveKind.TOOL, name="mail__*"),
    )

    await groups.change_members(operator, "email", [added], [removed])
    again = await groups.change_members(operator, "email", [added], [removed])

    assert again.group.definition.members == [added]
    assert again.warnings == ["The tool mail__* was not a member."]
    with pytest.raises(InvalidArgumentsError) as refusal:
        await groups.change_members(
            operator, "email", [added, Member(kind=PrimitiveKind.GROUP, name="z")], []
        )
    assert refusal.value.details["pointer"] == "/add/1/name"
    with pytest.raises(NotFoundError):
        await groups.change_members(operator, "none", [added], [])


async def test_deleting_a_group_takes_it_out_of_the_groups_above(
    groups: GroupService, operator: Caller
) -> None:
    await put(groups, operator, EMAIL, WORK)

    await groups.delete(operator, "email")

    assert (await groups.get(operator, "work")).definition.members == []
    assert await names(groups, operator) == {"work": ()}
    with pytest.raises(NotFoundError):
        await groups.delete(operator, "email")


async def test_an_export_is_imported_without_any_change(groups: GroupService, operator: Caller) -> None:
    await put(groups, operator, EMAIL, WORK)
    document = await groups.export(operator)
    assert [one["name"] for one in document["groups"]] == ["email", "work"]

    plan = await groups.import_(operator, defined(*document["groups"]))

    assert (plan.created, plan.updated, plan.removed, plan.unchanged) == ([], [], [], ["email", "work"])
    assert await groups.export(operator) == document


async def test_a_dry_run_says_what_would_change_and_changes_nothing(
    groups: GroupService, operator: Caller, replica: Replica
) -> None:
    await put(groups, operator, EMAIL, {"name": "old"})
    wanted = defined({**EMAIL, "title": "Mail"}, WORK)
    before = await groups.list(operator)

    plan = await groups.import_(operator, wanted, dry_run=True, prune=True)

    assert (plan.created, plan.updated, plan.removed) == (["work"], ["email"], ["old"])
    assert await groups.list(operator) == before
    assert await replica.events(operator.tenant, action="groups.import") == []
    assert await groups.import_(operator, wanted, prune=True) == plan
    assert set(await names(groups, operator)) == {"email", "work"}
    (event,) = await replica.events(operator.tenant, action="groups.import")
    assert dict(event.details) == {"created": 1, "updated": 1, "removed": 1, "unchanged": 0}


async def test_an_import_is_all_or_nothing(groups: GroupService, operator: Caller) -> None:
    wanted = defined(EMAIL, {"name": "bad", "members": [{"kind": "group", "name": "none"}]})

    with pytest.raises(InvalidArgumentsError) as refusal:
        await groups.import_(operator, wanted)

    assert refusal.value.details["pointer"] == "/groups/1/members/0/name"
    assert await groups.list(operator) == []
    with pytest.raises(InvalidArgumentsError) as twice:
        await groups.import_(operator, defined(EMAIL, EMAIL))
    assert twice.value.details["pointer"] == "/groups/1/name"


async def test_the_file_keeps_its_own_groups_and_leaves_the_others(
    groups: GroupService, operator: Caller, database: Database
) -> None:
    await put(groups, operator, {"name": "mine"}, EMAIL)

    async def applied(*values: dict[str, Any]) -> Any:
        async with database.transaction(operator.tenant) as tx:
            return await replace_groups(tx, operator.tenant, defined(*values), "file", MOMENT)

    first = await applied(EMAIL, WORK)
    assert (first.created, first.unchanged, first.removed) == (["work"], ["email"], [])
    second = await applied(WORK | {"members": []})
    assert (second.updated, second.removed) == (["work"], ["email"])
    assert {one.definition.name: one.origin for one in await groups.list(operator)} == {
        "mine": "api",
        "work": "file",
    }
    assert (await applied(WORK | {"members": []})).changes is False


async def test_members_that_are_not_there_now_are_a_warning(groups: GroupService, operator: Caller) -> None:
    async def catalog(_tenant: str) -> Catalog:
        one = Primitive(PrimitiveKind.TOOL, "mail", "send", "mail__send", {}, "")
        return Catalog({PrimitiveKind.TOOL: {"mail__send": one}})

    async def unavailable(_tenant: str) -> Catalog:
        raise UpstreamUnavailableError("It is away.")

    value = {
        "name": "g",
        "members": [
            {"kind": "tool", "name": "mail__*"},
            {"kind": "prompt", "name": "mail__*"},
            {"kind": "middleware", "name": "pii_*"},
            {"kind": "middleware", "name": "pii_redactoin"},
            {"kind": "task", "name": "*"},
        ],
    }
    assert (await groups.put(operator, defined(value)[0])).warnings == []
    groups.catalog = catalog
    assert (await groups.put(operator, defined(value)[0])).warnings == [
        "Group g: no middleware is called pii_redactoin now; its server may be down.",
        "Group g: no prompt is called mail__* now; its server may be down.",
    ]
    groups.catalog = unavailable
    assert len((await groups.put(operator, defined(value)[0])).warnings) == 1


async def test_groups_and_their_members_are_bounded(groups: GroupService, operator: Caller) -> None:
    many = [{"kind": "tool", "name": f"t{number}"} for number in range(2000)]
    await groups.import_(operator, defined(*({"name": f"g{n}", "members": many} for n in range(10))))

    with pytest.raises(TooLargeError) as refusal:
        await groups.put(operator, defined({"name": "one", "members": many[:1]})[0])
    assert refusal.value.details["maximum"] == 20_000
    with pytest.raises(TooLargeError) as refusal:
        await groups.import_(operator, defined(*({"name": f"h{n}"} for n in range(991))))
    assert refusal.value.details["limit"] == "groups"


async def test_only_operators_and_only_in_their_tenant(
    groups: GroupService, operator: Caller, replica: Replica
) -> None:
    await put(groups, operator, EMAIL)
    other = f"{operator.tenant}-x"
    await replica.tenants.create(HOST, other)
    foreign = await replica.caller(other, Role.OPERATOR)
    assert await groups.list(foreign) == []
    assert (await groups.tree(other)).groups == {}
    with pytest.raises(NotFoundError):
        await groups.delete(foreign, "email")
    invoker = await replica.caller(operator.tenant, Role.INVOKER)
    one = defined(EMAIL)[0]
    for refused in (
        groups.list(invoker),
        groups.get(invoker, "email"),
        groups.put(invoker, one),
        groups.change_members(invoker, "email", [], []),
        groups.delete(invoker, "email"),
        groups.import_(invoker, [one]),
        groups.export(invoker),
    ):
        with pytest.raises(ForbiddenError):
            await refused
    assert len(await replica.events(operator.tenant, outcome="refused")) == 7
