"""Concerns on both databases: declared, mapped, narrowed, kept by a file, preferred by callers, heard everywhere."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.catalog.concern_configuration import Layer
from app.core.catalog.concerns import ConcernDefinition, ConcernMapping
from app.core.catalog.primitives import CONCERNS_CHANGED, PrimitiveKind
from app.core.contracts.policy import ConcernPolicy, Policy
from app.core.errors import ConflictError, ForbiddenError, InvalidArgumentsError, NotFoundError, TooLargeError
from app.core.events import Changed
from app.services.access.access import HOST
from app.services.catalog.concern_changes import store_concerns
from app.services.catalog.concerns import ConcernService
from app.store.changes import Changes
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on

SECURITY = ConcernDefinition(
    name="security", description="Security level", values=("high", "medium", "low"), default="medium"
)
COST = ConcernDefinition(name="cost", description="Cost", values=("minimal", "moderate"), default="minimal")


def mapping(name: str, **concerns: Any) -> ConcernMapping:
    return ConcernMapping(kind=PrimitiveKind.TOOL, name=name, concerns=concerns)


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
def concerns(replica: Replica) -> ConcernService:
    return ConcernService(replica.database, replica.audit, replica.policies, replica.clock.now)


@pytest.fixture
async def operator(replica: Replica, tenant: str) -> Caller:
    await replica.tenants.create(HOST, tenant)
    return await replica.caller(tenant, Role.OPERATOR)


async def mapped(concerns: ConcernService, tenant: str, name: str) -> Mapping[str, Any]:
    return (await concerns.table(tenant)).mapping_of(PrimitiveKind.TOOL, name)


async def test_what_is_declared_and_mapped_holds_at_once_and_is_on_record(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    assert (await concerns.table(operator.tenant)).wire() == []
    declared, new = await concerns.put(operator, SECURITY)
    assert (declared.definition, declared.origin, new) == (SECURITY, "api", True)
    assert (await concerns.put(operator, SECURITY))[1] is False
    stored, new = await concerns.put_mapping(operator, mapping("t", security=["high", "low"]))
    assert (stored.mapping.name, new) == ("t", True)
    assert (await concerns.table(operator.tenant)).wire() == [SECURITY.wire()]
    assert await mapped(concerns, operator.tenant, "t") == {"security": ["high", "low"]}
    assert [one.definition for one in await concerns.list(operator)] == [SECURITY]
    assert [one.mapping for one in await concerns.mappings(operator)] == [stored.mapping]
    assert (await concerns.get_mapping(operator, PrimitiveKind.TOOL, "t")).mapping == stored.mapping
    events = await replica.events(operator.tenant)
    acts = [(event.action, event.outcome) for event in events if event.action.startswith("concerns.")]
    assert acts == [("concerns.put", "ok"), ("concerns.put", "ok"), ("concerns.mappings.put", "ok")]


async def test_what_is_removed_is_gone(concerns: ConcernService, operator: Caller) -> None:
    await concerns.put(operator, SECURITY)
    await concerns.put_mapping(operator, mapping("t", security="high"))
    await concerns.delete_mapping(operator, PrimitiveKind.TOOL, "t")
    await concerns.delete(operator, "security")
    assert await concerns.list(operator) == await concerns.mappings(operator) == []
    for gone in (
        concerns.get(operator, "security"),
        concerns.delete(operator, "security"),
        concerns.get_mapping(operator, PrimitiveKind.TOOL, "t"),
        concerns.delete_mapping(operator, PrimitiveKind.TOOL, "t"),
    ):
        with pytest.raises(NotFoundError):
            await gone


async def test_only_operators_change_and_read_concerns(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    invoker = await replica.caller(operator.tenant, Role.INVOKER)
    for refused in (
        concerns.put(invoker, SECURITY),
        concerns.delete(invoker, "security"),
        concerns.list(invoker),
        concerns.get(invoker, "security"),
        concerns.mappings(invoker),
        concerns.put_mapping(invoker, mapping("t")),
        concerns.delete_mapping(invoker, PrimitiveKind.TOOL, "t"),
    ):
        with pytest.raises(ForbiddenError):
            await refused
    events = await replica.events(operator.tenant, outcome="refused")
    assert [event.error_code for event in events] == ["forbidden"] * 7


async def test_a_mapping_names_declared_concerns_and_values(
    concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    for wrong, pointer in (
        (mapping("t", cost="minimal"), "/concerns/cost"),
        (mapping("t", security="extreme"), "/concerns/security"),
        (mapping("t", security=["high", "extreme"]), "/concerns/security/1"),
        (mapping("t", security={"min": "high", "max": "x"}), "/concerns/security/max"),
    ):
        with pytest.raises(InvalidArgumentsError) as refusal:
            await concerns.put_mapping(operator, wrong)
        assert refusal.value.details == {"pointer": pointer}
    assert await concerns.mappings(operator) == []


async def test_what_mappings_use_is_taken_away_only_by_force(
    concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    await concerns.put(operator, COST)
    await concerns.put_mapping(operator, mapping("a", security=["high", "low"], cost="minimal"))
    await concerns.put_mapping(operator, mapping("b", security="low"))
    narrowed = SECURITY.model_copy(update={"values": ("high", "medium")})
    with pytest.raises(ConflictError) as refusal:
        await concerns.put(operator, narrowed)
    assert refusal.value.details == {"mappings": 2, "named": ["tool a", "tool b"]}
    with pytest.raises(ConflictError):
        await concerns.delete(operator, "cost")
    assert (await concerns.get(operator, "security")).definition == SECURITY
    await concerns.put(operator, narrowed, force=True)
    await concerns.delete(operator, "cost", force=True)
    assert await mapped(concerns, operator.tenant, "a") == {"security": ["high"]}
    assert await mapped(concerns, operator.tenant, "b") == {}


async def test_of_a_mapping_and_a_removal_that_meet_one_is_refused(
    concerns: ConcernService, operator: Caller
) -> None:
    for _ in range(5):
        await concerns.put(operator, SECURITY)
        results = await asyncio.gather(
            concerns.put_mapping(operator, mapping("t", security="high")),
            concerns.delete(operator, "security"),
            return_exceptions=True,
        )
        assert sum(isinstance(one, ConflictError | InvalidArgumentsError) for one in results) == 1
        if not isinstance(results[0], Exception):
            await concerns.delete_mapping(operator, PrimitiveKind.TOOL, "t")


async def test_tenants_do_not_see_each_other(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    other = f"{operator.tenant}-b"
    await replica.tenants.create(HOST, other)
    foreign = await replica.caller(other, Role.OPERATOR)
    assert await concerns.list(foreign) == []
    assert (await concerns.table(other)).wire() == []
    with pytest.raises(NotFoundError):
        await concerns.get(foreign, "security")
    with pytest.raises(NotFoundError):
        await concerns.preferences(foreign, operator.key_id)


async def test_a_tenant_has_a_bounded_number_of_concerns(concerns: ConcernService, operator: Caller) -> None:
    many = [COST.model_copy(update={"name": f"c{number}"}) for number in range(65)]
    async with concerns.database.transaction(operator.tenant) as tx:
        with pytest.raises(TooLargeError):
            await store_concerns(tx, operator.tenant, many, [], "file", concerns.now())


async def test_another_process_hears_of_a_change(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    heard: list[Changed] = []
    other = ConcernService(replica.database, replica.audit, replica.policies, replica.clock.now)
    changes = Changes(replica.database)
    arrived = asyncio.Event()

    def hear(changed: Changed) -> None:
        other.changed(changed)
        heard.append(changed)
        arrived.set()

    changes.subscribe(hear)
    async with changes.running():
        assert (await other.table(operator.tenant)).wire() == []
        await concerns.put(operator, SECURITY)
        await asyncio.wait_for(arrived.wait(), 10)
    assert Changed(CONCERNS_CHANGED, operator.tenant) in heard
    assert (await other.table(operator.tenant)).wire() == [SECURITY.wire()]


async def test_what_a_file_declares_replaces_what_it_declared_before_and_nothing_else(
    concerns: ConcernService, operator: Caller
) -> None:
    async def store(definitions: list[Any], mappings: list[Any], **options: Any) -> Any:
        tenant, write = operator.tenant, not options.get("dry_run", False)
        async with concerns.database.transaction(tenant, write=write) as tx:
            return await store_concerns(tx, tenant, definitions, mappings, "file", concerns.now(), **options)

    await concerns.put(operator, SECURITY)
    await concerns.put_mapping(operator, mapping("mine", security="high"))
    planned = await store([COST], [mapping("filed", cost="minimal")], dry_run=True)
    assert [one.definition.name for one in await concerns.list(operator)] == ["security"]
    done = await store([COST], [mapping("filed", cost="minimal")])
    assert planned == done
    assert (done.concerns.created, done.mappings.created) == (["cost"], ["tool filed"])
    again = await store([COST], [mapping("filed", cost="minimal")])
    assert not (again.concerns.changes or again.mappings.changes)
    assert again.concerns.unchanged == ["cost"]
    last = await store([], [])
    assert (last.concerns.removed, last.mappings.removed) == (["cost"], ["tool filed"])
    assert [one.definition.name for one in await concerns.list(operator)] == ["security"]
    assert [one.mapping.name for one in await concerns.mappings(operator)] == ["mine"]


async def test_a_file_that_contradicts_itself_or_others_is_refused_whole(
    concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    await concerns.put_mapping(operator, mapping("mine", security="low"))
    narrowed = SECURITY.model_copy(update={"values": ("high", "medium")})
    for definitions, mappings, error, details in (
        ([COST, COST], [], InvalidArgumentsError, {"pointer": "/concerns/1/name"}),
        ([], [mapping("a"), mapping("a")], InvalidArgumentsError, {"pointer": "/concernMappings/1/name"}),
        (
            [COST],
            [mapping("a"), mapping("b", cost="x")],
            *(InvalidArgumentsError, {"pointer": "/concernMappings/1/concerns/cost"}),
        ),
        ([narrowed], [], ConflictError, {"mappings": 1, "named": ["tool mine"]}),
    ):
        async with concerns.database.transaction(operator.tenant) as tx:
            with pytest.raises(error) as refusal:
                await store_concerns(tx, operator.tenant, definitions, mappings, "file", concerns.now())
        assert refusal.value.details == details
    assert [one.definition for one in await concerns.list(operator)] == [SECURITY]


async def test_callers_set_their_own_preferences_and_operators_everybodys(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    invoker = await replica.caller(operator.tenant, Role.INVOKER)
    auditor = await replica.caller(operator.tenant, Role.AUDITOR)
    assert (await concerns.preferences(invoker, invoker.key_id)).concerns == {}
    saved = await concerns.put_preferences(invoker, invoker.key_id, {"security": "high", "colour": "red"})
    assert saved.concerns == {"security": "high"}
    assert [one["concern"] for one in saved.warnings] == ["colour"]
    assert (await concerns.preferences(operator, invoker.key_id)).concerns == {"security": "high"}
    for refused in (
        concerns.preferences(auditor, invoker.key_id),
        concerns.put_preferences(auditor, invoker.key_id, {}),
    ):
        with pytest.raises(ForbiddenError):
            await refused
    with pytest.raises(NotFoundError):
        await concerns.put_preferences(operator, "ffffffff", {})
    await concerns.put_preferences(operator, invoker.key_id, {})
    assert (await concerns.preferences(invoker, invoker.key_id)).concerns == {}
    done = await replica.events(operator.tenant, action="concerns.preferences.put")
    assert [event.outcome for event in done] == ["ok", "refused", "refused", "ok"]


async def test_preferences_are_the_weakest_source_and_hold_at_once(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    invoker = await replica.caller(operator.tenant, Role.INVOKER)
    assert (await concerns.effective(invoker, {})).configuration == {}
    await concerns.put_preferences(invoker, invoker.key_id, {"security": "high"})
    assert (await concerns.effective(invoker, {})).configuration == {"security": "high"}
    assert (await concerns.effective(operator, {})).configuration == {}
    session = {"initialize": {"security": "low"}}
    assert (await concerns.effective(invoker, session)).configuration == {"security": "low"}
    asked = Layer({"security": "medium"}, "/_meta")
    assert (await concerns.effective(invoker, session, asked)).configuration == {"security": "medium"}
    assert (await concerns.effective(invoker, {"update": {}, "replaced": True})).configuration == {}


async def test_a_default_filters_only_where_the_policy_says_so(
    replica: Replica, concerns: ConcernService, operator: Caller
) -> None:
    await concerns.put(operator, SECURITY)
    assert (await concerns.effective(operator, {})).configuration == {}
    await replica.policies.put(operator, None, Policy(concerns=ConcernPolicy(apply_defaults=True)))
    assert (await concerns.effective(operator, {})).configuration == {"security": "medium"}
