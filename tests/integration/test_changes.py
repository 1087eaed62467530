"""What one process commits, the others hear: after the commit, never without it, and after a lost connection too."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress

import pytest

from app.core.errors import StoreUnavailableError
from app.core.events import Changed
from app.store.changes import EVERYTHING, Changes, announce
from app.store.database import Database
from tests.factories import PATIENT

POLICY = Changed("policy", "acme", "v2")


async def heard(arrived: "asyncio.Queue[Changed]", seconds: float = 5.0) -> Changed:
    return await asyncio.wait_for(arrived.get(), seconds)


async def test_a_committed_change_is_heard_by_every_process(database_url: str) -> None:
    async with AsyncExitStack() as stack:
        queues: list[asyncio.Queue[Changed]] = []
        databases = [await stack.enter_async_context(Database(database_url, patience=PATIENT))]
        if not databases[0].embedded:
            databases.append(await stack.enter_async_context(Database(database_url, patience=PATIENT)))
        for database in databases:
            changes = Changes(database)
            queues.append(asyncio.Queue())
            changes.subscribe(queues[-1].put_nowait)
            await stack.enter_async_context(changes.running())
        async with databases[0].transaction("acme") as tx:
            await announce(tx, POLICY)
        assert [await heard(queue) for queue in queues] == [POLICY] * len(queues)


async def test_a_change_that_is_rolled_back_is_never_heard(database_url: str) -> None:
    async with Database(database_url, patience=PATIENT) as database:
        changes, arrived = Changes(database), asyncio.Queue[Changed]()
        changes.subscribe(arrived.put_nowait)
        async with changes.running():
            with suppress(KeyError):
                async with database.transaction("acme") as tx:
                    await announce(tx, POLICY)
                    raise KeyError
            async with database.transaction("acme") as tx:
                await announce(tx, Changed("keys"))
            assert await heard(arrived) == Changed("keys")
            assert arrived.empty()


async def test_after_a_lost_connection_everything_may_have_changed(postgres_database_url: str) -> None:
    async with Database(postgres_database_url, patience=PATIENT) as database:
        changes, arrived = Changes(database), asyncio.Queue[Changed]()
        changes.subscribe(arrived.put_nowait)
        async with changes.running():
            async with database.connection(write=True) as tx:
                await tx.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'sluice-changes' AND datname = current_database()"
                )
            assert await heard(arrived) == Changed(EVERYTHING)
            async with database.transaction("acme") as tx:
                await announce(tx, POLICY)
            assert await heard(arrived) == POLICY


async def test_what_is_kept_counts_only_while_changes_are_heard(database_url: str) -> None:
    async with Database(database_url, patience=PATIENT) as database:
        changes = Changes(database)
        assert not changes.heard()
        async with changes.running():
            # Commands on the host change a SQLite file without a word.
            assert await until(lambda: changes.heard() is not database.embedded)
        assert not changes.heard()


async def test_what_is_kept_does_not_count_after_a_lost_connection_until_all_of_it_is_forgotten(
    postgres_database_url: str,
) -> None:
    async with Database(postgres_database_url, patience=PATIENT) as database:
        changes, heard_when_told = Changes(database), asyncio.Queue[bool]()
        changes.subscribe(lambda _changed: heard_when_told.put_nowait(changes.heard()))
        async with changes.running():
            async with database.connection(write=True) as tx:
                await tx.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'sluice-changes' AND datname = current_database()"
                )
            assert not await asyncio.wait_for(heard_when_told.get(), 10)
            assert await until(changes.heard)


async def test_changes_of_another_database_are_no_news(
    postgres_database_url: str, own_postgres_url: str
) -> None:
    """A listening connection that leads elsewhere, as after a failover, would never be told anything."""
    async with Database(postgres_database_url, direct_url=own_postgres_url, patience=PATIENT) as database:
        changes, arrived = Changes(database), asyncio.Queue[Changed]()
        changes.subscribe(arrived.put_nowait)
        async with changes.running():
            # The second connection forgets everything once more, and is not trusted either.
            for _ in range(2):
                assert await heard(arrived, 20) == Changed(EVERYTHING)
                assert not changes.heard()


async def test_changes_are_heard_while_requests_find_no_database(postgres_database_url: str) -> None:
    """The listening connection lives on, and is not trusted: nobody knows where requests would be led."""
    nowhere = "postgresql://user:secret@127.0.0.1:1/none"
    async with (
        Database(nowhere, direct_url=postgres_database_url, patience=PATIENT) as database,
        Database(postgres_database_url, patience=PATIENT) as other,
    ):
        changes, arrived = Changes(database), asyncio.Queue[Changed]()
        changes.subscribe(arrived.put_nowait)
        async with changes.running():
            for number in range(20):  # behind the first look at where requests go, too
                announced = Changed("policy", "acme", f"v{number}")
                async with other.transaction("acme") as tx:
                    await announce(tx, announced)
                assert await heard(arrived) == announced
            assert not changes.heard()


async def until(condition: Callable[[], bool]) -> bool:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)
    return True


async def test_a_subscription_ends(database_url: str) -> None:
    async with Database(database_url, patience=PATIENT) as database:
        changes, arrived = Changes(database), asyncio.Queue[Changed]()
        unsubscribe = changes.subscribe(arrived.put_nowait)
        async with changes.running():
            listening = changes.listen()
            first = asyncio.create_task(anext(listening))
            await asyncio.sleep(0)
            unsubscribe()
            unsubscribe()
            async with database.transaction("acme") as tx:
                await announce(tx, POLICY)
            assert await asyncio.wait_for(first, 5) == POLICY
            await listening.aclose()
            assert arrived.empty()


async def test_listening_starts_although_the_database_is_away() -> None:
    async with Database("postgresql://nobody@127.0.0.1:1/none") as database, Changes(database).running():
        with pytest.raises(StoreUnavailableError):
            await database.ping()
