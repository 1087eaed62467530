"""Connect to the two databases: addresses, time-outs, connection settings and durability checks."""

import asyncio
import json
import logging
import os
import socket
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy import URL, ExceptionContext, event, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

CONNECT_S = 2.0
_DECODE = json.JSONDecoder().raw_decode
LOCK_S = 1.0
TCP_USER_TIMEOUT_MS = 2000
WRITE = "sluice_write"
"""Execution option of a transaction that will write: SQLite takes its one write lock when it begins."""

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}


def _spelled(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


# Values that no column type has converted are stored as the types of our columns store them.
sqlite3.register_adapter(datetime, _spelled)
sqlite3.register_adapter(UUID, attrgetter("hex"))


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for the database, in seconds, before a request is refused.

    ``connect_s``: for a new connection; ``statement_s``: for one statement or one queued write; ``pool_s``: for a
    free connection.
    """

    connect_s: float = CONNECT_S
    statement_s: float = 3.0
    pool_s: float = 0.5


USUAL = Patience()
log = logging.getLogger("sluice.store")


POOLED = (
    "A connection pooler answers where PostgreSQL itself must: set SLUICE_DATABASE__DIRECT_URL to the address of the "
    "server behind it. SLUICE_DATABASE__URL may then name the pooler."
)
_UNNAMED: dict[str, Any] = {
    "statement_cache_size": 0,
    "prepared_statement_cache_size": 0,
    "prepared_statement_name_func": lambda: "",
}
"""A named statement stays on the connection of the server that it was prepared on, where nobody closes it."""


class UnsafeDatabaseError(RuntimeError):
    """The database's settings could lose or leak data; the service must not start on it."""


def async_url(text_url: str) -> URL:
    """Return the address with the asynchronous driver; ``sqlite:///…`` and ``postgresql://…`` need not name one."""
    url = make_url(text_url)
    backend = url.drivername.partition("+")[0]
    if backend not in _DRIVERS:
        raise UnsafeDatabaseError(f"The database {backend} is not known; use sqlite:/// or postgresql://.")
    if backend == "sqlite" and (not url.database or ":memory:" in url.database):
        raise UnsafeDatabaseError("An SQLite database needs a file, as in sqlite:///var/sluice.db.")
    url = url.set(drivername=_DRIVERS[backend])
    if "sslmode" in url.query:
        mode = url.query["sslmode"]
        url = url.difference_update_query(["sslmode"]).update_query_dict({"ssl": mode})
    return url


def address_of(text_url: str) -> str:
    """Return where the database at ``text_url`` is, without credentials or options."""
    url = async_url(text_url)
    if url.get_backend_name() == "sqlite":
        return f"sqlite:{Path(str(url.database)).resolve()}"
    return f"postgresql:{url.host or url.query.get('host') or 'localhost'}:{url.port or 5432}/{url.database}"


def prepare_file(url: URL) -> None:
    """Create an SQLite file and its folder, readable by the owner only; keep what exists.

    Do not even open an existing file: closing it would drop every lock that this process's connections have on it,
    and another process could then delete the write-ahead log of a running one.
    """
    path = Path(str(url.database))
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


class SQLiteConnection(sqlite3.Connection):
    """A connection that releases its locks when it is closed, whatever was left unfinished on it.

    SQLite keeps a closed connection alive while one of its statements has rows left. That is so for a statement whose
    caller was cancelled, until its cursor is collected: no writer could begin meanwhile.
    """

    def close(self) -> None:
        """Roll back an open transaction, then close."""
        try:
            if self.in_transaction:
                self.rollback()
        except sqlite3.Error:
            # Close even a connection that cannot roll back.
            log.warning("rollback failed while closing")
        finally:
            super().close()


def _document_in(stored: str) -> Any:
    """Return the JSON document in ``stored``: as a rule it has no space around it, which takes a third of the time."""
    try:
        value, end = _DECODE(stored)
    except json.JSONDecodeError:
        return json.loads(stored)
    return value if end == len(stored) else json.loads(stored)


def make_engine(
    url: URL, pool_size: int, patience: Patience, *, pooled: bool = False, overflow: int = 0
) -> AsyncEngine:
    """Return an engine whose connections have the time-outs and settings of their dialect.

    ``pooled``: a connection pooler in transaction mode is between. Its connections name no prepared statements, and
    each transaction sets its own limits, see ``limits``. ``overflow`` connections more are closed after use.
    """
    common: dict[str, Any] = {
        "pool_size": pool_size,
        "max_overflow": overflow,
        "hide_parameters": True,
        "json_deserializer": _document_in,
    }
    if url.get_backend_name() == "sqlite":
        prepare_file(url)
        # Requests queue in memory for SQLite's one write lock, so the pool is never the bottleneck.
        engine = create_async_engine(
            url,
            connect_args={"timeout": LOCK_S * 2, "factory": SQLiteConnection},
            pool_timeout=patience.statement_s,
            # Closing rolls an open transaction back; a second rollback would be one more trip to the thread.
            pool_reset_on_return=None,
            **common,
        )
        event.listen(engine.sync_engine, "connect", _configure_sqlite)
        event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine
    engine = create_async_engine(
        url,
        connect_args={
            "timeout": patience.connect_s,
            "command_timeout": patience.statement_s,
            "server_settings": {"application_name": "sluice"},
            **(_UNNAMED if pooled else {}),
        },
        pool_timeout=patience.pool_s,
        **common,
    )
    event.listen(engine.sync_engine, "connect", _limit_silence)
    if not pooled:
        settings = {**limits(patience), "tcp_user_timeout": str(TCP_USER_TIMEOUT_MS)}
        refuse_pooler(engine, settings)
    event.listen(engine.sync_engine, "handle_error", _cut_silent)
    return engine


def limits(patience: Patience) -> dict[str, str]:
    """Return the settings that bound a statement; none goes into the start-up packet, which poolers refuse."""
    return {
        "statement_timeout": f"{patience.statement_s * 1000:.0f}",
        "lock_timeout": f"{LOCK_S * 1000:.0f}",
        "idle_in_transaction_session_timeout": "10000",
        "jit": "off",
    }


def set_locally(settings: Mapping[str, str]) -> str:
    """Return what a statement of PostgreSQL selects to set ``settings`` until its transaction ends."""
    return ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())


