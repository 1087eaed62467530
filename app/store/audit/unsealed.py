"""The rows of the record that the sealer has not yet put into the log, in the order of sealing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import exists, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import WriterNumber
from app.store.audit.audit import RecordedEvent, recorded
from app.store.audit.log import ROWID, Progress
from app.store.audit.tables import log_leaf
from app.store.bulk import fetch
from app.store.tables import WRITTEN_BY, audit_event

_NAMES: Final = ("tenant", "id", "at", "writer", "writer_seq", "leaf", "mac")
# Of every event that is ever sealed: as raw rows, since what SQLAlchemy does for each took 4 % of a call's CPU.
_NEWER: Final = {
    # The number of a row is its own; the row that was numbered last is in the log.
    "sqlite": f"SELECT {', '.join(_NAMES)}, rowid FROM audit_event WHERE rowid > ?1 ORDER BY rowid LIMIT ?2",  # noqa: S608
    # Below the horizon, no transaction can add rows any more.
    "postgresql": f"SELECT {', '.join(_NAMES)}, {WRITTEN_BY} FROM audit_event "  # noqa: S608 - our own names
    f"WHERE ({WRITTEN_BY}, tenant, id) > ($1, $2, $3) AND {WRITTEN_BY} IS NOT NULL "
    f"AND {WRITTEN_BY} < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text) AS bigint) "
    f"ORDER BY {WRITTEN_BY}, tenant, id LIMIT $4",
}


class Unsealed(NamedTuple):
    """A row that is not in the log, and its place in the order of sealing.

    ``leaf`` is the hash that was stored with it; a row from before the upgrade has none, and comes whole as ``old``.
    """

    tenant: str
    event: UUID
    at: datetime
    number: WriterNumber | None
    leaf: bytes | None
    mac: bytes
    order: int
    old: RecordedEvent | None = None


async def list_unsealed(tx: AsyncConnection, progress: Progress, limit: int) -> list[Unsealed]:
    """Return the next rows to seal; every transaction that could still add one before them has ended."""
    rows = await (_newer if progress.until is None else _older)(tx, progress, limit)
    bare = [(row.tenant, row.event, row.at) for row in rows if row.leaf is None]
    if not bare:
        return rows
    place = tuple_(audit_event.c.tenant, audit_event.c.id, audit_event.c.at)
    whole = map(recorded, await tx.execute(select(audit_event).where(place.in_(bare))))
    old = {(made.event.tenant, made.event.id): made for made in whole}
    return [row._replace(old=old[row.tenant, row.event]) if row.leaf is None else row for row in rows]


def advanced(progress: Progress, rows: Sequence[Unsealed], limit: int) -> Progress:
    """Return the progress once ``rows``, of at most ``limit``, have entered the log."""
    if progress.until is not None and len(rows) < limit:
        return Progress(order=progress.until)
    if not rows:
        return progress
    last = rows[-1]
    order = progress.order if progress.until is not None else last.order
    return Progress(order, last.tenant, last.event, progress.until)


async def _newer(tx: AsyncConnection, progress: Progress, limit: int) -> list[Unsealed]:
    """Return rows that were written behind all that is in the log."""
    if tx.dialect.name == "sqlite":
        asked: tuple[Any, ...] = (progress.passed, limit)
    else:
        asked = (progress.order, progress.tenant, progress.event, limit)
    return [_raw(row) for row in await fetch(tx, _NEWER[tx.dialect.name], asked)]


def _raw(row: Sequence[Any]) -> Unsealed:
    tenant, event, at, writer, number, leaf, mac, order = row
    if isinstance(event, str):  # SQLite
        event, at = UUID(event), datetime.fromisoformat(at).replace(tzinfo=UTC)
    numbered = WriterNumber(writer, number) if writer is not None else None
    return Unsealed(tenant, event, at, numbered, leaf, mac, order)


async def _older(tx: AsyncConnection, progress: Progress, limit: int) -> list[Unsealed]:
    """Return rows from before the log, or from before their numbers began anew, by tenant and id."""
    order = ROWID if tx.dialect.name == "sqlite" else audit_event.c[WRITTEN_BY]
    older = order < progress.until
    if tx.dialect.name == "postgresql":
        older = or_(audit_event.c[WRITTEN_BY].is_(None), older)
    in_log = exists().where(log_leaf.c.tenant == audit_event.c.tenant, log_leaf.c.event == audit_event.c.id)
    key = (audit_event.c.tenant, audit_event.c.id)
    query = select(*(audit_event.c[name] for name in _NAMES), order.label("place"))
    query = query.where(older, ~in_log, tuple_(*key) > tuple_(progress.tenant, progress.event))
    return [_unsealed(row) for row in await tx.execute(query.order_by(*key).limit(limit))]


def _unsealed(row: Any) -> Unsealed:
    number = WriterNumber(row.writer, row.writer_seq) if row.writer is not None else None
    return Unsealed(row.tenant, row.id, row.at, number, row.leaf, row.mac, row.place or 0)
