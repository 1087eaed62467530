"""Writes on SQLite: two turns of the connection's thread, stored together or not at all, and no lock left behind."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from app.core.errors import NotFoundError, StoreUnavailableError
from app.store.audit import batches
from app.store.database import Database
from tests.conftest import with_schema
from tests.factories import PATIENT, Vault, caller_of, open_vault

CALLER = caller_of("tenant-1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with_schema(f"sqlite:///{tmp_path}/own.db")
    return tmp_path / "own.db"


@pytest.fixture
async def vault(file: Path) -> AsyncIterator[Vault]:
    async with Database(f"sqlite:///{file}", patience=PATIENT) as database, open_vault(database) as opened:
        await opened.store(CALLER, "talk", "Ada")
        yield opened


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the turns of all threads."""
    turns, execute = [0], aiosqlite.Connection._execute

    async def count(connection: aiosqlite.Connection, *given: Any) -> Any:
        turns[0] += 1
        return await execute(connection, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiosqlite.Connection, "_execute", count)
        yield turns


def count_of(file: Path, table: str) -> int:
    """Return how many rows another process sees; it may write, too, without waiting."""
    other = sqlite3.connect(file, timeout=0)
    try:
        other.execute("BEGIN IMMEDIATE")
        (count,) = other.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
        other.rollback()
        return int(count)
    finally:
        other.close()


@pytest.mark.parametrize(("scope", "value"), [("talk", "Ada"), ("talk", "Grace"), ("other", "Ada")])
async def test_a_write_takes_two_turns(vault: Vault, file: Path, scope: str, value: str) -> None:
    events = count_of(file, "audit_event")
    with counted() as turns:
        receipt = await vault.store(CALLER, scope, value)
    assert turns == [2]
    assert await vault.texts(CALLER, scope, receipt.handles) == [value]
    assert count_of(file, "audit_event") == events + 1
    later = await vault.store(CALLER, scope, "Alan", "Edsger")
    assert len({*receipt.handles, *later.handles}) == 3
    assert await vault.texts(CALLER, scope, [*receipt.handles, *later.handles]) == [value, "Alan", "Edsger"]


async def test_a_data_key_that_is_not_in_memory_takes_a_turn_more(vault: Vault, file: Path) -> None:
    first = await vault.store(CALLER, "talk", "Grace")
    async with Database(f"sqlite:///{file}", patience=PATIENT) as database, open_vault(database) as started:
        with counted() as turns:
            again = await started.store(CALLER, "talk", "Grace")
    assert again.handles == first.handles
    assert turns == [3]


async def test_a_refused_write_leaves_no_transaction(vault: Vault, file: Path) -> None:
    await vault.store(CALLER, "hers", "Ada", owner="key:1")
    events = count_of(file, "audit_event")
    with pytest.raises(NotFoundError):
        await vault.store(CALLER, "hers", "Grace", owner="key:2")
    assert count_of(file, "audit_event") == events
    assert len((await vault.store(CALLER, "talk", "Grace")).handles) == 1


async def test_what_cannot_be_recorded_is_not_stored(
    vault: Vault, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {table: count_of(file, table) for table in ("scope", "entry", "audit_event")}
    insert = batches.insert_here

    def failing(connection: sqlite3.Connection, table: Any, *rows: Any) -> None:
        if table.name == "audit_event":
            raise sqlite3.OperationalError("disk I/O error")
        insert(connection, table, *rows)

    with monkeypatch.context() as patch:
        patch.setattr(batches, "insert_here", failing)
        for scope in ("talk", "other"):
            with pytest.raises(StoreUnavailableError):
                await vault.store(CALLER, scope, "Grace")
    assert {table: count_of(file, table) for table in before} == before
    receipt = await vault.store(CALLER, "talk", "Alan")
    assert [handle.ordinal for handle in receipt.handles] == [2]


async def test_writes_that_share_a_batch_fail_apart(vault: Vault) -> None:
    await vault.store(CALLER, "hers", "Ada", owner="key:1")
    writes = [vault.store(CALLER, f"scope-{number}", "Ada") for number in range(6)]
    answers = await asyncio.gather(
        *writes[:3],
        vault.store(CALLER, "hers", "Grace", owner="key:2"),
        *writes[3:],
        return_exceptions=True,
    )
    refused = [type(answer) for answer in answers if isinstance(answer, BaseException)]
    assert refused == [NotFoundError]


async def test_a_scope_that_has_ended_counts_on(file: Path) -> None:
    now = [datetime.now(UTC)]
    async with (
        Database(f"sqlite:///{file}", patience=PATIENT) as database,
        open_vault(database, now=lambda: now[0]) as vault,
    ):
        first = await vault.store(CALLER, "short", "Ada", ttl_s=60)
        now[0] += timedelta(seconds=61)
        second = await vault.store(CALLER, "short", "Grace", ttl_s=60)
        assert [handle.ordinal for handle in (*first.handles, *second.handles)] == [1, 2]
        assert await vault.texts(CALLER, "short", [*first.handles, *second.handles]) == [None, "Grace"]


async def test_a_writer_who_is_cancelled_leaves_no_transaction(vault: Vault, file: Path) -> None:
    begun = asyncio.Event()

    async def write() -> None:
        async with vault.database.turns() as turn:
            await turn(lambda connection: connection.execute("BEGIN IMMEDIATE").close())
            begun.set()
            await asyncio.Event().wait()

    writing = asyncio.create_task(write())
    await begun.wait()
    with pytest.raises(sqlite3.OperationalError):
        count_of(file, "scope")
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert count_of(file, "scope") == 1
    assert len((await vault.store(CALLER, "talk", "Grace")).handles) == 1
