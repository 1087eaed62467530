"""Virtual sessions on both databases, and served by two processes on PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from app.core.access import Caller, Role
from app.core.errors import NotFoundError
from app.services.access.sessions import SessionService
from app.store.database import Database
from app.store.tables import session as session_table
from tests.factories import PATIENT
from tests.integration.access_setup import Clock

REVISION = "2025-11-25"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def sessions(database: Database, clock: Clock) -> SessionService:
    return SessionService(database, 3600, clock.now)


@pytest.fixture
def caller(tenant: str) -> Caller:
    return Caller(tenant, "00000001", frozenset({Role.INVOKER}))


async def last_seen(sessions: SessionService, tenant: str) -> list[object]:
    async with sessions.database.transaction(tenant, write=False) as tx:
        rows = await tx.execute(select(session_table.c.last_seen).where(session_table.c.tenant == tenant))
        return [row.last_seen for row in rows]


async def test_a_session_is_found_by_whoever_began_it(sessions: SessionService, caller: Caller) -> None:
    begun = await sessions.start(caller, REVISION, {"level": "info"})
    found = await sessions.resume(caller, begun.id)
    assert (found.id, found.revision, dict(found.preferences)) == (begun.id, REVISION, {"level": "info"})


async def test_an_id_is_long_random_and_stored_only_as_a_digest(
    sessions: SessionService, caller: Caller
) -> None:
    ids = [(await sessions.start(caller, REVISION)).id for _ in range(20)]
    assert len(set(ids)) == 20
    assert min(map(len, ids)) >= 43  # base64 of 256 bits
    assert all(one.isascii() and one.isprintable() for one in ids)
    async with sessions.database.transaction(caller.tenant, write=False) as tx:
        stored = repr((await tx.execute(select(session_table))).all())
    assert not any(one in stored for one in ids)
    assert ids[0] not in repr(await sessions.resume(caller, ids[0]))


async def test_unknown_expired_and_foreign_look_the_same(
    sessions: SessionService, caller: Caller, clock: Clock, tenant: str
) -> None:
    begun = await sessions.start(caller, REVISION)
    same_tenant = replace(caller, key_id="00000002")
    same_key_id = replace(caller, tenant=f"{tenant}-x")
    faults = [(caller, "x" * 43), (caller, ""), (caller, "\ud800"), (same_tenant, begun.id)]
    answers = set()
    for who, session_id in [*faults, (same_key_id, begun.id)]:
        for act in (sessions.resume, sessions.end):
            with pytest.raises(NotFoundError) as refusal:
                await act(who, session_id)
            answers.add((refusal.value.message, str(refusal.value.details)))
        with pytest.raises(NotFoundError):
            await sessions.remember(who, session_id, {"a": 1})
    # Negative control: the session lives all the while, then it expires.
    await sessions.resume(caller, begun.id)
    clock.advance(3600)
    with pytest.raises(NotFoundError) as expired:
        await sessions.resume(caller, begun.id)
    assert answers == {(expired.value.message, str(expired.value.details))}


async def test_use_keeps_a_session_alive_and_is_noted_once_a_minute(
    sessions: SessionService, caller: Caller, clock: Clock, tenant: str
) -> None:
    begun = await sessions.start(caller, REVISION)
    start = clock.now()
    for _ in range(5):
        clock.advance(11)
        await sessions.resume(caller, begun.id)
    assert await last_seen(sessions, tenant) == [start]
    clock.advance(5)
    await sessions.resume(caller, begun.id)
    assert await last_seen(sessions, tenant) == [start + timedelta(seconds=60)]
    for _ in range(10):
        clock.advance(3000)
        await sessions.resume(caller, begun.id)


async def test_an_ended_session_is_gone(sessions: SessionService, caller: Caller) -> None:
    begun = await sessions.start(caller, REVISION)
    await sessions.resume(caller, begun.id)
    await sessions.end(caller, begun.id)
    for act in (sessions.resume, sessions.end):
        with pytest.raises(NotFoundError):
            await act(caller, begun.id)


async def test_what_is_remembered_is_merged_and_none_forgets(
    sessions: SessionService, caller: Caller
) -> None:
    begun = await sessions.start(caller, REVISION, {"a": 1, "b": {"c": [1, 2]}})
    await sessions.resume(caller, begun.id)
    merged = await sessions.remember(caller, begun.id, {"b": None, "d": "x"})
    assert dict(merged.preferences) == {"a": 1, "d": "x"}
    assert dict((await sessions.resume(caller, begun.id)).preferences) == {"a": 1, "d": "x"}


async def test_concurrent_memories_are_all_kept(sessions: SessionService, caller: Caller) -> None:
    begun = await sessions.start(caller, REVISION)
    await asyncio.gather(*(sessions.remember(caller, begun.id, {f"n{n}": n}) for n in range(12)))
    assert len((await sessions.resume(caller, begun.id)).preferences) == 12


async def test_idle_sessions_are_purged_and_live_ones_stay(
    sessions: SessionService, caller: Caller, clock: Clock, tenant: str
) -> None:
    idle = await sessions.start(caller, REVISION)
    clock.advance(1800)
    live = await sessions.start(caller, REVISION)
    clock.advance(1800.5)
    assert await sessions.purge_idle() >= 1
    assert len(await last_seen(sessions, tenant)) == 1
    await sessions.resume(caller, live.id)
    with pytest.raises(NotFoundError):
        await sessions.resume(caller, idle.id)


@pytest.fixture
async def two(postgres_database_url: str, clock: Clock) -> AsyncIterator[list[SessionService]]:
    databases = [Database(postgres_database_url, patience=PATIENT) for _ in range(2)]
    yield [SessionService(database, 3600, clock.now) for database in databases]
    for database in databases:
        await database.close()


async def test_any_process_serves_a_session_and_sees_changes_at_once(
    two: list[SessionService], caller: Caller
) -> None:
    here, there = two
    begun = await here.start(caller, REVISION)
    for number in range(10):
        await two[number % 2].remember(caller, begun.id, {"number": number})
        assert (await two[(number + 1) % 2].resume(caller, begun.id)).preferences["number"] == number
    await there.end(caller, begun.id)
    with pytest.raises(NotFoundError):
        await here.resume(caller, begun.id)
