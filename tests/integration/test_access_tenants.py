"""Tenants are administered by operators of the tenant system, and on the host."""

from collections.abc import AsyncIterator

import pytest

from app.core.access import SYSTEM_TENANT, Role
from app.core.errors import (
    ConflictError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    UnauthenticatedError,
)
from app.services.access.access import HOST
from app.services.access.bootstrap import bootstrap
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        await bootstrap(running.access, None, "development")
        yield running


async def test_an_operator_of_the_tenant_system_makes_tenants(replica: Replica, tenant: str) -> None:
    operator = await replica.caller(SYSTEM_TENANT, Role.OPERATOR)
    made = await replica.tenants.create(operator, tenant)
    assert (made.name, made.created_by, made.disabled) == (tenant, operator.key_id, None)
    assert await replica.tenants.get(operator, tenant) == made
    assert made in await replica.tenants.list(operator)
    assert [event.action for event in await replica.events(tenant)] == ["tenant.create"]
    with pytest.raises(ConflictError):
        await replica.tenants.create(operator, tenant)


async def test_nobody_else_administers_tenants_and_trying_is_on_record(replica: Replica, tenant: str) -> None:
    await replica.tenants.create(HOST, tenant)
    others = [
        await replica.caller(tenant, Role.OPERATOR),
        await replica.caller(SYSTEM_TENANT, Role.KEY_CUSTODIAN),
    ]
    for caller in others:
        for attempt in (
            replica.tenants.create(caller, f"{tenant}-x"),
            replica.tenants.disable(caller, tenant),
            replica.tenants.enable(caller, tenant),
            replica.tenants.list(caller),
            replica.tenants.get(caller, tenant),
        ):
            with pytest.raises(ForbiddenError):
                await attempt
    refusals = [event.action for event in await replica.events(tenant, outcome="refused")]
    assert refusals == [f"tenant.{act}" for act in ("create", "disable", "enable", "list", "get")]


@pytest.mark.parametrize("name", ["", "Acme", "a b", "-a", "x" * 64, "ä"])
async def test_a_name_that_is_no_name_is_refused(replica: Replica, name: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        await replica.tenants.create(HOST, name)


async def test_a_disabled_tenant_is_refused_at_once_and_comes_back(replica: Replica, tenant: str) -> None:
    await replica.tenants.create(HOST, tenant)
    made = await replica.key(tenant)
    await replica.access.authenticator.authenticate(str(made.key), None)
    assert (await replica.tenants.disable(HOST, tenant)).disabled == replica.clock.now()
    await replica.tenants.disable(HOST, tenant)
    with pytest.raises(UnauthenticatedError):
        await replica.access.authenticator.authenticate(str(made.key), None)
    assert (await replica.tenants.enable(HOST, tenant)).disabled is None
    assert (await replica.access.authenticator.authenticate(str(made.key), None)).tenant == tenant
    changes = [event.action for event in await replica.events(tenant) if event.action.startswith("tenant")]
    assert changes == ["tenant.create", "tenant.disable", "tenant.enable"]


async def test_the_tenant_system_cannot_be_disabled_nor_an_unknown_one(replica: Replica, tenant: str) -> None:
    with pytest.raises(ConflictError):
        await replica.tenants.disable(HOST, SYSTEM_TENANT)
    for attempt in (replica.tenants.disable(HOST, tenant), replica.tenants.get(HOST, tenant)):
        with pytest.raises(NotFoundError):
            await attempt


async def test_tenants_are_listed_page_by_page(replica: Replica, tenant: str) -> None:
    names = [f"{tenant}-{letter}" for letter in "abc"]
    for name in names:
        await replica.tenants.create(HOST, name)
    first = await replica.tenants.list(HOST, after=tenant, limit=2)
    second = await replica.tenants.list(HOST, after=first[-1].name, limit=1)
    assert [one.name for one in (*first, *second)] == names
