"""What stands in a tenant's log, as raw rows of the driver: for whoever makes hashes of millions of them."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import JSON, Text, and_, case, cast, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.audit.tables import log_leaf
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


class LoggedHead(NamedTuple):
    """A head of a tenant in the log of heads: its size, where it stands, and its root."""

    size: int
    position: int
    root: bytes


class UnsealedPage(NamedTuple):
    """Of a page of a tenant's events: how many are old and not in the log, and the last of them (None: no more)."""

    unsealed: int
    last: UUID | None


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


async def count_unsealed(
    tx: AsyncConnection, tenant: str, before: datetime, behind: UUID, limit: int
) -> UnsealedPage:
    """Return how many of the ``limit`` events behind an id are from before a moment and not in the log."""
    key = (audit_event.c.tenant, audit_event.c.id)
    page = select(*key, audit_event.c.at).where(audit_event.c.tenant == tenant, audit_event.c.id > behind)
    rows = page.order_by(audit_event.c.id).limit(limit).subquery()
    is_lacking = and_(log_leaf.c.event.is_(None), rows.c.at < before)
    joined = rows.outerjoin(log_leaf, and_(log_leaf.c.tenant == rows.c.tenant, log_leaf.c.event == rows.c.id))
    # PostgreSQL has no greatest id before its version 18; as text they sort alike.
    query = select(
        func.count(), func.sum(case((is_lacking, 1), else_=0)), func.max(cast(rows.c.id, Text))
    ).select_from(joined)
    count, unsealed, last = (await tx.execute(query)).one()
    return UnsealedPage(int(unsealed or 0), UUID(last) if count == limit else None)


@cache
def _standing(dialect: str) -> str:
    is_postgresql = dialect == "postgresql"
    marks = [f"${at}" if is_postgresql else "?" for at in range(1, 5)]
    # The driver of PostgreSQL would parse each document; a text may have come by already.
    columns = [
        f"CAST(e.{name} AS text)" if is_postgresql and name in _DOCUMENTS else f"e.{name}" for name in _EVENT
    ]
    return (
        f"SELECT l.position, l.event, l.at, {', '.join(columns)} FROM log_leaf l "  # noqa: S608 - our own names
        "LEFT JOIN audit_event e ON e.tenant = l.tenant AND e.id = l.event AND e.at = l.at "
        f"WHERE l.tenant = {marks[0]} AND l.position >= {marks[1]} AND l.position < {marks[2]} "
        f"ORDER BY l.position LIMIT {marks[3]}"
    )
