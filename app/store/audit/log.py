"""The log over the audit record as stored: what the sealer reads and adds, and what a verifier reads.

Only the sealer adds, one process at a time, in system transactions. Events enter in the order in which their
transactions began to write (PostgreSQL) or were inserted (SQLite): clocks play no part.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    exists,
    literal_column,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.transparency.tiles import TilePlace
from app.store.audit.audit import RecordedEvent, recorded
from app.store.audit.tables import log_checkpoint, log_entry, log_head, log_leaf, log_tile
from app.store.bulk import insert_rows
from app.store.insertion import insert_absent
from app.store.tables import WRITTEN_BY, audit_event, installation

HEADS: Final = "*"
"""The name of the log of all tenants' heads, which no tenant can have."""

_PROGRESS: Final = "audit_log_sealed"
ROWID: ColumnElement[int] = literal_column("audit_event.rowid")
_NIL: Final = UUID(int=0)
_LEAF: Final = 4
"""Columns of a leaf, in front of those of its event."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The last row of the record that entered the log, in the order of sealing.

    ``order`` is the row's transaction (PostgreSQL) or number (SQLite). ``until``: rows of a lower order that are not
    in the log are being added, by tenant and id (None: there are none).
    """

    order: int = 0
    tenant: str = ""
    event: UUID = _NIL
    until: int | None = None

    @property
    def passed(self) -> int:
        """Return the highest number of a row that was passed (SQLite); without an event, that of ``order`` was not."""
        return self.order if self.event != _NIL else self.order - 1


class LogLeaf(NamedTuple):
    """Which event stands at a position of a tenant's log."""

    tenant: str
    position: int
    event: UUID
    at: datetime


class Head(NamedTuple):
    """The size and the root of a tenant's log, and its position in the log of heads."""

    tenant: str
    size: int
    root: bytes
    entry: int


class HeadEntry(NamedTuple):
    """An entry of the log of heads."""

    position: int
    tenant: str
    size: int
    root: bytes
    at: datetime


class SignedCheckpoint(NamedTuple):
    """A signed head of the log of heads; ``note`` is the text with its signatures."""

    size: int
    note: str
    at: datetime


async def read_progress(tx: AsyncConnection) -> Progress:
    """Return how far the record is in the log; rows that are there already are taken first."""
    query = select(installation.c.value).where(installation.c.name == _PROGRESS)
    value = (await tx.execute(query)).scalar_one_or_none()
    end = await horizon(tx)
    if value is None:
        return Progress(until=end)
    progress = _stored_progress(value)
    if progress is None or (progress.until is None and not await _goes_on(tx, progress, end)):
        # Another cluster or a compacted file numbers its rows anew: look for what is missing, once.
        return Progress(until=end)
    return progress


def _stored_progress(value: Any) -> Progress | None:
    """Return what was stored, or None where it is not what the sealer stores."""
    try:
        progress = Progress(value["order"], value["tenant"], UUID(value["event"]), value["until"])
    except (TypeError, KeyError, ValueError, AttributeError):
        return None
    fits = isinstance(progress.order, int) and isinstance(progress.tenant, str)
    return progress if fits and isinstance(progress.until, int | None) else None


async def write_progress(tx: AsyncConnection, progress: Progress) -> None:
    """Store how far the record is in the log."""
    value = {
        "order": progress.order,
        "tenant": progress.tenant,
        "event": progress.event.hex,
        "until": progress.until,
    }
    if not await insert_absent(tx, installation, {"name": _PROGRESS, "value": value}):
        await tx.execute(update(installation).where(installation.c.name == _PROGRESS).values(value=value))


def newer(tx: AsyncConnection, query: Select[Any], progress: Progress) -> Select[Any]:
    """Return ``query`` for the rows of the record behind ``progress``, in the order of sealing."""
    if tx.dialect.name == "sqlite":
        # The number of a row is its own; the row that was numbered last is in the log.
        return query.where(progress.passed < ROWID).order_by(ROWID)
    key = (audit_event.c[WRITTEN_BY], audit_event.c.tenant, audit_event.c.id)
    query = query.where(tuple_(*key) > tuple_(progress.order, progress.tenant, progress.event))
    return query.where(audit_event.c[WRITTEN_BY].is_not(None)).order_by(*key)


