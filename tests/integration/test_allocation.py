"""Sixteen writers race for handles: no handle twice, no value with two handles; the control must fail."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from app.core.content.handles import Handle
from app.store.database import Database
from app.store.vault import allocation
from tests.factories import PATIENT, Vault, as_owner, caller_of, open_vault
from tests.integration.races import faults, race

WRITERS = 16
SHORT_S = 3.0
LONG_S = 30 * 60.0


async def replicas(stack: AsyncExitStack, url: str, count: int) -> list[Vault]:
    """Open ``count`` services on one database, as that many processes would."""
    opened = [await stack.enter_async_context(Database(url, patience=PATIENT)) for _ in range(count)]
    return [await stack.enter_async_context(open_vault(database)) for database in opened]


@pytest.fixture
async def vaults(database_url: str) -> AsyncIterator[list[Vault]]:
    """Return the services of one installation: one on SQLite, two replicas on PostgreSQL."""
    async with AsyncExitStack() as stack:
        yield await replicas(stack, database_url, 1 if database_url.startswith("sqlite") else 2)


async def test_sixteen_writers_never_share_or_split_a_handle(vaults: list[Vault], tenant: str) -> None:
    caller = caller_of(tenant)
    told = await race(vaults, caller, writers=WRITERS, seconds=SHORT_S)
    assert told.writes > 100
    assert told.refused == 0
    assert await faults(vaults[0].database, vaults[0], caller, told) == {}


@pytest.mark.soak
@pytest.mark.timeout(2 * LONG_S)
async def test_sixteen_writers_never_share_or_split_a_handle_for_long(
    vaults: list[Vault], tenant: str
) -> None:
    caller = caller_of(tenant)
    told = await race(vaults, caller, writers=WRITERS, seconds=LONG_S, scopes=40, values=20_000)
    assert await faults(vaults[0].database, vaults[0], caller, told) == {}


async def test_without_locks_and_constraints_the_same_race_is_lost(
    own_postgres_url: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = caller_of(tenant)
    monkeypatch.setattr(allocation, "lock_scopes", allocation.find_scopes)
    async with AsyncExitStack() as stack:
        first, second = await replicas(stack, own_postgres_url, 2)
        for name in ("pk_entry", "uq_entry_tenant_scope_type_lookup"):
            await as_owner(first.database, f"ALTER TABLE entry DROP CONSTRAINT {name}")
        told = await race([first, second], caller, writers=WRITERS, seconds=SHORT_S)
        found = await faults(first.database, first, caller, told)
    assert found["duplicate ordinals"] > 0
    assert found["contradictions"] > 0


async def test_without_locks_the_constraints_still_hold_as_the_net(
    own_postgres_url: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = caller_of(tenant)
    monkeypatch.setattr(allocation, "lock_scopes", allocation.find_scopes)
    async with AsyncExitStack() as stack:
        pair = await replicas(stack, own_postgres_url, 2)
        told = await race(pair, caller, writers=WRITERS, seconds=2.0)
        assert await faults(pair[0].database, pair[0], caller, told) == {}


async def test_ordinals_of_a_label_have_no_gaps_and_start_at_one(vaults: list[Vault], tenant: str) -> None:
    caller = caller_of(tenant)
    for number in range(30):
        vault = vaults[number % len(vaults)]
        receipt = await vault.store(caller, "talk", f"name {number}", ("EMAIL", f"{number}@b.c"))
        assert receipt.handles == [Handle("PERSON", number + 1), Handle("EMAIL", number + 1)]


async def test_writes_of_many_tenants_share_commits_and_nothing_else(
    vaults: list[Vault], tenant: str
) -> None:
    callers = [caller_of(f"{tenant}-{number}") for number in range(20)]
    writes = [vaults[0].store(caller, "talk", caller.tenant, "Ada") for caller in callers]
    receipts = await asyncio.gather(*writes)
    for caller, receipt in zip(callers, receipts, strict=True):
        assert receipt.handles == [Handle("PERSON", 1), Handle("PERSON", 2)]
        assert await vaults[-1].texts(caller, "talk", receipt.handles) == [caller.tenant, "Ada"]


async def test_writes_of_new_and_known_scopes_share_commits(vaults: list[Vault], tenant: str) -> None:
    caller = caller_of(tenant)
    await vaults[0].store(caller, "talk 0", "Ada")
    scopes = [f"talk {number}" for number in (1, 0, 2, 0, 3)]
    writes = [vaults[0].store(caller, scope, "Ada", f"Bob {at}") for at, scope in enumerate(scopes)]
    receipts = await asyncio.gather(*writes)
    for at, (scope, receipt) in enumerate(zip(scopes, receipts, strict=True)):
        assert await vaults[-1].texts(caller, scope, receipt.handles) == ["Ada", f"Bob {at}"]
