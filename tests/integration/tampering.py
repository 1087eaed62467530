"""A record that was sealed, and its owner's access to the database: for tests of what the owner may try."""

# ruff: noqa: S608 - the statements are the tests' own

import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.services.audit.findings import Verification
from app.services.audit.verification import PART, LogVerifier
from app.store.database import Database
from app.store.dialects import async_url
from tests.conftest import PATIENT
from tests.integration.access_setup import Replica, replica_on
from tests.integration.sealing import seal_all

TENANTS = ("acme", "borealis")
LONG, SHORT = (3, 260, 5), (3, 9, 5)
"""Events of the first tenant before each of three checkpoints: with a whole tile, or with few."""
LOG = ("log_leaf", "log_tile", "log_head", "log_entry", "log_checkpoint", "log_writer")
TABLES = ("audit_event", *LOG, "log_count", "log_counted", "installation")
Do = Callable[[str], Awaitable[Any]]


class Tampered:
    """A sealed record, its owner's access to the database, and how to put everything back."""

    def __init__(self, replica: Replica, owner: Do, file: sqlite3.Connection | None, size: int) -> None:
        """Take the owner's connection to an SQLite database; None: it is one of PostgreSQL."""
        self.replica = replica
        self.do = owner
        self.postgres = file is None
        self.size = size
        self._file = file
        self._image = sqlite3.connect(":memory:")
        self.anchor = ""
        self.random = random.Random()

    async def verify(self, *, processes: int = 1, part: int = PART, **options: Any) -> Verification:
        verifier = LogVerifier(self.replica.audit, processes=processes, part=part)
        return await verifier.verify(**options)

    async def record(self, tenant: str, count: int) -> None:
        caller = Caller(tenant, "00000001", frozenset({Role.INVOKER}))
        for number in range(count):
            event = self.replica.audit.new_event(
                caller, "middleware.invoke", OUTCOME_OK, None, details={"number": number}
            )
            await self.replica.audit.record(event)

    async def seal(self) -> None:
        await seal_all(self.replica.audit)

    async def checkpoint(self) -> str:
        (row,) = await self.do("SELECT note FROM log_checkpoint ORDER BY size DESC LIMIT 1")
        return str(row[0])

    async def event_of(self, tenant: str) -> str:
        """Return a condition that chooses one sealed event at random, the newest excepted."""
        rows = await self.do(f"SELECT id FROM audit_event WHERE tenant = '{tenant}' ORDER BY id")
        return f"'{self.random.choice(rows[:-1])[0]}'"

    async def columns(self) -> list[str]:
        """Return the names of the columns of events."""
        rows = await self.do(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'audit_event'"
            if self.postgres
            else "SELECT name FROM pragma_table_info('audit_event')"
        )
        return [row[0] for row in rows]

    async def copy(self) -> None:
        for table in TABLES:
            await self.do(f"DROP TABLE IF EXISTS copy_{table}")
            await self.do(f"CREATE TABLE copy_{table} AS SELECT * FROM {table}")

    async def restore(self) -> None:
        """Put everything back: an SQLite file as a whole, which takes a twentieth of the time."""
        if self._file is None:
            for table in TABLES:
                await self.do(f"DELETE FROM {table}")
                await self.do(f"INSERT INTO {table} SELECT * FROM copy_{table}")
        elif not self._image.execute("SELECT 1 FROM sqlite_master").fetchone():
            self._file.backup(self._image)
        else:
            self._image.backup(self._file)
        self.restart()

    def restart(self) -> None:
        """Make the process number its events as if it had just started."""
        self.replica.writer._writers.free.clear()


@asynccontextmanager
async def tampered_on(url: str, counts: Sequence[int] = LONG) -> AsyncIterator[Tampered]:
    """Return a record that was sealed three times, with an anchor of the second checkpoint."""
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url, patience=PATIENT))
        do, file = await stack.enter_async_context(owned_on(url))
        replica = await stack.enter_async_context(replica_on(database))
        tampered = Tampered(replica, do, file, sum(counts))
        if not await do("SELECT 1 FROM log_head"):
            for count in counts:
                for tenant in TENANTS:
                    await tampered.record(tenant, count if tenant == TENANTS[0] else 3)
                await tampered.seal()
            if tampered.postgres:
                await tampered.copy()
        await tampered.restore()
        tampered.anchor = await tampered.checkpoint()
        yield tampered
        await tampered.restore()


@asynccontextmanager
async def owned_on(url: str) -> AsyncIterator[tuple[Do, sqlite3.Connection | None]]:
    """Return what runs statements as the database's owner, for an SQLite file with the connection."""
    path = make_url(url).database
    if url.startswith("sqlite") and path is not None:
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA synchronous = OFF")

            async def run(statement: str) -> Any:
                return file.execute(statement).fetchall()

            yield run, file
        return
    engine = create_async_engine(async_url(url), poolclass=NullPool)

    async def do(statement: str) -> Any:
        async with engine.begin() as owner:
            result = await owner.exec_driver_sql(statement)
            return result.all() if result.returns_rows else []

    try:
        yield do, None
    finally:
        await engine.dispose()
