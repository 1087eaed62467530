"""Two processes on one PostgreSQL: what one changes holds in the other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from app.core.access import Role
from app.core.errors import UnauthenticatedError
from app.core.policy import Policy
from app.services.access import HOST
from app.store.database import Database
from tests.integration.access_setup import Replica, replica_on

PATIENCE_S = 5.0


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def process(stack: AsyncExitStack, url: str, *, hears: bool = True) -> Replica:
    database = Database(url)
    stack.push_async_callback(database.close)
    return await stack.enter_async_context(replica_on(database, hears=hears))


async def soon(condition: Callable[[], Awaitable[bool]]) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(0.01)
    return True


async def is_refused(replica: Replica, bearer: str) -> bool:
    try:
        await replica.access.authenticate(bearer, None)
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
