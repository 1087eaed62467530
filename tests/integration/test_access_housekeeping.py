"""Background jobs: what they clean up, one process at a time, whatever fails."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.core.errors import StoreUnavailableError
from app.services.access.access import HOST
from app.services.audit.sinks.delivery import Outlets
from app.services.background import Background, Job, housekeeping
from app.store.access.access import find_key
from app.store.database import Database
from app.store.locks import only_here
from tests.factories import PATIENT
from tests.integration.access_setup import Replica, replica_on


@pytest.fixture
async def replica(database: Database) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        yield running


def jobs_of(replica: Replica, purged: list[str]) -> dict[str, Job]:
    async def purge_scopes() -> None:
        purged.append("scopes")

    async def index_values() -> None:
        purged.append("values")

    async def empty_tenants() -> None:
        purged.append("tenants")

    async def run_erasures() -> None:
        purged.append("erasures")

    async def purge_disclosures() -> None:
        purged.append("disclosures")

    async def purge_ingestions() -> None:
        purged.append("ingestions")

    async def embed_documents() -> None:
        purged.append("vectors")

    async def prepare_documents() -> None:
        purged.append("words")

    async def purge_events() -> None:
        purged.append("events")

    async def purge_tombstones() -> None:
        purged.append("tombstones")

    listed = housekeeping(
        purge_scopes=purge_scopes,
        index_values=index_values,
        empty_tenants=empty_tenants,
        run_erasures=run_erasures,
        purge_every_s=60,
        sessions=replica.sessions,
        access=replica.access,
        purge_disclosures=purge_disclosures,
        purge_ingestions=purge_ingestions,
        embed_documents=embed_documents,
        prepare_documents=prepare_documents,
        outlets=Outlets.over(replica.audit, [], []),
        purge_events=purge_events,
        purge_tombstones=purge_tombstones,
    )
    return {job.name: job for job in listed}


async def test_every_job_of_the_house_runs_and_may_run_again(replica: Replica) -> None:
    purged: list[str] = []
    background = Background(replica.database, [])
    for job in jobs_of(replica, purged).values():
        assert await background.once(job)
        assert await background.once(job)
    names = (
        "scopes",
        "values",
        "tenants",
        "erasures",
        "disclosures",
        "ingestions",
        "vectors",
        "words",
        "tombstones",
        "events",
    )
    assert purged == [name for name in names for _ in range(2)]


async def test_an_old_secret_is_forgotten_after_its_overlap(replica: Replica, tenant: str) -> None:
    await replica.tenants.create(HOST, tenant)
    made = await replica.key(tenant)
    await replica.access.rotate_key(HOST, made.key.id, overlap_s=100)
    job = jobs_of(replica, [])["forget-old-secrets"]
    background = Background(replica.database, [])
    kept = []
    for pause in (99, 1):
        replica.clock.advance(pause)
        await background.once(job)
        async with replica.database.system_transaction(write=False) as tx:
            found = await find_key(tx, made.key.id, tenant_name=tenant)
        assert found is not None
        kept.append(found.previous_digest is not None)
    assert kept == [True, False]


async def test_the_record_has_a_partition_for_the_months_to_come(postgres_database_url: str) -> None:
    database = Database(postgres_database_url, patience=PATIENT)
    async with replica_on(database) as replica:
        await Background(database, []).once(jobs_of(replica, [])["prepare-audit-months"])
        in_two_months = replica.clock.now() + timedelta(days=61)
        async with database.connection() as connection:
            name = f"audit_event_{in_two_months:%Y_%m}"
            found = await connection.execute(text("SELECT to_regclass(:name)"), {"name": name})
            assert found.scalar_one() is not None
    await database.close()


async def test_a_lock_is_held_by_one_process_and_free_again_afterwards(postgres_database_url: str) -> None:
    databases = [Database(postgres_database_url, patience=PATIENT) for _ in range(2)]
    async with (
        only_here(databases[0], "x") as first,
        only_here(databases[1], "x") as second,
        only_here(databases[1], "y") as other,
    ):
        assert (first, second, other) == (True, False, True)
    async with only_here(databases[1], "x") as again:
        assert again
    with pytest.raises(ZeroDivisionError):
        async with only_here(databases[0], "x"):
            raise ZeroDivisionError
    async with only_here(databases[1], "x") as after_failure:
        assert after_failure
    for database in databases:
        await database.close()


async def test_of_two_processes_one_does_the_job(postgres_database_url: str) -> None:
    databases = [Database(postgres_database_url, patience=PATIENT) for _ in range(2)]
    begun, finish = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def work() -> None:
        runs.append(1)
        begun.set()
        await finish.wait()

    job = Job("slow", 1, work)
    first = asyncio.create_task(Background(databases[0], []).once(job))
    await begun.wait()
    assert await Background(databases[1], []).once(job) is False
    finish.set()
    assert await first is True
    assert runs == [1]
    for database in databases:
        await database.close()


async def test_a_broken_job_is_logged_without_content_and_the_others_go_on(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    # Each job takes a lock in the database, so they do not keep step: wait until each has run.
    runs: Counter[str] = Counter()
    enough = asyncio.Event()

    def ran(name: str) -> None:
        runs[name] += 1
        if runs["sound"] >= 3 and min(runs["broken"], runs["unreachable"]) >= 2:
            enough.set()

    async def broken() -> None:
        ran("broken")
        raise ValueError("Ann's number is 123-45-6789")

    async def unreachable() -> None:
        ran("unreachable")
        raise StoreUnavailableError("down")

    async def sound() -> None:
        ran("sound")

    async def no_wait(_seconds: float) -> None:
        await asyncio.sleep(0)

    jobs = [Job("broken", 1, broken), Job("unreachable", 1, unreachable), Job("sound", 1, sound)]
    with caplog.at_level(logging.WARNING):
        async with Background(replica.database, jobs, sleep=no_wait).running():
            await asyncio.wait_for(enough.wait(), 10)
    assert "job broken failed: ValueError in broken, line" in caplog.text
    assert "job unreachable failed: the database does not answer" in caplog.text
    assert "123-45-6789" not in caplog.text


async def test_jobs_are_spread_by_chance_and_end_with_the_process(replica: Replica) -> None:
    pauses: list[float] = []
    asleep = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            asleep.set()
            await asyncio.Event().wait()

    async def nothing() -> None:
        return

    jobs = [Job("job", 100, nothing)]
    async with Background(replica.database, jobs, sleep=sleep, chance=lambda: 0.5).running():
        await asyncio.wait_for(asleep.wait(), 10)
    assert pauses == [50, 100, 100]
