"""Tombstones of scopes go a month after their end, and still no handle is given to two values under one name."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from app.core.content.handles import Handle
from app.core.errors import StoreUnavailableError
from app.services.vault.restore_epoch import begin_epoch
from app.services.vault.tombstones import TombstoneService
from app.store.database import Database
from tests.conftest import PATIENT
from tests.factories import Vault, as_owner, caller_of, open_vault, with_schema
from tests.integration.access_setup import Clock

DAY_S = 24 * 3600.0
NAMES = [f"name {number}" for number in range(5)]


class Ended:
    """A tenant with a vault on a clock that the test moves."""

    def __init__(self, vault: Vault, clock: Clock) -> None:
        self.vault = vault
        self.clock = clock
        self.tenant = f"t-{uuid4().hex[:12]}"
        self.caller = caller_of(self.tenant)

    async def store(self, scope: str, *values: Any) -> list[Handle]:
        return list((await self.vault.store(self.caller, scope, *values)).handles)

    async def erase(self, *scopes: str) -> None:
        for scope in scopes:
            await self.vault.service.erase_scope(self.caller, scope)

    async def purge(self, *, days: float = 0) -> None:
        self.clock.advance(days * DAY_S)
        await TombstoneService(self.vault.database, self.clock.now).purge()

    async def scopes(self) -> list[str]:
        async with self.vault.database.transaction(self.tenant, write=False) as tx:
            query = text("SELECT id FROM scope WHERE tenant = :tenant AND id <> '' ORDER BY id")
            return list((await tx.execute(query, {"tenant": self.tenant})).scalars())


@pytest.fixture
async def ended(module_url: str) -> AsyncIterator[Ended]:
    database, clock = Database(module_url, patience=PATIENT), Clock()
    try:
        async with open_vault(database, now=clock.now) as vault:
            yield Ended(vault, clock)
    finally:
        await database.close()


async def test_a_tombstone_goes_after_a_month_and_its_handles_are_never_given_again(ended: Ended) -> None:
    before = await ended.store("talk", *NAMES, ("EMAIL", "a@b.c"))
    await ended.erase("talk")
    await ended.purge(days=29)
    assert await ended.scopes() == ["talk"]
    await ended.purge(days=2)
    assert await ended.scopes() == []
    again = await ended.store("talk", "somebody else", ("EMAIL", "c@d.e"), ("PHONE", "555 0100"))
    assert again == [Handle("PERSON", 6), Handle("EMAIL", 2), Handle("PHONE", 1)]
    assert await ended.vault.texts(ended.caller, "talk", before) == [None] * 6
    assert await ended.vault.texts(ended.caller, "talk", again[:1]) == ["somebody else"]


async def test_the_highest_of_all_counts_whichever_goes_first(ended: Ended) -> None:
    for scope, count in (("long", 5), ("short", 2)):
        await ended.store(scope, *NAMES[:count])
    await ended.erase("long")
    await ended.purge(days=31)
    await ended.erase("short")
    await ended.purge(days=31)
    assert await ended.scopes() == []
    assert await ended.store("short", "Ada") == [Handle("PERSON", 6)]
    assert await ended.store("long", "Ada") == [Handle("PERSON", 6)]
    assert await ended.store("short", "Bob") == [Handle("PERSON", 7)]


async def test_a_scope_that_is_used_again_in_time_is_no_tombstone(ended: Ended) -> None:
    await ended.store("talk", "Ada")
    await ended.erase("talk")
    ended.clock.advance(29 * DAY_S)
    (handle,) = await ended.store("talk", "Bob")
    await ended.purge(days=2)
    assert handle == Handle("PERSON", 2)
    assert await ended.scopes() == ["talk"]
    assert await ended.vault.texts(ended.caller, "talk", [handle]) == ["Bob"]


async def test_a_scope_that_expired_goes_like_one_that_was_erased(ended: Ended) -> None:
    await ended.vault.store(ended.caller, "talk", *NAMES, ttl_s=60)
    ended.clock.advance(61)
    await ended.vault.service.purge_expired()
    await ended.purge(days=31)
    assert await ended.scopes() == []
    assert await ended.store("talk", "Ada") == [Handle("PERSON", 6)]


async def test_a_tombstone_of_an_older_release_goes_a_month_after_it_was_first_seen(ended: Ended) -> None:
    await ended.store("talk", *NAMES)
    await ended.erase("talk")
    await as_owner(
        ended.vault.database, "UPDATE scope SET erased = NULL WHERE tenant = :tenant", tenant=ended.tenant
    )
    await ended.purge(days=100)
    assert await ended.scopes() == ["talk"]
    await ended.purge(days=31)
    assert await ended.scopes() == []


async def test_ordinals_that_a_floor_may_not_have_keep_their_tombstone(ended: Ended) -> None:
    await ended.store("talk", "Ada")
    await ended.vault.store(ended.caller, "stable", "Ada", above=1_000_000)
    await ended.erase("talk", "stable")
    await ended.purge(days=31)
    assert await ended.scopes() == ["stable"]
    assert await ended.store("talk", "Ada") == [Handle("PERSON", 2)]
    (after,) = (await ended.vault.store(ended.caller, "stable", "Bob", above=1_000_000)).handles
    assert after == Handle("PERSON", 1_000_002)


async def test_a_new_epoch_is_above_what_tombstones_left_behind(tmp_path: Path) -> None:
    """In a database of its own: the epoch is the installation's."""
    clock = Clock()
    async with (
        Database(with_schema(f"sqlite:///{tmp_path}/sluice.db")) as database,
        open_vault(database, now=clock.now) as vault,
    ):
        await begin_after_floor(Ended(vault, clock))


