"""PostgreSQL: what one process changes holds in the others, and the locks of the database itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import text

from app.core.access import Role
from app.core.contracts.policy import Policy
from app.core.errors import StoreUnavailableError, UnauthenticatedError
from app.services.access.access import HOST
from app.store.access.access import find_key, list_keys
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on

PATIENCE_S = 5.0


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def process(
    stack: AsyncExitStack, url: str, *, direct_url: str | None = None, **options: bool
) -> Replica:
    database = Database(url, direct_url=direct_url)
    stack.push_async_callback(database.close)
    return await stack.enter_async_context(replica_on(database, **options))


async def soon(condition: Callable[[], Awaitable[bool]]) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.01)
    return True


async def is_refused(replica: Replica, bearer: str) -> bool:
    try:
        await replica.access.authenticator.authenticate(bearer, None)
    except UnauthenticatedError:
        return True
    return False


async def test_a_key_revoked_or_closed_elsewhere_is_refused_here_within_a_moment(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str
) -> None:
    here, there = [await process(stack, postgres_database_url) for _ in range(2)]
    await there.tenants.create(HOST, tenant)
    keys = [str((await there.key(tenant)).key) for _ in range(2)]
    assert [await is_refused(here, key) for key in keys] == [False, False]
    await there.access.revoke_key(HOST, keys[0][4:12])
    assert await soon(lambda: is_refused(here, keys[0]))
    assert not await is_refused(here, keys[1])
    await there.tenants.disable(HOST, tenant)
    assert await soon(lambda: is_refused(here, keys[1]))


async def test_a_process_that_hears_nothing_is_behind_for_at_most_five_seconds(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str
) -> None:
    """Negative control of the test above, and the bound that holds without announcements."""
    deaf = await process(stack, postgres_database_url, hears=False)
    there = await process(stack, postgres_database_url)
    await there.tenants.create(HOST, tenant)
    key = str((await there.key(tenant)).key)
    assert not await is_refused(deaf, key)
    await there.access.revoke_key(HOST, key[4:12])
    deaf.clock.advance(4.9)
    assert not await is_refused(deaf, key)
    deaf.clock.advance(0.2)
    assert await is_refused(deaf, key)


async def test_a_policy_changed_elsewhere_holds_here_within_a_moment(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str
) -> None:
    here, there = [await process(stack, postgres_database_url) for _ in range(2)]
    await there.tenants.create(HOST, tenant)
    assert (await here.policies.get(tenant))[0] == 0
    operator = await there.caller(tenant, Role.OPERATOR)
    await there.policies.put(operator, None, Policy(allowed_middlewares=["echo"]))

    async def arrived() -> bool:
        return (await here.policies.get(tenant))[0] == 1

    assert await soon(arrived)
    assert (await here.policies.get(tenant))[1].allowed_middlewares == ["echo"]


@pytest.mark.parametrize("past_a_pooler", [False, True])
async def test_keys_and_policies_are_read_once_and_again_when_they_change(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str, past_a_pooler: bool
) -> None:
    direct = postgres_database_url if past_a_pooler else None
    here = await process(stack, postgres_database_url, direct_url=direct, follows=True)
    reading = await process(stack, postgres_database_url)
    await reading.tenants.create(HOST, tenant)
    key = str((await reading.key(tenant)).key)

    async def reads(replica: Replica) -> bool:
        replica.clock.advance(3600)
        replica.statements.clear()
        await replica.access.authenticator.authenticate(key, None)
        await replica.policies.get(tenant)
        return bool(replica.statements)

    async def reads_nothing() -> bool:
        return not await reads(here)

    assert await reads(here)
    assert await soon(reads_nothing)
    assert [await reads(reading) for _ in range(2)] == [True, True], "negative control: it does not follow"

    operator = await reading.caller(tenant, Role.OPERATOR)
    await reading.policies.put(operator, None, Policy(allowed_middlewares=["echo"]))
    assert await soon(lambda: reads(here))
    assert (await here.policies.get(tenant))[1].allowed_middlewares == ["echo"]
    await reading.access.revoke_key(HOST, key[4:12])
    assert await soon(lambda: is_refused(here, key))


async def test_row_level_security_hides_foreign_keys_even_from_a_query_without_a_tenant(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str
) -> None:
    replica = await process(stack, postgres_database_url)
    other = f"{tenant}-x"
    for name in (tenant, other):
        await replica.tenants.create(HOST, name)
    theirs = await replica.key(other)
    async with replica.database.transaction(tenant, write=False) as tx:
        assert await find_key(tx, theirs.key.id, tenant_name=None) is None
        assert list(await list_keys(tx, other)) == []
    # Negative control: the row is there, and its own tenant sees it.
    async with replica.database.transaction(other, write=False) as tx:
        assert await find_key(tx, theirs.key.id, tenant_name=None) is not None


@pytest.mark.parametrize("statement", ["DELETE FROM audit_event", "UPDATE audit_event SET actor = 'x'"])
async def test_the_application_can_neither_change_nor_delete_a_record(
    stack: AsyncExitStack, postgres_database_url: str, tenant: str, statement: str
) -> None:
    replica = await process(stack, postgres_database_url)
    await replica.tenants.create(HOST, tenant)
    for opened in (replica.database.transaction(tenant), replica.database.system_transaction()):
        with pytest.raises(StoreUnavailableError):
            async with opened as tx:
                await tx.execute(text(statement))
    assert [event.action for event in await replica.events(tenant)] == ["tenant.create"]
