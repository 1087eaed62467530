"""How far the numbers of each writer are in the log, as stored; and rows of the record by their numbers."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, delete, exists, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import WriterNumber
from app.core.transparency.gaps import NumberRange, NumbersSeen
from app.store.audit.log import newer, read_progress
from app.store.audit.tables import log_leaf, log_writer
from app.store.tables import audit_event

_REMOVED: Final = 1000


class WriterPlace(NamedTuple):
    """A writer in the log of a tenant."""

    tenant: str
    writer: str


async def list_writers(
    tx: AsyncConnection, places: Collection[WriterPlace]
) -> dict[WriterPlace, NumbersSeen]:
    """Return which numbers of writers are in the log; those of which none is are left out."""
    if not places:
        return {}
    wanted = tuple_(log_writer.c.tenant, log_writer.c.writer).in_([tuple(place) for place in places])
    return _seen(await tx.execute(select(log_writer).where(wanted)))


async def list_incomplete_writers(tx: AsyncConnection) -> dict[WriterPlace, NumbersSeen]:
    """Return the writers of which lower numbers than the highest are not in the log."""
    rows = await tx.execute(select(log_writer))
    return {place: seen for place, seen in _seen(rows).items() if seen.missing}


async def put_writers(
    tx: AsyncConnection, writers: Iterable[tuple[WriterPlace, NumbersSeen]], at: datetime
) -> None:
    """Store which numbers of writers are in the log since the moment ``at``."""
    rows = [
        {
            "tenant": place.tenant,
            "writer": place.writer,
            "number": seen.highest,
            "missing": seen.missing,
            "at": at,
        }
        for place, seen in writers
    ]
    if not rows:
        return
    make = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    statement = make(log_writer)
    changed = {name: statement.excluded[name] for name in ("number", "missing", "at")}
    await tx.execute(statement.on_conflict_do_update(index_elements=["tenant", "writer"], set_=changed), rows)


async def remove_over_writers(tx: AsyncConnection, before: datetime, now: datetime) -> int:
    """Remove writers of which nothing was sealed since ``before`` and nothing is missing or waits; return how many.

    A row without a time, as the previous release makes them, gets ``now``.
    """
    await tx.execute(update(log_writer).where(log_writer.c.at.is_(None)).values(at=now))
    waiting = {
        WriterPlace(tenant, number.writer)
        for tenant, numbers in (await list_unsealed_numbers(tx)).items()
        for number in numbers
    }
    old = select(log_writer).where(log_writer.c.at < before)
    over = [place for place, seen in _seen(await tx.execute(old)).items() if not seen.missing]
    gone = [tuple(place) for place in over if place not in waiting]
    key = tuple_(log_writer.c.tenant, log_writer.c.writer)
    for start in range(0, len(gone), _REMOVED):
        await tx.execute(delete(log_writer).where(key.in_(gone[start : start + _REMOVED])))
    return len(gone)


async def list_unsealed_numbers(tx: AsyncConnection) -> dict[str, list[WriterNumber]]:
    """Return the numbers of events that are not in the log, by tenant, in no order."""
    progress = await read_progress(tx)
    query: Select[Any] = select(audit_event.c.tenant, audit_event.c.writer, audit_event.c.writer_seq)
    if progress.until is None:
        query = newer(tx, query, progress).order_by(None)
    else:
        query = query.where(
            ~exists().where(log_leaf.c.tenant == audit_event.c.tenant, log_leaf.c.event == audit_event.c.id)
        )
    numbers: dict[str, list[WriterNumber]] = {}
    for tenant, *number in await tx.execute(query.where(audit_event.c.writer.is_not(None))):
        numbers.setdefault(tenant, []).append(WriterNumber(*number))
    return numbers


def _seen(rows: Iterable[Any]) -> dict[WriterPlace, NumbersSeen]:
    return {
        WriterPlace(row.tenant, row.writer): NumbersSeen(
            row.number, tuple(NumberRange(*ends) for ends in row.missing)
        )
        for row in rows
    }