async def begin_after_floor(ended: Ended) -> None:
    await ended.store("talk", *NAMES)
    await as_owner(
        ended.vault.database,
        "UPDATE scope SET counters = :counters WHERE tenant = :tenant",
        tenant=ended.tenant,
        counters='{"PERSON": 400000}',
    )
    await ended.erase("talk")
    await ended.purge(days=31)

    async def note(*_given: object) -> None:
        return None

    epoch = await begin_epoch(ended.vault.database, note)
    (handle,) = await ended.store("talk", "Ada")
    assert handle == Handle("PERSON", epoch * 2_000_000 + 1)
    await ended.erase("talk")
    await ended.purge(days=31)
    assert await ended.store("talk", "Ada") == [Handle("PERSON", epoch * 2_000_000 + 2)]


async def test_what_tombstones_leave_behind_is_no_tombstone_and_never_goes(ended: Ended) -> None:
    await ended.store("talk", *NAMES)
    await ended.erase("talk")
    for _ in range(4):
        await ended.purge(days=31)
    assert await ended.store("walk", "Ada") == [Handle("PERSON", 6)]


async def test_another_tenant_counts_for_itself(ended: Ended) -> None:
    await ended.store("talk", *NAMES)
    await ended.erase("talk")
    await ended.purge(days=31)
    other = caller_of(f"{ended.tenant}-x")
    assert (await ended.vault.store(other, "talk", "Ada")).handles == [Handle("PERSON", 1)]
    # Also where tombstones of both go at once.
    await ended.store("walk", *NAMES)
    await ended.erase("walk")
    await ended.vault.service.erase_scope(other, "talk")
    await ended.purge(days=31)
    assert (await ended.vault.store(other, "walk", "Ada")).handles == [Handle("PERSON", 2)]


@pytest.mark.in_turn("module_url")
async def test_as_many_scopes_are_kept_however_long_conversations_come_and_go(ended: Ended) -> None:
    kept = []
    for week in range(12):
        for number in range(2):
            await ended.vault.store(ended.caller, f"{week} {number}", "Ada", "Bo", ttl_s=int(DAY_S))
        await ended.purge(days=7)
        await ended.vault.service.purge_expired()
        kept.append(len(await ended.scopes()))
    assert kept[:4] == [2, 4, 6, 8], "negative control: tombstones of a month are kept"
    assert set(kept[6:]) == {kept[6]}
    assert kept[6] <= 2 * 6
    assert not (await ended.vault.service.list_scopes(ended.caller)).items


async def test_the_row_that_stays_is_no_scope(ended: Ended) -> None:
    await ended.store("talk", "Ada")
    await ended.erase("talk")
    await ended.purge(days=31)
    listed = await ended.vault.service.list_scopes(ended.caller)
    assert list(listed.items) == []


@pytest.mark.parametrize("module_url", ["postgresql"], indirect=True)
async def test_only_tombstones_can_be_deleted(ended: Ended) -> None:
    await ended.store("talk", "Ada")
    await ended.store("gone", "Ada")
    await ended.erase("gone")
    async with ended.vault.database.system_transaction() as tx:
        await tx.execute(text("DELETE FROM scope WHERE tenant = :tenant"), {"tenant": ended.tenant})
    assert await ended.scopes() == ["talk"]
    with pytest.raises(StoreUnavailableError):
        async with ended.vault.database.transaction(ended.tenant) as tx:
            await tx.execute(text("DELETE FROM scope"))
