"""The first key, on databases that nobody has used yet."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from app.core.access import DEFAULT_TENANT, SYSTEM_TENANT, ApiKey, Caller, Role
from app.core.errors import ConflictError, ForbiddenError, InvalidArgumentsError, UnauthenticatedError
from app.services.access.access import HOST
from app.services.access.bootstrap import bootstrap
from app.store.database import Database
from tests.factories import PATIENT
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(own_database_url: str) -> AsyncIterator[Replica]:
    database = Database(own_database_url, patience=PATIENT)
    async with replica_on(database) as running:
        yield running
    await database.close()


async def restarted(replica: Replica, stack: AsyncExitStack) -> Replica:
    """Return a process that starts later on the same database."""
    return await stack.enter_async_context(replica_on(replica.database))


async def test_the_first_start_in_development_makes_one_key_with_all_roles(replica: Replica) -> None:
    made = await bootstrap(replica.access, None, "development")
    assert made is not None
    caller = await replica.access.authenticator.authenticate(str(made), "127.0.0.1")
    assert caller == Caller(DEFAULT_TENANT, made.id, frozenset(Role))
    grants = await replica.events(DEFAULT_TENANT, action="key.create")
    assert [(e.actor, e.details["override_unions"]) for e in grants] == [("bootstrap", True)]
    assert [e.details["tenant"] for e in await replica.events(SYSTEM_TENANT, action="key.create")] == [
        DEFAULT_TENANT
    ]


async def test_a_second_start_makes_nothing(replica: Replica) -> None:
    made = await bootstrap(replica.access, None, "development")
    assert made is not None
    before = len(await replica.events(DEFAULT_TENANT))
    async with AsyncExitStack() as stack:
        later = await restarted(replica, stack)
        assert await bootstrap(later.access, None, "development") is None
        assert (await later.access.authenticator.authenticate(str(made), None)).key_id == made.id
    assert len(await replica.events(DEFAULT_TENANT)) == before + 1  # the look at the record


async def test_processes_that_start_together_make_one_key(replica: Replica, own_database_url: str) -> None:
    others = [
        Database(own_database_url, patience=PATIENT) for _ in range(1 if replica.database.embedded else 4)
    ]
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(replica_on(database)) for database in others]
        made = await asyncio.gather(*(bootstrap(one.access, None, "development") for one in replicas))
    for database in others:
        await database.close()
    assert len([key for key in made if key is not None]) == 1


async def test_a_given_key_is_stored_once_and_nothing_about_it_is_undone(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    given = ApiKey.generate()
    with caplog.at_level(logging.WARNING, "sluice.access"):
        for _ in range(2):
            assert await bootstrap(replica.access, str(given), "development") is None
    assert given.id not in caplog.text, "it holds: nothing has to be told"
    assert (await replica.access.authenticator.authenticate(str(given), None)).roles == frozenset(Role)
    assert len(await replica.access.list_keys(HOST, DEFAULT_TENANT)) == 1
    fresh = await replica.access.rotate_key(HOST, given.id, overlap_s=0)
    with caplog.at_level(logging.WARNING, "sluice.access"):
        assert await bootstrap(replica.access, str(given), "development") is None
    assert given.id in caplog.text
    assert given.secret not in caplog.text
    with pytest.raises(UnauthenticatedError):
        await replica.access.authenticator.authenticate(str(given), None)
    await replica.access.revoke_key(HOST, given.id)
    await bootstrap(replica.access, str(fresh.key), "development")
    with pytest.raises(UnauthenticatedError):
        await replica.access.authenticator.authenticate(str(fresh.key), None)


async def test_a_given_key_replaces_no_foreign_key_of_the_same_id(replica: Replica) -> None:
    await bootstrap(replica.access, None, "development")
    other = await replica.key(DEFAULT_TENANT)
    same_id = ApiKey(other.key.id, ApiKey.generate().secret)
    with pytest.raises(ConflictError) as refusal:
        await bootstrap(replica.access, str(same_id), "development")
    assert same_id.secret not in refusal.value.message
    with pytest.raises(UnauthenticatedError):
        await replica.access.authenticator.authenticate(str(same_id), None)


@pytest.mark.parametrize(
    "malformed", ["", "changeme", "slc_0000000_x", " slc_00000000_" + ("Vh3kQ-z81x_" * 4)[1:]]
)
async def test_a_malformed_given_key_stops_the_start_without_being_repeated(
    replica: Replica, malformed: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as refusal:
        await bootstrap(replica.access, malformed, "development")
    assert "SLUICE_AUTH__BOOTSTRAP_KEY" in refusal.value.message
    assert not malformed or malformed not in refusal.value.message


async def test_in_development_the_first_key_acts_for_all_tenants_and_later_keys_do_not(
    replica: Replica,
) -> None:
    made = await bootstrap(replica.access, None, "development")
    assert made is not None
    first = await replica.access.authenticator.authenticate(str(made), None)
    await replica.tenants.create(first, "acme")
    theirs = await replica.access.create_key(first, [Role.INVOKER], tenant="acme")
    assert (await replica.access.authenticator.authenticate(str(theirs.key), None)).tenant == "acme"
    roles = frozenset(Role)
    later = await replica.access.create_key(first, roles, override_unions=True)
    caller = await replica.access.authenticator.authenticate(str(later.key), None)
    with pytest.raises(ForbiddenError):
        await replica.tenants.create(caller, "globex")


async def test_production_makes_no_key_up(replica: Replica) -> None:
    assert await bootstrap(replica.access, None, "production") is None
    assert await replica.access.list_keys(HOST, DEFAULT_TENANT) == []
    assert [tenant.name for tenant in await replica.tenants.list(HOST)] == [DEFAULT_TENANT, SYSTEM_TENANT]


async def test_in_production_a_given_key_mints_keys_of_its_tenant_and_does_nothing_else(
    replica: Replica,
) -> None:
    given = ApiKey.generate()
    await bootstrap(replica.access, str(given), "production")
    caller = await replica.access.authenticator.authenticate(str(given), None)
    assert (caller.tenant, caller.roles) == (DEFAULT_TENANT, frozenset({Role.KEY_CUSTODIAN}))
    made = await replica.access.create_key(caller, [Role.INVOKER, Role.RESTORER])
    assert (await replica.access.authenticator.authenticate(str(made.key), None)).tenant == DEFAULT_TENANT
    with pytest.raises(ForbiddenError):
        await replica.tenants.create(caller, "acme")


async def test_production_refuses_the_first_key_of_a_development_start(replica: Replica) -> None:
    made = await bootstrap(replica.access, None, "development")
    assert made is not None
    async with AsyncExitStack() as stack:
        later = await restarted(replica, stack)
        with pytest.raises(ConflictError) as refusal:
            await bootstrap(later.access, None, "production")
        assert f"sluice keys revoke {made.id}" in refusal.value.message
        await later.access.revoke_key(HOST, made.id)
        assert await bootstrap(later.access, None, "production") is None
        assert not later.access.authority.reaches_all(Caller(DEFAULT_TENANT, made.id, frozenset(Role)))