async def assume(tx: AsyncConnection, role: str, tenant: str, settings: Mapping[str, str]) -> None:
    """Act as ``role`` for ``tenant``, within ``settings``, until the transaction of PostgreSQL ends."""
    assumed = "SELECT set_config('role', $1, true), set_config('app.tenant', $2, true)"
    statement = f"{assumed}, {set_locally(settings)}" if settings else assumed
    await tx.exec_driver_sql(statement, (role, tenant))


def refuse_pooler(engine: AsyncEngine, settings: Mapping[str, str]) -> None:
    """Set ``settings`` on each new connection, or raise ``UnsafeDatabaseError`` where a pooler is between."""

    def on_connect(connection: Any, _record: Any) -> None:
        connection.run_async(partial(settle, settings=settings))

    # Ahead of SQLAlchemy, which prepares statements that a pooler's connections may have already.
    event.listen(engine.sync_engine, "connect", on_connect, insert=True)


async def settle(driver_connection: Any, settings: Mapping[str, str]) -> None:
    """Set ``settings`` on a new connection of asyncpg, in one round trip.

    Raises ``UnsafeDatabaseError`` where a pooler is between, before anything is set on a server's connection that is
    not ours alone: a pooler gives its clients keys of its own to cancel with, and with them another process id.
    """
    values = ", ".join(f"set_config('{name}', '{value}', false)" for name, value in settings.items())
    process = driver_connection.get_server_pid()
    if await driver_connection.execute(f"SELECT {values} WHERE pg_backend_pid() = {process}") != "SELECT 1":
        raise UnsafeDatabaseError(POOLED)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "secure_delete = ON",
        "foreign_keys = ON",
        f"busy_timeout = {LOCK_S * 2000:.0f}",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Any) -> None:
    # A transaction that reads first and writes later could fail in the middle, so a writer locks at the start.
    write = connection.get_execution_options().get(WRITE, True)
    statement = "BEGIN IMMEDIATE" if write else "BEGIN"
    connection.connection.dbapi_connection.run_async(lambda raw: raw.execute_fetchall(statement))


