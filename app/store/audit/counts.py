"""Counts of a tenant's sealed events: how far they go in its log, what follows, and what a page of numbers reads."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from sqlalchemy import and_, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.audit.log import HEADS
from app.store.audit.tables import log_count, log_counted, log_head
from app.store.insertion import insert_absent

Dimension = Literal["day", "action", "outcome", "actor"]

_DAY: Final = {
    "postgresql": "to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
    "sqlite": "substr(e.at, 1, 10)",
}
_ADD: Final = """
    INSERT INTO log_count (tenant, day, action, outcome, actor, events)
    SELECT e.tenant, {day}, e.action, e.outcome, e.actor, count(*)
    FROM log_leaf l JOIN audit_event e ON e.tenant = l.tenant AND e.id = l.event AND e.at = l.at
    WHERE l.tenant = :tenant AND l.position >= :start AND l.position < :end
    GROUP BY e.tenant, {day}, e.action, e.outcome, e.actor
    ON CONFLICT (tenant, day, action, outcome, actor) DO UPDATE SET events = log_count.events + excluded.events
"""


class Counted(NamedTuple):
    """How many leaves of a tenant's log are counted, and how many it has."""

    tenant: str
    counted: int
    sealed: int


class CountRow(NamedTuple):
    """A number of events, and what they have in common, in the order of the dimensions."""

    values: tuple[str, ...]
    events: int


class StoredCounts(NamedTuple):
    """How many leaves of a tenant's log are counted, and events by day, action, outcome and actor."""

    counted: int
    events: dict[tuple[str, ...], int]


async def list_uncounted(tx: AsyncConnection, limit: int) -> list[Counted]:
    """Return tenants whose log has leaves that are not counted (system transactions)."""
    size = func.coalesce(log_counted.c.size, 0)
    query = (
        select(log_head.c.tenant, size, log_head.c.size)
        .select_from(log_head.outerjoin(log_counted, log_counted.c.tenant == log_head.c.tenant))
        .where(log_head.c.tenant != HEADS, log_head.c.size > size)
    )
    return [Counted(*row) for row in await tx.execute(query.order_by(log_head.c.tenant).limit(limit))]


async def add_counts(tx: AsyncConnection, tenant: str, start: int, end: int) -> bool:
    """Count the leaves from ``start`` to below ``end``; False, and nothing done, where another process was first."""
    await insert_absent(tx, log_counted, {"tenant": tenant, "size": 0})
    mine = and_(log_counted.c.tenant == tenant, log_counted.c.size == start)
    if (await tx.execute(update(log_counted).where(mine).values(size=end))).rowcount == 0:
        return False
    statement = text(_ADD.format(day=_DAY[tx.dialect.name]))
    await tx.execute(statement, {"tenant": tenant, "start": start, "end": end})
    return True


async def find_counted(tx: AsyncConnection, tenant: str) -> Counted:
    """Return how far the counts of a tenant go."""
    sizes = []
    for table in (log_counted, log_head):
        query = select(table.c.size).where(table.c.tenant == tenant)
        sizes.append((await tx.execute(query)).scalar_one_or_none() or 0)
    return Counted(tenant, *sizes)


async def stored_counts(tx: AsyncConnection, tenant: str) -> StoredCounts:
    """Return all counts of a tenant as they stand at one moment."""
    columns = [log_count.c[name] for name in ("day", "action", "outcome", "actor")]
    query = select(log_counted.c.size, *columns, log_count.c.events)
    query = query.select_from(log_counted.outerjoin(log_count, log_count.c.tenant == log_counted.c.tenant))
    rows = (await tx.execute(query.where(log_counted.c.tenant == tenant))).all()
    events = {tuple(key): number for _, *key, number in rows if number is not None}
    return StoredCounts(rows[0].size if rows else 0, events)


async def list_counts(
    tx: AsyncConnection, tenant: str, days: tuple[str | None, str | None], by: Sequence[Dimension], limit: int
) -> list[CountRow]:
    """Return at most ``limit`` sums by dimensions, in their order.

    ``days`` are the first one and the one behind the last (None: no such end).
    """
    columns = [log_count.c[name] for name in by]
    query = select(*columns, func.sum(log_count.c.events)).where(log_count.c.tenant == tenant)
    since, until = days
    if since is not None:
        query = query.where(log_count.c.day >= since)
    if until is not None:
        query = query.where(log_count.c.day < until)
    rows = await tx.execute(query.group_by(*columns).order_by(*columns).limit(limit))
    return [CountRow(tuple(row[:-1]), int(row[-1])) for row in rows]


async def last_days(tx: AsyncConnection, tenant: str, actors: Sequence[str], since: str) -> dict[str, str]:
    """Return the last day from ``since`` on of which there are events of each actor; absent: none."""
    day = func.max(log_count.c.day).label("day")
    query = select(log_count.c.actor, day).where(
        log_count.c.tenant == tenant, log_count.c.day >= since, log_count.c.actor.in_(actors)
    )
    rows = await tx.execute(query.group_by(log_count.c.actor))
    return {row.actor: row.day for row in rows}