async def list_heads(tx: AsyncConnection, tenants: Collection[str] | None = None) -> dict[str, Head]:
    """Return the newest heads by tenant, `HEADS` among them if asked for; None: all of them."""
    query = select(log_head)
    if tenants is not None:
        query = query.where(log_head.c.tenant.in_(tenants))
    return {row.tenant: Head(row.tenant, row.size, row.root, row.entry) for row in await tx.execute(query)}


async def list_tiles(
    tx: AsyncConnection, wanted: Iterable[tuple[str, TilePlace]]
) -> dict[str, dict[TilePlace, bytes]]:
    """Return tiles by log and place; those that are not stored are left out."""
    keys = [(log, *place) for log, place in wanted]
    tiles: dict[str, dict[TilePlace, bytes]] = {log: {} for log, *_ in keys}
    if keys:
        key = tuple_(log_tile.c.log, log_tile.c.level, log_tile.c.number)
        for row in await tx.execute(select(log_tile).where(key.in_(keys))):
            tiles[row.log][TilePlace(row.level, row.number)] = row.hashes
    return tiles


async def add_leaves(tx: AsyncConnection, leaves: Sequence[LogLeaf]) -> None:
    """Store which events stand where."""
    await insert_rows(tx, log_leaf, LogLeaf._fields, leaves)


async def put_tiles(tx: AsyncConnection, tiles: Mapping[str, Mapping[TilePlace, bytes]]) -> None:
    """Store tiles by log; a longer one replaces the one that was there."""
    rows = [
        {"log": log, "level": place.level, "number": place.number, "hashes": hashes}
        for log, own in tiles.items()
        for place, hashes in own.items()
    ]
    await _put(tx, log_tile, rows, ("hashes",))


async def put_heads(tx: AsyncConnection, heads: Iterable[Head]) -> None:
    """Store the newest heads."""
    await _put(tx, log_head, [head._asdict() for head in heads], ("size", "root", "entry"))


async def add_entries(tx: AsyncConnection, entries: Sequence[HeadEntry]) -> None:
    """Store entries of the log of heads."""
    await insert_rows(tx, log_entry, HeadEntry._fields, entries)


async def add_checkpoint(tx: AsyncConnection, checkpoint: SignedCheckpoint) -> None:
    """Store a checkpoint; one of the same size stays."""
    await insert_absent(tx, log_checkpoint, checkpoint._asdict())


async def newest_checkpoint(tx: AsyncConnection) -> SignedCheckpoint | None:
    """Return the checkpoint of the greatest size."""
    query = select(log_checkpoint).order_by(log_checkpoint.c.size.desc()).limit(1)
    row = (await tx.execute(query)).one_or_none()
    return SignedCheckpoint(row.size, row.note, row.at) if row is not None else None


async def checkpoint_of(tx: AsyncConnection, size: int) -> SignedCheckpoint | None:
    """Return the checkpoint of a size."""
    row = (await tx.execute(select(log_checkpoint).where(log_checkpoint.c.size == size))).one_or_none()
    return SignedCheckpoint(row.size, row.note, row.at) if row is not None else None


async def replace_checkpoint(tx: AsyncConnection, checkpoint: SignedCheckpoint) -> None:
    """Store the checkpoint with more signatures than it had."""
    same = log_checkpoint.c.size == checkpoint.size
    await tx.execute(update(log_checkpoint).where(same).values(note=checkpoint.note))


async def list_checkpoints(tx: AsyncConnection, after: int, limit: int) -> list[SignedCheckpoint]:
    """Return checkpoints of more entries than ``after``, the smallest first."""
    query = select(log_checkpoint).where(log_checkpoint.c.size > after).order_by(log_checkpoint.c.size)
    return [SignedCheckpoint(row.size, row.note, row.at) for row in await tx.execute(query.limit(limit))]


async def list_entries(tx: AsyncConnection, start: int, limit: int) -> list[HeadEntry]:
    """Return entries of the log of heads from the position ``start`` on."""
    query = select(log_entry).where(log_entry.c.position >= start).order_by(log_entry.c.position)
    return [HeadEntry(*row) for row in await tx.execute(query.limit(limit))]


