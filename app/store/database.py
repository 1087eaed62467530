"""Open transactions, the only access to the database; its failures become one error without content."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.deadlines import WaitLimit
from app.core.errors import StoreUnavailableError
from app.core.events import Changed
from app.store.afterwards import AFTERWARDS, ANNOUNCED
from app.store.dialects import (
    USUAL,
    WRITE,
    Patience,
    address_of,
    assume,
    async_url,
    check_durability,
    check_same,
    limits,
    make_engine,
    set_locally,
)
from app.store.failures import FAILURES, ContentionError, failure_of
from app.store.sqlite_file import SQLiteFile
from app.store.turns import Turn, rolled_back, turns_of

APP_ROLE = "sluice_app"
"""The role of every request: it sees the rows of one tenant and owns nothing."""

SYSTEM_ROLE = "sluice_system"
"""The role of work for all tenants (authentication, purge, re-wrap), reached by ``system_transaction`` only."""

PURGE_ROLE = "sluice_purge"
"""The role that may call one function, which deletes events of the record whose retention is over, and nothing else."""

ATTEMPTS = 5

_READINESS_S = 1.0
_MOST_DIRECT = 10
"""Connections past a pooler: one stays open, others last as long as a lock of a job."""
_DIED_IDLE_S = 0.5
"""A connection that died while idle fails at once; a slower failure means that the database does not answer."""
_REPLACED = (
    "The database file was deleted or replaced while the service runs, so nothing is read or stored: put the file "
    "back or restore it, then restart the service."
)

_PING_EMBEDDED = (
    "INSERT INTO installation (name, value) VALUES ('readiness', :written) "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value"
)
_PING = _PING_EMBEDDED.replace(":written", "CAST(:written AS jsonb)")

log = logging.getLogger("sluice.store")
T = TypeVar("T")


class Database:
    """One database, SQLite or PostgreSQL; all tasks of one event loop may share it."""

    def __init__(
        self, url: str, *, pool_size: int = 8, patience: Patience = USUAL, direct_url: str | None = None
    ) -> None:
        """Prepare connections; ``direct_url`` is the server's own address where ``url`` is a pooler's."""
        self.url = async_url(url)
        self.address = address_of(direct_url or url)
        self.patience = patience
        self.pool_size = pool_size
        self.dialect = self.url.get_backend_name()
        self.direct_url, self.pooled = direct_url, direct_url is not None
        """Whether a pooler lends a connection of the server for one transaction at a time."""
        self._engine = make_engine(self.url, pool_size, patience, pooled=self.pooled)
        self._direct, self._limits = self._engine, {}
        if direct_url is not None:
            self._direct = make_engine(async_url(direct_url), 1, patience, overflow=_MOST_DIRECT - 1)
            self._limits = limits(patience)
        self._writing = asyncio.Lock()
        self._listeners: list[Callable[[Changed], None]] = []
        self._reserved: tuple[AsyncConnection, Any] | None = None
        self._pinged = 0.0
        self._file = SQLiteFile(Path(str(self.url.database))) if self.embedded else None
        self._shut: str | None = None
        self.written = 0
        """How often this process has committed a write."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    @property
    def embedded(self) -> bool:
        """Return whether this is SQLite: one process, one writer at a time."""
        return self.dialect == "sqlite"

    @asynccontextmanager
    async def transaction(self, tenant: str, *, write: bool = True) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that sees the rows of ``tenant`` only; commit on success, roll back on error.

        ``write=False`` avoids SQLite's write lock; a write inside then fails.
        """
        if not tenant:
            raise ValueError("A transaction needs a tenant.")
        async with self._begin(APP_ROLE, tenant, write=write) as tx:
            yield tx

    @asynccontextmanager
    async def system_transaction(
        self, *, write: bool = True, quiet: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that sees all tenants: to look up a key, purge, re-wrap or manage tenants.

        ``quiet``: it stores nothing that a restore could lose, and ``written`` does not count it.
        """
        async with self._begin(SYSTEM_ROLE, "", write=write, quiet=quiet) as tx:
            yield tx

    @asynccontextmanager
    async def purging_transaction(self) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that may call the function that deletes old events; SQLite has no such roles."""
        async with self._begin(PURGE_ROLE, "", write=True, quiet=True) as tx:
            yield tx

    def shut(self, reason: str) -> None:
        """Refuse every transaction from now on, for ``reason`` (one sentence without content); only a restart helps."""
        self._shut = reason

    def check_whole(self) -> None:
        """Raise ``StoreUnavailableError`` where the database was shut, or its file was deleted or replaced."""
        if self._shut is None and self._file is not None and not self._file.whole:
            log.error(_REPLACED)
            self._shut = _REPLACED
        if self._shut is not None:
            raise StoreUnavailableError(self._shut)

    async def run_alone(self, statement: str, parameters: Sequence[Any], *, write: bool = True) -> list[Any]:
        """Run one statement that is a transaction by itself; what it wrote is durable when this returns its rows.

        It takes one round trip (three through a pooler), on a reserved connection. On PostgreSQL the login itself runs
        it: the statement must be a function that takes a role (see docs/decisions).
        """
        try:
            await self._wait_to_write()
            try:
                self.check_whole()
                rows = await self._fetch_alone(statement, parameters)
                self.written += write
                self.check_whole()
                return rows
            finally:
                self._writing.release()
        except FAILURES as error:
            raise failure_of(error) from None

    @asynccontextmanager
    async def turns(self) -> AsyncIterator[Turn]:
        """Lend the reserved connection of SQLite to one writer, who may run functions in its thread.

        Who begins a transaction there commits it, too; where that fails it is rolled back.
        """
        try:
            await self._wait_to_write()
            try:
                self.check_whole()
                turn = turns_of(await self._reserve())
                try:
                    yield turn
                except BaseException as error:
                    if not isinstance(error, Exception) or not await rolled_back(turn):
                        await self._release(broken=True)
                    raise
                self.written += 1
                self.check_whole()
            finally:
                self._writing.release()
        except FAILURES as error:
            raise failure_of(error) from None

    async def _fetch_alone(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        try:
            driver = await self._reserve()
            if self.embedded:
                return list(await driver.execute_fetchall(statement, parameters))
            if not self.pooled:
                return list(await driver.fetch(statement, *parameters))
            await driver.execute(f"BEGIN; SELECT {set_locally(self._limits)}")
            rows = list(await driver.fetch(statement, *parameters))
            await driver.execute("COMMIT")
            return rows
        except BaseException:
            await self._release()
            raise

    async def select(self, tenant: str, statement: str, parameters: Sequence[Any]) -> list[Any]:
        """Return the rows of one query, written for the dialect in use, that sees the rows of ``tenant`` only.

        On SQLite, where the statement must name the tenant itself, this takes one round trip to a connection's thread;
        a transaction takes three.
        """
        if not self.embedded:
            async with self.transaction(tenant, write=False) as tx:
                return list((await tx.exec_driver_sql(statement, tuple(parameters))).all())
        try:
            self.check_whole()
            async with self._engine.connect() as connection:
                driver: Any = (await connection.get_raw_connection()).driver_connection
                rows: list[Any] = list(await driver.execute_fetchall(statement, parameters))
            self.check_whole()
            return rows
        except FAILURES as error:
            raise failure_of(error) from None

    async def _reserve(self) -> Any:
        """Return the driver's side of the reserved connection; one that died while idle is replaced."""
        if self._reserved is not None and not self.embedded and self._reserved[1].is_closed():
            await self._release()
        while self._reserved is None:
            connection = await self._engine.connect().start()
            driver = (await connection.get_raw_connection()).driver_connection
            if driver is not None and (self.embedded or not driver.is_closed()):
                self._reserved = connection, driver
            else:
                await connection.invalidate()
                await connection.close()
        return self._reserved[1]

    async def _release(self, *, broken: bool = False) -> None:
        ended, self._reserved = self._reserved, None
        if ended is None:
            return
        if not self.embedded:
            # It may still wait for the answer to a statement that was given up.
            ended[1].terminate()
            await ended[0].invalidate()
        await _abandon(ended[0], broken=broken)

    async def retried(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run ``work``, up to five times with jitter while it fails only by contention."""
        for attempt in range(1, ATTEMPTS):
            try:
                return await work()
            except ContentionError:
                await asyncio.sleep(random.uniform(0.001, 0.01) * 2**attempt)  # noqa: S311 - no secret
        return await work()

    async def check(self, *, production: bool = False) -> None:
        """Raise ``UnsafeDatabaseError`` unless the database is durable and, in production, isolated."""
        async with self.connection() as tx:
            await check_durability(tx, production=production)
            if self.pooled:
                async with self.session() as direct:
                    await check_same(tx, direct)

    async def ping(self) -> None:
        """Write the time and read it back, at most once a second, or raise ``StoreUnavailableError``."""
        self.check_whole()
        if time.monotonic() - self._pinged < _READINESS_S:
            return
        written = str(time.time_ns())
        async with self.system_transaction(quiet=True) as tx:
            stored = await tx.execute(text(_PING_EMBEDDED if self.embedded else _PING), {"written": written})
            if str(stored.scalar_one()) != written:
                raise StoreUnavailableError("The database did not store what was written.")
        self._pinged = time.monotonic()

    async def revision(self) -> str | None:
        """Return the revision of the schema, or None where there is none; the login must be able to read it."""
        async with self.connection() as tx:
            stored = await tx.execute(text("SELECT version_num FROM alembic_version"))
            revision: str | None = stored.scalar_one_or_none()
            return revision

    @asynccontextmanager
    async def connection(self, *, write: bool = False) -> AsyncIterator[AsyncConnection]:
        """Open a connection as the login itself, without a role; only for checks of settings and schema."""
        self.check_whole()
        try:
            async with self._engine.connect() as tx:
                await tx.execution_options(**{WRITE: write})
                if self._limits:
                    await tx.exec_driver_sql(f"SELECT {set_locally(self._limits)}")
                yield tx
        except FAILURES as error:
            raise failure_of(error) from None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncConnection]:
        """Open a connection to the server itself, as the login: for locks that outlive a transaction."""
        self.check_whole()
        try:
            async with self._direct.connect() as tx:
                yield tx
        except FAILURES as error:
            raise failure_of(error) from None

    async def close(self) -> None:
        """Close every connection; an open transaction is rolled back."""
        await self._release()
        await self._engine.dispose()
        await self._direct.dispose()
        if self._file is not None:
            self._file.close()

    def driver_arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the driver's own ``connect`` to the server itself (for ``store.changes``)."""
        arguments, options = self._direct.dialect.create_connect_args(self._direct.url)
        return list(arguments), dict(options)

    def hear(self, listener: Callable[[Changed], None]) -> None:
        """Call ``listener`` for each change that this process commits (for ``store.changes``)."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def _begin(
        self, role: str, tenant: str, *, write: bool, quiet: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        try:
            async with AsyncExitStack() as stack:
                if write and self.embedded:
                    await self._wait_to_write()
                    stack.callback(self._writing.release)
                self.check_whole()
                tx = await self._connect(role, tenant, write=write)
                try:
                    yield tx
                    await tx.commit()
                    self.written += write and not quiet
                    # What was read, and what was committed, belongs to a file that a restart would not find.
                    self.check_whole()
                except BaseException:
                    await _abandon(tx)
                    raise
                announced = tx.info.pop(ANNOUNCED, [])
                for shared in tx.info.pop(AFTERWARDS, {}).values():
                    shared.stored()
                await tx.close()
        except FAILURES as error:
            raise failure_of(error) from None
        self._publish(announced)

    async def _wait_to_write(self) -> None:
        with WaitLimit.after(self.patience.statement_s):
            await self._writing.acquire()

    async def _connect(self, role: str, tenant: str, *, write: bool) -> AsyncConnection:
        """Check out a connection and begin; a connection that died while idle is replaced once."""
        started = time.monotonic()
        try:
            return await self._enter(role, tenant, write=write)
        except DBAPIError as error:
            if not error.connection_invalidated or time.monotonic() - started > _DIED_IDLE_S:
                raise
        return await self._enter(role, tenant, write=write)

    async def _enter(self, role: str, tenant: str, *, write: bool) -> AsyncConnection:
        tx = self._engine.connect()
        await tx.start()
        try:
            await tx.execution_options(**{WRITE: write})
            if not self.embedded:
                async with asyncio.timeout(self.patience.connect_s):
                    await assume(tx, role, tenant, self._limits)
            else:
                await tx.begin()
            tx.info.pop(ANNOUNCED, None)
            tx.info.pop(AFTERWARDS, None)
        except BaseException:
            # A caller that was cancelled may have begun a transaction that the pool would know nothing of.
            await _abandon(tx, broken=True)
            raise
        return tx

    def _publish(self, announced: list[Changed]) -> None:
        for changed in announced:
            for listener in list(self._listeners):
                listener(changed)


async def _abandon(tx: AsyncConnection, *, broken: bool = False) -> None:
    """Roll back and close; a connection whose peer does not answer is already cut (``store.dialects``).

    ``broken``: nobody uses the connection again.
    """
    try:
        if broken and not tx.invalidated:
            await tx.invalidate()
        await tx.close()
    except (SQLAlchemyError, OSError, TimeoutError) as second:
        log.warning("rollback failed: %s", type(second).__name__)
