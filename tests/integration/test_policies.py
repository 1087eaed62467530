"""Policies on both databases: versions, conflicts, who may change them, and that they are remembered."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.contracts.policy import Limits, Policy
from app.core.errors import ConflictError, ForbiddenError, InvalidArgumentsError, NotFoundError
from app.services.access.access import HOST
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


@pytest.fixture
async def operator(replica: Replica, tenant: str) -> Caller:
    await replica.tenants.create(HOST, tenant)
    return await replica.caller(tenant, Role.OPERATOR)


async def test_before_an_operator_speaks_the_defaults_hold(replica: Replica, operator: Caller) -> None:
    assert await replica.policies.get(operator.tenant) == (0, Policy())
    current = await replica.policies.current(operator)
    assert (current.version, current.policy, current.created) == (0, Policy(), None)
    assert await replica.policies.history(operator) == []


async def test_a_change_makes_the_next_version_and_holds_at_once(replica: Replica, operator: Caller) -> None:
    await replica.policies.get(operator.tenant)
    first = Policy(allowed_middlewares=["echo"], limits=Limits(burst=5))
    second = Policy(fixed_arguments={"echo": {"mode": "loud"}})
    assert (await replica.policies.put(operator, None, first)).version == 1
    assert await replica.policies.get(operator.tenant) == (1, first)
    assert (await replica.policies.put(operator, operator.tenant, second)).version == 2
    assert await replica.policies.get(operator.tenant) == (2, second)
    history = await replica.policies.history(operator)
    assert [(one.version, one.policy) for one in history] == [(2, second), (1, first)]
    assert {one.created_by for one in history} == {operator.key_id}
    assert [one.version for one in await replica.policies.history(operator, before=2)] == [1]
    events = await replica.events(operator.tenant, action="policy.put")
    assert [(event.policy_version, event.details["changed"]) for event in events] == [
        (1, "allowed_middlewares,limits"),
        (2, "allowed_middlewares,fixed_arguments,limits"),
    ]


async def test_a_change_based_on_an_overtaken_version_is_refused(replica: Replica, operator: Caller) -> None:
    await replica.policies.put(operator, None, Policy(), expected_version=0)
    with pytest.raises(ConflictError) as refusal:
        await replica.policies.put(operator, None, Policy(), expected_version=0)
    assert refusal.value.details["version"] == 1
    assert (await replica.policies.put(operator, None, Policy(), expected_version=1)).version == 2


async def test_of_changes_that_meet_exactly_one_wins(replica: Replica, operator: Caller) -> None:
    attempts = [replica.policies.put(operator, None, Policy(), expected_version=0) for _ in range(5)]
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["ConflictError"] * 4 + ["PolicyVersion"]
    assert (await replica.policies.get(operator.tenant))[0] == 1


async def test_a_policy_is_read_from_memory(replica: Replica, tenant: str) -> None:
    await replica.policies.get(tenant)
    replica.statements.clear()
    for _ in range(50):
        await replica.policies.get(tenant)
    assert replica.statements == []
    replica.clock.advance(6)
    await replica.policies.get(tenant)
    assert replica.statements


async def test_operators_of_the_tenant_only_and_of_the_tenant_system(
    replica: Replica, operator: Caller, tenant: str
) -> None:
    other = f"{tenant}-x"
    await replica.tenants.create(HOST, other)
    for attempt in (
        replica.policies.put(operator, other, Policy()),
        replica.policies.current(operator, other),
        replica.policies.history(operator, other),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    invoker = Caller(tenant, "00000001", frozenset({Role.INVOKER, Role.AUDITOR, Role.KEY_CUSTODIAN}))
    for refused in (replica.policies.put(invoker, None, Policy()), replica.policies.current(invoker)):
        with pytest.raises(ForbiddenError):
            await refused
    system = Caller(SYSTEM_TENANT, "00000002", frozenset({Role.OPERATOR}))
    assert (await replica.policies.put(system, other, Policy())).version == 1
    (event,) = await replica.events(other, action="policy.put")
    assert (event.actor, event.details["actor_tenant"]) == (system.key_id, SYSTEM_TENANT)
    unknown = f"{tenant}-none"
    for attempt in (
        replica.policies.put(system, unknown, Policy()),
        replica.policies.current(system, unknown),
        replica.policies.history(system, unknown),
    ):
        with pytest.raises(NotFoundError):
            await attempt


@pytest.mark.parametrize(
    ("wrong", "pointer"),
    [
        ({"allowed_middlewares": ["echo", "ehco"]}, "/allowed_middlewares/1"),
        ({"default_arguments": {"ehco": {}}}, "/default_arguments/ehco"),
        ({"default_arguments": {"echo": {"mdoe": 1}}}, "/default_arguments/echo/mdoe"),
        ({"fixed_arguments": {"a/b~c": {"mode": 1}}}, "/fixed_arguments/a~1b~0c"),
    ],
)
async def test_a_rule_about_something_that_does_not_exist_is_refused(
    replica: Replica, operator: Caller, wrong: Mapping[str, Any], pointer: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as refusal:
        await replica.policies.put(operator, None, Policy(**wrong))
    assert refusal.value.details["pointer"] == pointer
    assert (await replica.policies.get(operator.tenant))[0] == 0
    (event,) = await replica.events(operator.tenant, outcome="refused")
    assert (event.action, event.error_code) == ("policy.put", "invalid_arguments")
