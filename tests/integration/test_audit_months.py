"""A month of the record goes as a whole once all its events are deleted, and never while one is left."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from app.assembly import opened
from app.services.access.access import HOST
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.audit.audit import drop_emptied_partitions
from app.store.database import Database
from tests.conftest import PATIENT, connect
from tests.factories import TEST_RING, as_owner
from tests.integration.access_setup import Clock, replica_on
from tests.integration.test_audit_retention import DAY_S, HELD, KEEP, Kept

AGO_DAYS = 100
OF_THE_HOST = "DELETE FROM audit_event WHERE tenant = 'system'"
WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'audit_event'::regclass AND NOT granted"
RING = f"1:{b64encode(TEST_RING.keys[1]).decode()}"


def month_of(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def named(month: datetime) -> str:
    return f"audit_event_{month:%Y_%m}"


@pytest.fixture
async def kept(own_postgres_url: str) -> AsyncIterator[Kept]:
    """Return a tenant of a hundred days ago, whose months have partitions, as in a record that grew with them."""
    database, clock = Database(own_postgres_url, patience=PATIENT), Clock()
    owner = await connect(own_postgres_url)
    now = datetime.now(UTC)
    month = month_of(now - timedelta(days=AGO_DAYS + 5))
    while month < month_of(now):
        following = month_of(month + timedelta(days=32))
        bounds = f"FROM ('{month.isoformat()}') TO ('{following.isoformat()}')"
        await owner.execute(f"CREATE TABLE {named(month)} PARTITION OF audit_event FOR VALUES {bounds}")
        month = following
    await owner.close()
    clock.advance(-AGO_DAYS * DAY_S)
    try:
        async with replica_on(database, clock) as replica:
            made = Kept(replica)
            await replica.tenants.create(HOST, made.tenant)
            yield made
    finally:
        await database.close()


async def months(kept: Kept) -> set[str]:
    owner = await connect(kept.replica.database.url.set(drivername="postgresql").render_as_string())
    parts = await owner.fetch(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'audit_event'::regclass"
    )
    await owner.close()
    return {str(row[0]) for row in parts}


async def drop(kept: Kept) -> int:
    async with kept.replica.database.system_transaction() as tx:
        return await drop_emptied_partitions(tx)


async def test_a_month_goes_with_its_last_event_and_the_rest_verifies(kept: Kept) -> None:
    first = named(kept.replica.clock.now())
    await kept.keep(**KEEP, held_scopes=[HELD])
    await kept.record(20)
    await kept.record(1, scope_ref=HELD, days=40)
    await kept.record(5)
    assert await kept.purged() == 22
    whole = await months(kept)
    # Months in between never had an event; the first has one that is held, and the second those of today.
    await drop(kept)
    left = await months(kept)
    assert first in left
    assert left < whole
    assert await kept.count(condition=f"scope_ref = '{HELD}'") == 1
    await kept.keep(**KEEP)
    kept.replica.clock.advance(2 * DAY_S)
    assert await kept.purged() == 1
    # Of the tenant system, where policies are recorded as well, nothing is deleted in time: that keeps a month.
    assert await drop(kept) == 0
    await as_owner(kept.replica.database, OF_THE_HOST)
    assert await drop(kept) == 1
    assert await months(kept) == left - {first}
    result = await kept.verify()
    assert (result.findings, result.pruned) == ([], 23)


async def test_no_month_goes_that_another_tenant_still_has_events_of(kept: Kept) -> None:
    first = named(kept.replica.clock.now())
    other = Kept(kept.replica)
    await kept.replica.tenants.create(HOST, other.tenant)
    await kept.keep(**KEEP)
    await kept.record(5)
    await other.record(1, days=40)
    await kept.purged()
    assert await kept.count() == 1
    await drop(kept)
    assert first in await months(kept)
    assert await other.count(condition="action = 'middleware.invoke'") == 1
    # The control: nothing else kept the month.
    await as_owner(
        kept.replica.database, "DELETE FROM audit_event WHERE tenant = :tenant", tenant=other.tenant
    )
    await as_owner(kept.replica.database, OF_THE_HOST)
    await drop(kept)
    assert first not in await months(kept)


async def test_this_month_the_coming_ones_and_the_default_stay_though_they_are_empty(kept: Kept) -> None:
    await as_owner(kept.replica.database, "DELETE FROM audit_event")
    before, now = await months(kept), datetime.now(UTC)
    assert await drop(kept) > 0
    left = await months(kept)
    assert left == {name for name in before if name == "audit_event_default" or name >= named(now)} | {
        name for name in before if name == named(month_of(now) - timedelta(days=1)) and now.day <= 2
    }
    # What is recorded late finds a place, and is found.
    await kept.record(3)
    assert await kept.count(condition="action = 'middleware.invoke'") == 3


async def test_while_the_record_is_used_nothing_is_dropped_and_nobody_waits_for_long(kept: Kept) -> None:
    await as_owner(kept.replica.database, "DELETE FROM audit_event")
    before = await months(kept)
    async with kept.replica.database.transaction(kept.tenant) as reading:
        await reading.exec_driver_sql("SELECT count(*) FROM audit_event")
        assert await drop(kept) == 0
    assert await months(kept) == before
    assert await drop(kept) > 0


async def test_a_month_that_was_empty_until_its_turn_came_stays(kept: Kept) -> None:
    """Whoever stores an event there commits between the look at the month and the lock on it."""
    oldest = min(name for name in await months(kept) if name != "audit_event_default")
    writer = await connect(kept.replica.database.url.set(drivername="postgresql").render_as_string())
    try:
        await writer.execute(
            "CREATE TABLE saved AS SELECT * FROM audit_event LIMIT 1; DELETE FROM audit_event"
        )
        then = datetime.strptime(oldest[-7:], "%Y_%m").replace(day=2, tzinfo=UTC)
        await writer.execute("UPDATE saved SET at = $1", then)
        async with writer.transaction():
            await writer.execute("INSERT INTO audit_event SELECT * FROM saved")
            dropping = asyncio.create_task(drop(kept))
            while not dropping.done() and not await writer.fetchval(WAITING):
                await asyncio.sleep(0.001)
        # Where the commit came too late for its patience, it has dropped nothing at all.
        await dropping
        assert oldest in await months(kept)
        assert await writer.fetchval("SELECT count(*) FROM audit_event") == 1
    finally:
        await writer.close()


async def test_the_daily_job_drops_them(kept: Kept) -> None:
    await as_owner(kept.replica.database, "DELETE FROM audit_event")
    before = await months(kept)
    url = kept.replica.database.url.set(drivername="postgresql").render_as_string()
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(ring=SecretStr(RING))
    )
    async with opened(settings) as services:
        job = next(job for job in services.background.jobs if job.name == "prepare-audit-months")
        assert await services.background.once(job)
    assert await months(kept) < before
