"""Processes and databases die under load: what was acknowledged is there, and nothing is answered in between."""

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import make_url, text

from app.core.access import Caller
from app.core.content.handles import Handle
from app.core.errors import AuditUnavailableError, StoreUnavailableError
from app.services.audit.verification import LogVerifier
from app.store.database import Database
from app.store.dialects import SQLiteConnection
from app.store.migrate import is_head, upgrade
from tests.conftest import start_postgres
from tests.factories import Vault, as_owner, caller_of, open_vault
from tests.integration.sealing import seal_all

ROOT = Path(__file__).resolve().parents[2]
SHORT_KILLS, LONG_KILLS = 4, 50
LEAST_ACKNOWLEDGED = 20
"""How many calls a process has acknowledged at least when it is killed, however slow the machine is."""
CLOSED_S, RECOVERED_S = 8.0, 30.0


def kill_under_load(url: str, tenant: str, folder: Path, kills: int) -> list[list[str]]:
    """Start a replica, kill it with SIGKILL at a random moment, again and again; return what it acknowledged."""
    said = folder / "acknowledged"
    with said.open("ab", buffering=0) as out:
        for _ in range(kills):
            child = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.fault_child", url, tenant], stdout=out, cwd=ROOT
            )
            enough, until = said.read_bytes().count(b"\n") + LEAST_ACKNOWLEDGED, time.monotonic() + 20
            while said.read_bytes().count(b"\n") < enough and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(random.uniform(0.05, 0.5))
            child.send_signal(signal.SIGKILL)
            child.wait()
            out.write(b"\n")
    # A line cut by the kill was not acknowledged; the line end written after each kill closes it.
    lines = (line.split("\t") for line in said.read_text().splitlines())
    return [fields for fields in lines if len(fields) == 6]


async def lost(vault: Vault, caller: Caller, acknowledged: list[list[str]]) -> dict[str, int]:
    """Return what of the acknowledgements is not true of the database; empty when all is."""
    found: Counter[str] = Counter()
    meaning: dict[tuple[str, str], str] = {}
    for scope, _request, *pairs in acknowledged:
        for value, name in zip(pairs[::2], pairs[1::2], strict=True):
            found["handle given twice"] += meaning.setdefault((scope, name), value) != value
    for scope in {scope for scope, _ in meaning}:
        own = {name: value for (one, name), value in meaning.items() if one == scope}
        handles = {name: Handle.parse(name) for name in own}
        read = await vault.service.read(caller, scope, [handle for handle in handles.values() if handle])
        for name, handle in handles.items():
            original = read.get(handle) if handle else None
            found["handle lost or wrong"] += original is None or original.text != own[name]
    async with vault.database.transaction(caller.tenant, write=False) as tx:
        query = "SELECT request_id, count(*) FROM audit_event WHERE tenant = :t GROUP BY request_id"
        rows = {row[0]: row[1] for row in await tx.execute(text(query), {"t": caller.tenant})}
    found["call without its audit row"] = sum(rows.get(fields[1]) != 1 for fields in acknowledged)
    return {name: count for name, count in found.items() if count}


