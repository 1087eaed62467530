"""Handle many rows in one statement: parameter arrays on PostgreSQL, one executemany on SQLite."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import JSON, BigInteger, DateTime, LargeBinary, Table, Uuid
from sqlalchemy.ext.asyncio import AsyncConnection

_CHUNK = 4000

_ARRAYS: tuple[tuple[type[Any], str], ...] = (
    (JSON, "jsonb[]"),
    (BigInteger, "bigint[]"),
    (LargeBinary, "bytea[]"),
    (Uuid, "uuid[]"),
    (DateTime, "timestamptz[]"),
)


async def fetch(tx: AsyncConnection, statement: str, parameters: Sequence[Any]) -> list[Any]:
    """Run one statement, written for the dialect in use, and return its rows."""
    if tx.dialect.name == "postgresql":
        return list((await tx.exec_driver_sql(statement, tuple(parameters))).all())
    # This takes one round trip to the connection's thread; a cursor takes four.
    return list(await (await _sqlite(tx)).execute_fetchall(statement, parameters))


async def run_many(tx: AsyncConnection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run one statement of SQLite for each of ``rows``."""
    await (await _sqlite(tx)).executemany(statement, rows)


async def insert_rows(
    tx: AsyncConnection,
    table: Table,
    columns: tuple[str, ...],
    rows: Sequence[tuple[Any, ...]],
    *,
    after: str = "",
) -> Sequence[Any]:
    """Insert ``rows``, with JSON as text. ``after`` (such as ON CONFLICT … RETURNING …) is for PostgreSQL only."""
    if not rows:
        return []
    if tx.dialect.name == "postgresql":
        statement = _unnest(table, columns) + after
        result = await tx.exec_driver_sql(
            statement, tuple(list(column) for column in zip(*rows, strict=True))
        )
        return result.all() if "RETURNING" in after else []
    await run_many(tx, _values(table, columns), rows)
    return []


async def rows_matching(
    tx: AsyncConnection,
    select: str,
    names: tuple[tuple[str, str], ...],
    wanted: Sequence[tuple[Any, ...]],
    *extra: Any,
) -> list[Any]:
    """Run ``select`` joined to a table ``q`` of ``wanted`` rows and return the resulting rows.

    ``names`` are the columns of ``q`` with their PostgreSQL types; ``extra`` are further parameters. ``{q}`` in
    ``select`` stands for the table, ``{0}``, ``{1}`` … for the extra parameters, each used once and in order,
    after ``{q}``.
    """
    rows: list[Any] = []
    for start in range(0, len(wanted), _CHUNK):
        part = wanted[start : start + _CHUNK]
        if tx.dialect.name == "postgresql":
            arrays = ", ".join(f"${at}::{kind}[]" for at, (_, kind) in enumerate(names, 1))
            table = f"unnest({arrays}) AS q({', '.join(name for name, _ in names)})"
            marks = [f"${len(names) + at}" for at in range(1, len(extra) + 1)]
            values: list[Any] = [list(column) for column in zip(*part, strict=True)]
            parameters = (*values, *extra)
        else:
            table, parameters = _rows_as_table(names, part)
            marks, parameters = ["?"] * len(extra), (*parameters, *extra)
        rows.extend(await fetch(tx, select.format(*marks, q=table), parameters))
    return rows


def rows_matching_here(
    connection: sqlite3.Connection,
    select: str,
    names: tuple[tuple[str, str], ...],
    wanted: Sequence[tuple[Any, ...]],
) -> list[Any]:
    """Do the same on a connection of SQLite itself, in its thread."""
    rows: list[Any] = []
    for start in range(0, len(wanted), _CHUNK):
        table, parameters = _rows_as_table(names, wanted[start : start + _CHUNK])
        rows += connection.execute(select.format(q=table), parameters).fetchall()
    return rows


def insert_here(
    connection: sqlite3.Connection, table: Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert ``rows``, with JSON as text, on a connection of SQLite itself, in its thread."""
    if rows:
        connection.executemany(_values(table, columns), rows).close()


def moment(value: datetime | str | None) -> datetime | None:
    """Return a moment stored by either engine, in UTC."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value).replace(tzinfo=UTC)


def document(value: Any) -> Any:
    """Parse stored JSON that no column type has read: SQLite returns text, PostgreSQL's driver the value."""
    return json.loads(value) if isinstance(value, str) else value


def _rows_as_table(
    names: tuple[tuple[str, str], ...], part: Sequence[tuple[Any, ...]]
) -> tuple[str, tuple[Any, ...]]:
    """Return a table ``q`` of these rows, as SQLite knows it, and its parameters."""
    group = f"({', '.join('?' * len(names))})"
    fields = ", ".join(f"column{at} AS {name}" for at, (name, _) in enumerate(names, 1))
    table = f"(SELECT {fields} FROM (VALUES {', '.join([group] * len(part))})) AS q"  # noqa: S608 - our own names
    return table, tuple(value for row in part for value in row)


@cache
def _unnest(table: Table, columns: tuple[str, ...]) -> str:
    arrays = ", ".join(f"${at}::{_array(table, name)}" for at, name in enumerate(columns, 1))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"  # noqa: S608


@cache
def _values(table: Table, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - our own names


def _array(table: Table, name: str) -> str:
    kind = table.c[name].type
    implementation = getattr(kind, "impl_instance", kind)
    return next(
        (array for column_type, array in _ARRAYS if isinstance(implementation, column_type)), "text[]"
    )


async def _sqlite(tx: AsyncConnection) -> Any:
    return (await tx.get_raw_connection()).driver_connection
