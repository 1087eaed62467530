"""What stands in a tenant's log, as raw rows of the driver: for whoever makes hashes of millions of them."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import JSON
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.audit.log import Progress
from app.store.bulk import fetch
from app.store.tables import WRITTEN_BY, audit_event

_EVENT: Final = tuple(column.name for column in audit_event.columns if column.name != WRITTEN_BY)
COLUMNS: Final = ("position", "event", "leaf_at", *_EVENT)
"""The position, the id of the event and when it happened, as the log has them; then the event as it is stored."""

_DOCUMENTS: Final = tuple(column.name for column in audit_event.columns if isinstance(column.type, JSON))
_HEADS: Final = (
    "SELECT size, position, root FROM log_entry WHERE tenant = {} AND position < {} "
    "AND (size, position) > ({}, {}) ORDER BY size, position LIMIT {}"
)


_STANDS: Final = "l.tenant = e.tenant AND l.event = e.id AND l.at = e.at AND l.position >= 0"
_TENANTS: Final = """
    WITH RECURSIVE named (tenant) AS (
        SELECT min(tenant) FROM audit_event WHERE tenant > {}
        UNION ALL
        SELECT (SELECT min(e.tenant) FROM audit_event e WHERE e.tenant > named.tenant) FROM named
        WHERE named.tenant IS NOT NULL
    ) SELECT tenant FROM named WHERE tenant IS NOT NULL LIMIT {}
"""
"""Goes from tenant to tenant in the index, past all their events."""


class LoggedHead(NamedTuple):
    """A head of a tenant in the log of heads: its size, where it stands, and its root."""

    size: int
    position: int
    root: bytes


class RecordPage(NamedTuple):
    """Of a page of a tenant's events: the ids of its ends, how many are not in the log, and whether more follow."""

    first: str
    last: str
    loose: int
    more: bool


async def list_standing(
    tx: AsyncConnection, tenant: str, start: int, end: int, limit: int
) -> Sequence[Sequence[Any]]:
    """Return what stands from ``start`` to below ``end``, in order, as `COLUMNS`.

    The columns of an event that is not stored are None. JSON is text; SQLite's moments and ids are text, too.
    """
    return await fetch(tx, _standing(tx.dialect.name), (tenant, start, end, limit))


async def list_logged_heads(
    tx: AsyncConnection, tenant: str, behind: LoggedHead, within: int, limit: int
) -> list[LoggedHead]:
    """Return a tenant's heads behind one, by size, among the first ``within`` entries of the log of heads."""
    marks = [f"${at}" if tx.dialect.name == "postgresql" else "?" for at in range(1, 6)]
    asked = (tenant, within, behind.size, behind.position, limit)
    return [LoggedHead(*row) for row in await fetch(tx, _HEADS.format(*marks), asked)]


async def page_of_record(
    tx: AsyncConnection, tenant: str, first: str | None, limit: int
) -> RecordPage | None:
    """Return what ``limit`` events of a tenant are like from an id on (None: from the lowest); None where none is."""
    is_postgresql = tx.dialect.name == "postgresql"
    lowest = UUID(int=0).hex if is_postgresql else ""
    (row,) = await fetch(tx, _paged(tx.dialect.name), (tenant, first or lowest, limit))
    count, loose, least, most = row
    return RecordPage(least, most, int(loose), count == limit) if count else None


async def list_loose(
    tx: AsyncConnection, tenant: str, page: RecordPage, progress: Progress
) -> Sequence[Sequence[Any]]:
    """Return the events of a page that are not in the log, as `COLUMNS` and whether the sealer is yet to pass them."""
    ends = (tenant, page.first, page.last)
    if tx.dialect.name == "postgresql":
        parameters: tuple[Any, ...] = (*ends, progress.order, progress.tenant, progress.event.hex)
    else:
        parameters = (*ends, progress.passed)
    return await fetch(tx, _loose(tx.dialect.name, progress.until is not None), parameters)


async def list_recorded_tenants(tx: AsyncConnection, behind: str, limit: int) -> list[str]:
    """Return at most ``limit`` tenants that have events, by name, behind one."""
    marks = ("$1", "$2") if tx.dialect.name == "postgresql" else ("?", "?")
    return [row[0] for row in await fetch(tx, _TENANTS.format(*marks), (behind, limit))]


@cache
def _standing(dialect: str) -> str:
    marks = _marks(dialect, 4)
    return (
        f"SELECT l.position, l.event, l.at, {_columns(dialect)} FROM log_leaf l "  # noqa: S608 - our own names
        "LEFT JOIN audit_event e ON e.tenant = l.tenant AND e.id = l.event AND e.at = l.at "
        f"WHERE l.tenant = {marks[0]} AND l.position >= {marks[1]} AND l.position < {marks[2]} "
        f"ORDER BY l.position LIMIT {marks[3]}"
    )


@cache
def _paged(dialect: str) -> str:
    tenant, first, limit = _marks(dialect, 3)
    page = f"SELECT tenant, id, at FROM audit_event WHERE tenant = {tenant} AND id >= {_id(dialect, first)}"  # noqa: S608
    # PostgreSQL has no greatest id before its version 18; as text they sort alike.
    return (
        "SELECT count(*), coalesce(sum(CASE WHEN l.event IS NULL THEN 1 ELSE 0 END), 0), "  # noqa: S608
        f"min(CAST(e.id AS text)), max(CAST(e.id AS text)) FROM ({page} ORDER BY id LIMIT {limit}) e "
        f"LEFT JOIN log_leaf l ON {_STANDS}"
    )


@cache
def _loose(dialect: str, is_looking_back: bool) -> str:
    tenant, first, last, order, *key = _marks(dialect, 6 if dialect == "postgresql" else 4)
    if dialect == "postgresql":
        writer, event = key
        ahead = (
            f"coalesce((e.{WRITTEN_BY}, e.tenant, e.id) > (CAST({order} AS bigint), CAST({writer} AS text), "
            f"{_id(dialect, event)}), false)"
        )
    else:
        ahead = f"e.rowid > {order}"
    if is_looking_back:
        ahead = f"({ahead}) OR true"
    return (
        f"SELECT NULL, e.id, e.at, {_columns(dialect)}, {ahead} FROM audit_event e "  # noqa: S608 - our own names
        f"WHERE e.tenant = {tenant} AND e.id >= {_id(dialect, first)} AND e.id <= {_id(dialect, last)} "
        f"AND NOT EXISTS (SELECT 1 FROM log_leaf l WHERE {_STANDS}) ORDER BY e.id"
    )


def _marks(dialect: str, count: int) -> list[str]:
    return [f"${at}" if dialect == "postgresql" else f"?{at}" for at in range(1, count + 1)]


def _id(dialect: str, mark: str) -> str:
    return f"CAST(CAST({mark} AS text) AS uuid)" if dialect == "postgresql" else mark


def _columns(dialect: str) -> str:
    # The driver of PostgreSQL would parse each document; a text may have come by already.
    documents = _DOCUMENTS if dialect == "postgresql" else ()
    return ", ".join(f"CAST(e.{name} AS text)" if name in documents else f"e.{name}" for name in _EVENT)