async def killed(url: str, tenant: str, folder: Path, kills: int) -> None:
    acknowledged = await asyncio.to_thread(kill_under_load, url, tenant, folder, kills)
    assert len(acknowledged) >= LEAST_ACKNOWLEDGED * kills
    async with Database(url) as database, open_vault(database) as vault:
        assert await lost(vault, caller_of(tenant), acknowledged) == {}
        # What a killed process was about to store leaves no gap among the numbers of its events.
        await seal_all(vault.audit)
        assert (await LogVerifier(vault.audit).verify(tenant)).findings == []
        # The control: the same check finds one acknowledged row that is gone, and one audit row.
        scope, request, _, name, *_ = acknowledged[len(acknowledged) // 2]
        for statement in (
            "DELETE FROM entry WHERE tenant = :t AND scope = :scope AND ordinal = :ordinal",
            "DELETE FROM audit_event WHERE tenant = :t AND request_id = :request",
        ):
            values = {"t": tenant, "scope": scope, "ordinal": int(name.split("_")[1]), "request": request}
            used = {key: value for key, value in values.items() if f":{key}" in statement}
            await as_owner(database, statement, **used)
        assert await lost(vault, caller_of(tenant), acknowledged) == {
            "handle lost or wrong": 1,
            "call without its audit row": 1,
        }
        findings = (await LogVerifier(vault.audit).verify(tenant)).findings
        assert [finding.kind for finding in findings] == ["missing"]


async def test_a_killed_process_keeps_every_acknowledgement(
    database_url: str, tenant: str, tmp_path: Path
) -> None:
    await killed(database_url, tenant, tmp_path, SHORT_KILLS)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_fifty_killed_processes_keep_every_acknowledgement(
    database_url: str, tenant: str, tmp_path: Path
) -> None:
    await killed(database_url, tenant, tmp_path, LONG_KILLS)


@pytest.fixture
def own_server() -> Iterator[Any]:
    """Return a PostgreSQL server of this test alone, migrated, which it may stop and start."""
    server = start_postgres(uuid4().hex)
    upgrade(server.get_uri())
    yield server
    server.ensure_postgres_running()
    server.cleanup()


async def fails_closed(vault: Vault, caller: Caller) -> None:
    """See that a write, a read and a record all refuse in time."""
    event = vault.audit.new_event(caller, "test", "ok", None)
    for attempt, expected in (
        (vault.store(caller, "talk", "Bob"), StoreUnavailableError),
        (vault.service.read(caller, "talk", [Handle("PERSON", 1)]), StoreUnavailableError),
        (vault.audit.record(event), AuditUnavailableError),
        (vault.database.ping(), StoreUnavailableError),
    ):
        started = time.monotonic()
        with pytest.raises(expected):
            await attempt
        assert time.monotonic() - started < CLOSED_S


async def recovers(vault: Vault, caller: Caller) -> None:
    """See that the same service serves again, without a restart, and lost nothing."""
    until = time.monotonic() + RECOVERED_S
    while True:
        try:
            assert (await vault.store(caller, "talk", "Ada")).handles == [Handle("PERSON", 1)]
            break
        except StoreUnavailableError:
            assert time.monotonic() < until
            await asyncio.sleep(0.1)
    assert await vault.texts(caller, "talk", [Handle("PERSON", 1)]) == ["Ada"]


async def test_a_stopped_database_fails_closed_and_recovers_by_itself(own_server: Any, tenant: str) -> None:
    caller = caller_of(tenant)
    async with Database(own_server.get_uri()) as database, open_vault(database) as vault:
        await vault.store(caller, "talk", "Ada")
        for _ in range(2):
            await asyncio.to_thread(own_server.stop)
            await asyncio.sleep(1.1)  # longer than the readiness probe trusts its last success
            await fails_closed(vault, caller)
            await asyncio.to_thread(own_server.ensure_postgres_running)
            await recovers(vault, caller)


async def test_a_killed_database_keeps_every_acknowledgement(own_server: Any, tenant: str) -> None:
    caller = caller_of(tenant)
    async with Database(own_server.get_uri()) as database, open_vault(database) as vault:
        acknowledged: list[list[str]] = []

        async def write() -> None:
            while True:
                value, request = uuid4().hex, uuid4().hex
                receipt = await vault.store(caller, "talk", value, request_id=request)
                acknowledged.append(["talk", request, value, receipt.handles[0].name])

        writers = [asyncio.create_task(write()) for _ in range(8)]
        await asyncio.sleep(0.5)
        os.kill(own_server.get_pid(), signal.SIGKILL)
        ended = await asyncio.gather(*writers, return_exceptions=True)
        assert {type(error) for error in ended} == {StoreUnavailableError}
        await restarted(own_server)
        assert len(acknowledged) > 20
        until = time.monotonic() + RECOVERED_S
        while True:
            try:
                assert await lost(vault, caller, acknowledged) == {}
                break
            except StoreUnavailableError:
                assert time.monotonic() < until
                await asyncio.sleep(0.2)


async def restarted(server: Any) -> None:
    """Start a server whose main process was killed; its children notice at once and end."""
    await asyncio.sleep(1.0)
    # Where nothing reaps the dead process, its number still looks alive to a new server.
    for name in ("postmaster.pid", ".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
        (server.pgdata / name).unlink(missing_ok=True)
    await asyncio.to_thread(server.ensure_postgres_running)


class Proxy:
    """A TCP port in front of the server's Unix socket that can swallow every byte, as a partition does."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._open = asyncio.Event()
        self._open.set()
        self.port = 0
        self.serving: set[asyncio.Task[None]] = set()

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def swallow(self) -> None:
        self._open.clear()

    def pass_on(self) -> None:
        self._open.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        up_reader, up_writer = await asyncio.open_unix_connection(self._path)
        await asyncio.gather(self._pump(reader, up_writer), self._pump(up_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def proxy(postgres_database_url: str) -> AsyncIterator[Proxy]:
    """Return a running proxy in front of the shared server."""
    folder = make_url(postgres_database_url).query["host"]
    made = Proxy(f"{folder}/.s.PGSQL.5432")
    server = await made.start()
    yield made
    made.pass_on()
    server.close()
    await asyncio.gather(*made.serving)


async def test_a_partition_fails_closed_and_heals(
    postgres_database_url: str, proxy: Proxy, tenant: str
) -> None:
    url = make_url(postgres_database_url).set(query={}, host="127.0.0.1", port=proxy.port)
    caller = caller_of(tenant)
    async with Database(url.render_as_string()) as database, open_vault(database) as vault:
        await vault.store(caller, "talk", "Ada")
        proxy.swallow()
        await asyncio.sleep(1.1)
        await fails_closed(vault, caller)
        proxy.pass_on()
        await recovers(vault, caller)


async def test_open_connections_to_a_silent_database_are_not_waited_for_twice(
    postgres_database_url: str, proxy: Proxy, tenant: str
) -> None:
    url = make_url(postgres_database_url).set(query={}, host="127.0.0.1", port=proxy.port)

    async def waits(database: Database, *, open_s: float = 0) -> float:
        started = time.monotonic()
        with suppress(StoreUnavailableError):
            async with database.transaction(tenant, write=False) as tx:
                await asyncio.sleep(open_s)
                started = time.monotonic()
                await tx.execute(text("SELECT pg_sleep(0.05)"))
        return time.monotonic() - started

    async with Database(url.render_as_string()) as database:
        await asyncio.gather(*(waits(database) for _ in range(4)))
        midway = asyncio.create_task(waits(database, open_s=0.3))
        await asyncio.sleep(0.2)
        proxy.swallow()
        waited = await asyncio.gather(midway, *(waits(database) for _ in range(2)))
        assert all(1 < seconds < 3.5 for seconds in waited), waited
        proxy.pass_on()


async def test_a_locked_sqlite_file_fails_closed_and_recovers(sqlite_database_url: str, tenant: str) -> None:
    caller = caller_of(tenant)
    async with (
        Database(sqlite_database_url) as database,
        Database(sqlite_database_url) as other,
        open_vault(database) as vault,
    ):
        await vault.store(caller, "talk", "Ada")
        async with other.transaction(tenant):
            started = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                await vault.store(caller, "talk", "Bob")
            assert time.monotonic() - started < CLOSED_S
        await recovers(vault, caller)


@pytest.mark.parametrize(("factory", "locked"), [(SQLiteConnection, False), (sqlite3.Connection, True)])
def test_a_write_that_was_left_in_the_middle_gives_its_lock_back_with_the_connection(
    tmp_path: Path, factory: type[sqlite3.Connection], locked: bool
) -> None:
    file = str(tmp_path / "sluice.db")
    with sqlite3.connect(file, isolation_level=None) as other:
        other.execute("CREATE TABLE entry (name TEXT)")
        cut_off = sqlite3.connect(file, isolation_level=None, factory=factory)
        cut_off.execute("BEGIN IMMEDIATE")
        # A caller that was cancelled never fetches the row, and its traceback keeps the cursor.
        cursor = cut_off.execute("INSERT INTO entry VALUES ('Ada') RETURNING name")
        cut_off.close()
        other.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(sqlite3.OperationalError) if locked else nullcontext():
            other.execute("BEGIN IMMEDIATE")
        del cursor
    other.close()


async def test_a_caller_that_is_cancelled_at_any_moment_leaves_no_lock(
    sqlite_database_url: str, tenant: str
) -> None:
    async with Database(sqlite_database_url) as database:

        async def write() -> None:
            async with database.transaction(tenant) as tx:
                await tx.execute(text("UPDATE installation SET name = name"))

        for steps in range(40):
            cancelled = asyncio.create_task(write())
            for _ in range(steps):
                await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
            await write()


async def test_every_waiting_write_of_a_lost_commit_is_refused(own_server: Any, tenant: str) -> None:
    caller = caller_of(tenant)
    async with Database(own_server.get_uri()) as database, open_vault(database) as vault:
        await vault.store(caller, "talk", "Ada")
        await asyncio.to_thread(own_server.stop)
        started = time.monotonic()
        results = await asyncio.gather(
            *(vault.store(caller, f"talk {number}", "Bob") for number in range(300)), return_exceptions=True
        )
        assert {type(result) for result in results} == {StoreUnavailableError}
        assert time.monotonic() - started < CLOSED_S


async def test_a_look_at_the_schema_leaves_the_locks_of_a_serving_process_alone(
    tmp_path: Path, tenant: str
) -> None:
    file = tmp_path / "sluice.db"
    await asyncio.to_thread(upgrade, f"sqlite:///{file}")
    script = (
        "import sqlite3, sys; "
        "print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM entry').fetchone()[0])"
    )

    async def seen_from_outside() -> int:
        done = await asyncio.to_thread(
            subprocess.run, [sys.executable, "-c", script, file], check=True, capture_output=True
        )
        return int(done.stdout)

    async with Database(f"sqlite:///{file}") as database, open_vault(database) as vault:
        await vault.store(caller_of(tenant), "talk", "Ada")
        assert await asyncio.to_thread(is_head, f"sqlite:///{file}")
        # Without our locks this visitor would be the last one, and would clear away the file that we write to.
        assert await seen_from_outside() == 1
        await vault.store(caller_of(tenant), "talk", "Bob")
        assert await seen_from_outside() == 2