async def last_entry(tx: AsyncConnection, tenant: str, size: int) -> HeadEntry | None:
    """Return a tenant's newest entry among the first ``size`` of the log of heads."""
    query = select(log_entry).where(log_entry.c.tenant == tenant, log_entry.c.position < size)
    query = query.order_by(log_entry.c.size.desc(), log_entry.c.position.desc())
    row = (await tx.execute(query.limit(1))).one_or_none()
    return HeadEntry(*row) if row is not None else None


async def next_entry(tx: AsyncConnection, tenant: str, position: int) -> HeadEntry | None:
    """Return a tenant's first entry whose tree has the position."""
    query = select(log_entry).where(log_entry.c.tenant == tenant, log_entry.c.size > position)
    row = (await tx.execute(query.order_by(log_entry.c.size, log_entry.c.position).limit(1))).one_or_none()
    return HeadEntry(*row) if row is not None else None


async def list_leaves(
    tx: AsyncConnection, tenant: str, start: int, limit: int
) -> list[tuple[LogLeaf, RecordedEvent | None]]:
    """Return what stands from the position ``start`` on, each with its event, or None where that is not stored."""
    return await _leaves(tx, _with_events(tenant).where(log_leaf.c.position >= start).limit(limit))


async def list_leaves_of(
    tx: AsyncConnection, tenant: str, events: Collection[UUID]
) -> list[tuple[LogLeaf, RecordedEvent | None]]:
    """Return where events stand, in order; those that are not in the log are left out."""
    return await _leaves(tx, _with_events(tenant).where(log_leaf.c.event.in_(events)))


async def list_leaves_behind(tx: AsyncConnection, tenant: str, size: int, limit: int) -> list[LogLeaf]:
    """Return what stands behind the first ``size`` positions of a tenant's log, the last first."""
    query = select(log_leaf).where(log_leaf.c.tenant == tenant, log_leaf.c.position >= size)
    query = query.order_by(log_leaf.c.position.desc())
    return [LogLeaf(*row) for row in await tx.execute(query.limit(limit))]


def _with_events(tenant: str) -> Select[Any]:
    same = and_(
        audit_event.c.tenant == log_leaf.c.tenant,
        audit_event.c.id == log_leaf.c.event,
        audit_event.c.at == log_leaf.c.at,
    )
    columns = (
        log_leaf.c.tenant.label("owner"),
        log_leaf.c.position,
        log_leaf.c.event,
        log_leaf.c.at.label("leaf_at"),
    )
    query = select(*columns, audit_event).select_from(log_leaf.outerjoin(audit_event, same))
    return query.where(log_leaf.c.tenant == tenant).order_by(log_leaf.c.position)


async def _leaves(tx: AsyncConnection, query: Select[Any]) -> list[tuple[LogLeaf, RecordedEvent | None]]:
    rows = [(row[:_LEAF], row[_LEAF:]) for row in await tx.execute(query)]
    return [(LogLeaf(*leaf), recorded(event) if event[0] is not None else None) for leaf, event in rows]


async def _goes_on(tx: AsyncConnection, progress: Progress, end: int) -> bool:
    """Return whether the rows behind ``progress`` are still numbered as they were."""
    if progress.event == _NIL or tx.dialect.name == "postgresql":
        return progress.order <= end
    numbered = ROWID.is_not_distinct_from(progress.order)
    place = exists().where(
        and_(audit_event.c.tenant == progress.tenant, audit_event.c.id == progress.event, numbered)
    )
    return bool((await tx.execute(select(place))).scalar_one())


async def horizon(tx: AsyncConnection) -> int:
    """Return the order below which no transaction can add rows any more."""
    if tx.dialect.name == "postgresql":
        return int(
            (await tx.execute(text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text"))).scalar_one()
        )
    return int((await tx.execute(text("SELECT coalesce(max(rowid), 0) + 1 FROM audit_event"))).scalar_one())


async def _put(
    tx: AsyncConnection, table: Any, rows: Sequence[Mapping[str, Any]], replaced: Sequence[str]
) -> None:
    if not rows:
        return
    make = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    statement = make(table)
    changed = {name: statement.excluded[name] for name in replaced}
    await tx.execute(
        statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed), list(rows)
    )
