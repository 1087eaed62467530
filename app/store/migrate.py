"""Bring a database to a revision of the schema; one process at a time, on both engines."""

import asyncio
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, event, text
from sqlalchemy.ext.asyncio import create_async_engine

import app
from app.core.errors import StoreUnavailableError
from app.store.dialects import CONNECT_S, async_url, prepare_file, refuse_pooler
from app.store.schema import metadata

PACKAGE = Path(app.__file__).resolve().parent
_ADVISORY_LOCK = 0x51_C1_CE_01
_TURN_WAIT_S = 900.0
_TURN_STEP_S = 0.1
_SQLITE_WAIT_S = 30.0
_OF_EXPRESSIONS = ("ix_audit_event_client_request_id", "ix_audit_event_astray")
"""Indexes that ``store.tables`` does not have: each engine has expressions of its own."""

# Alembic passes its environment to env.py through globals, so a process runs one migration at a time.
_alembic = threading.Lock()

T = TypeVar("T")


class MigrationsMissingError(RuntimeError):
    """The folder of migrations is missing, in the package and beside it."""


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the database at ``url`` to ``revision``; call it in a thread from asynchronous code."""
    with _alembic:
        with_connection(url, lambda connection: command.upgrade(_config(connection), revision))


def downgrade(url: str, revision: str) -> None:
    """Downgrade the database at ``url`` to ``revision`` (``base``: empty); the migrations' headers say what is lost."""
    with _alembic:
        with_connection(url, lambda connection: command.downgrade(_config(connection), revision))


def current(url: str) -> str | None:
    """Return the revision of the database at ``url``, or None when it is empty."""
    return with_connection(
        url, lambda connection: MigrationContext.configure(connection).get_current_revision(), lock=False
    )


@cache
def head() -> str:
    """Return the newest revision of this release; the folder of migrations is read once."""
    revision = ScriptDirectory.from_config(_config(None)).get_current_head()
    if revision is None:
        raise MigrationsMissingError("The folder of migrations is empty.")
    return revision


def is_head(url: str) -> bool:
    """Return whether the database at ``url`` has the newest schema."""
    return current(url) == head()


def drift(url: str) -> list[Any]:
    """Return the differences between the database at ``url`` and ``store.tables``; empty when there are none."""

    def compare(connection: Connection) -> list[Any]:
        options = {"include_object": included, "include_name": is_table_of_ours, "compare_type": True}
        with warnings.catch_warnings():
            # SQLAlchemy cannot read the indexes that ``included`` leaves out.
            warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based index")
            return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    return with_connection(url, compare, lock=False)


def included(_object: Any, name: str | None, kind: str, reflected: bool, _compare_to: Any) -> bool:
    """Leave out the monthly partitions, which come and go without migrations, and indexes of expressions."""
    partition = name is not None and name.startswith("audit_event_") and reflected
    return not (kind == "table" and partition) and name not in _OF_EXPRESSIONS


def is_table_of_ours(name: str | None, kind: str, _parents: Any) -> bool:
    """Leave out the search index of documents, which differs between the engines."""
    return not (kind == "table" and name is not None and name.startswith("document_search"))


def with_connection(url: str, work: Callable[[Connection], T], *, lock: bool = True) -> T:
    """Run ``work`` on a connection of its own and commit; with ``lock``, no other process migrates meanwhile."""
    parsed = async_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _with_sqlite(parsed.set(drivername="sqlite+pysqlite"), work)

    def locked(connection: Connection) -> T:
        if lock:
            _take_turn(connection)
        result = work(connection)
        connection.commit()
        # The session ends with this connection, and the advisory lock with it.
        return result

    async def run() -> T:
        engine = create_async_engine(
            parsed, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": CONNECT_S}
        )
        # A pooler would leave the lock and the limits of a migration on connections of others.
        refuse_pooler(engine, {"application_name": "sluice-migration"})
        try:
            async with AsyncExitStack() as stack:
                try:
                    connection = await stack.enter_async_context(engine.connect())
                except OSError:
                    raise StoreUnavailableError("The database does not answer.") from None
                return await connection.run_sync(locked)
        finally:
            await engine.dispose()

    return asyncio.run(run())


def _take_turn(connection: Connection) -> None:
    """Wait until no other process migrates; raise ``StoreUnavailableError`` after a quarter of an hour.

    Ask again and again: a statement that waits for the lock has a snapshot, for whose end a concurrent build of an
    index would wait in turn.
    """
    until = time.monotonic() + _TURN_WAIT_S
    while True:
        taken = connection.execute(text(f"SELECT pg_try_advisory_lock({_ADVISORY_LOCK})")).scalar_one()
        connection.commit()
        if taken:
            return
        if time.monotonic() > until:
            raise StoreUnavailableError("Another process is migrating the database and does not end.")
        time.sleep(_TURN_STEP_S)


def _with_sqlite(url: Any, work: Callable[[Connection], T]) -> T:
    prepare_file(url)
    engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": _SQLITE_WAIT_S})

    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    event.listen(engine, "connect", configure)
    # Include DDL in the transaction, and make a second process wait here until the first has migrated.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.connect() as connection:
            result = work(connection)
            connection.commit()
            return result
    finally:
        engine.dispose()


def _config(connection: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _folder() -> Path:
    """Return the migrations: in the package where it was installed from a wheel, else beside it in the checkout."""
    for place in (PACKAGE, PACKAGE.parent):
        if (place / "migrations" / "env.py").is_file():
            return place / "migrations"
    raise MigrationsMissingError("The migrations are missing: install the wheel, or work in a checkout.")