def _limit_silence(connection: Any, _record: Any) -> None:
    """Make the kernel give up on a peer that no longer acknowledges; statement_timeout cannot see that."""
    limit_silence(connection.driver_connection)


def _cut_silent(context: ExceptionContext) -> None:
    """Cut a connection whose statement got no answer: SQLAlchemy would close it politely and wait for the reply."""
    if context.connection is not None and isinstance(
        context.original_exception, TimeoutError | asyncio.CancelledError
    ):
        driver = context.connection.connection.driver_connection
        if driver is not None:
            driver.terminate()


def limit_silence(driver_connection: Any) -> None:
    """Set the TCP user time-out on the socket of an asyncpg connection, where the platform has one."""
    transport = getattr(driver_connection, "_transport", None)
    peer = transport.get_extra_info("socket") if transport is not None else None
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if peer is not None and option is not None and peer.family != socket.AF_UNIX:
        peer.setsockopt(socket.IPPROTO_TCP, option, TCP_USER_TIMEOUT_MS)


async def check_durability(tx: AsyncConnection, *, production: bool) -> None:
    """Raise ``UnsafeDatabaseError`` where an acknowledged commit could be lost or isolation bypassed."""
    if tx.dialect.name == "sqlite":
        journal = (await tx.execute(text("PRAGMA journal_mode"))).scalar_one()
        synchronous = (await tx.execute(text("PRAGMA synchronous"))).scalar_one()
        if journal != "wal" or int(synchronous) < 2:  # noqa: PLR2004 - 2 is FULL
            raise UnsafeDatabaseError("SQLite must run with journal_mode=WAL and synchronous=FULL.")
        return
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        if (await tx.execute(text(f"SHOW {setting}"))).scalar_one() == "off":
            raise UnsafeDatabaseError(
                f"PostgreSQL runs with {setting}=off: a crash would give one person's data to another. "
                f"Set {setting}=on."
            )
    refused = await tx.execute(
        text(
            "SELECT rolname FROM pg_roles "
            "WHERE rolname IN ('sluice_app', 'sluice_system', 'sluice_batch', 'sluice_purge') "
            "AND NOT pg_has_role(session_user, oid, 'SET') ORDER BY rolname"
        )
    )
    if roles := refused.scalars().all():
        raise UnsafeDatabaseError(
            f"The service's database login may not take the roles {', '.join(roles)}: grant them to it."
        )
    barred = await tx.execute(
        text(
            "SELECT proname FROM pg_proc WHERE proname IN ('sluice_read_batch', 'sluice_store_batch') "
            "AND NOT has_function_privilege(session_user, oid, 'EXECUTE') ORDER BY proname"
        )
    )
    if functions := barred.scalars().all():
        raise UnsafeDatabaseError(
            "The service's database login does not inherit the rights of sluice_app, so it needs one of its own: "
            f"GRANT EXECUTE ON FUNCTION {', '.join(functions)} to it."
        )
    if production:
        login = (
            await tx.execute(
                text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user")
            )
        ).scalar_one()
        if login:
            raise UnsafeDatabaseError(
                "In production the service's database login must be neither superuser nor BYPASSRLS: "
                "row-level security would not hold for it."
            )


IDENTITY = (
    "SELECT pg_postmaster_start_time(), "
    "(SELECT oid FROM pg_database WHERE datname = current_database()) AS database"
)


async def identity_of(tx: AsyncConnection) -> tuple[Any, ...]:
    """Return what tells apart the databases that PostgreSQL connections may reach, and the run of their server."""
    return tuple((await tx.exec_driver_sql(IDENTITY)).one())


async def check_same(tx: AsyncConnection, direct: AsyncConnection) -> None:
    """Raise ``UnsafeDatabaseError`` where the pooler's and the server's address lead to different databases."""
    if await identity_of(tx) != await identity_of(direct):
        raise UnsafeDatabaseError(
            "SLUICE_DATABASE__DIRECT_URL names another database than SLUICE_DATABASE__URL: locks and announcements "
            "would not reach this one."
        )
