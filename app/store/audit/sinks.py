"""How far each sink is in the log of heads, as stored, and the events that come next.

The log of heads gives all tenants' sealed events one order without gaps: each of its entries stands for the events by
which it made a tenant's log longer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.audit.audit import RecordedEvent
from app.store.audit.log import LogLeaf, last_entry, list_entries, list_leaves
from app.store.audit.tables import log_sink

_ENTRIES: Final = 100


class SinkCursor(NamedTuple):
    """The next entry of the log of heads that a sink gets, the position in its tenant's log, and since when.

    The position is 0 at the beginning of an entry.
    """

    name: str
    entry: int = 0
    position: int = 0
    at: datetime | None = None


class Pending(NamedTuple):
    """Events that come next, in order, and where the cursor stands behind them."""

    events: Sequence[tuple[LogLeaf, RecordedEvent]]
    following: SinkCursor


async def list_cursors(tx: AsyncConnection) -> dict[str, SinkCursor]:
    """Return the cursors of all sinks that ever got something, by name."""
    return {row.name: SinkCursor(*row) for row in await tx.execute(select(log_sink))}


async def put_cursor(tx: AsyncConnection, cursor: SinkCursor) -> None:
    """Store a cursor."""
    make = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    values = cursor._asdict()
    statement = make(log_sink).values(values)
    changed = {name: value for name, value in values.items() if name != "name"}
    await tx.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))


async def list_pending(tx: AsyncConnection, cursor: SinkCursor, limit: int) -> Pending:
    """Return at most ``limit`` of the next events; those that are no longer stored are passed over."""
    events: list[tuple[LogLeaf, RecordedEvent]] = []
    for entry in await list_entries(tx, cursor.entry, _ENTRIES):
        start = cursor.position
        if not start:
            before = await last_entry(tx, entry.tenant, entry.position)
            start = before.size if before is not None else 0
        room = limit - len(events)
        leaves = await list_leaves(tx, entry.tenant, start, room)
        own = [(leaf, recorded) for leaf, recorded in leaves if leaf.position < entry.size]
        events += [(leaf, recorded) for leaf, recorded in own if recorded is not None]
        if len(own) == room and own[-1][0].position + 1 < entry.size:
            return Pending(events, cursor._replace(entry=entry.position, position=own[-1][0].position + 1))
        cursor = cursor._replace(entry=entry.position + 1, position=0)
        if len(own) == room:
            break
    return Pending(events, cursor)


async def waiting_since(tx: AsyncConnection, cursor: SinkCursor) -> datetime | None:
    """Return when the oldest event was sealed that a sink does not have; None where it has all."""
    entries = await list_entries(tx, cursor.entry, 1)
    return entries[0].at if entries else None
