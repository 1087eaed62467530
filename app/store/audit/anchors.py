"""What anchors keep of the audit log, and how far sealing and anchoring lag behind, as stored."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.audit.log import newer, read_progress
from app.store.audit.tables import log_anchor, log_checkpoint
from app.store.tables import audit_event


class AnchoredCheckpoint(NamedTuple):
    """The newest checkpoint that an anchor is known to keep, and when it took it."""

    name: str
    size: int
    root: bytes
    at: datetime


async def list_anchored(tx: AsyncConnection) -> dict[str, AnchoredCheckpoint]:
    """Return what is known of each anchor, by name."""
    return {row.name: AnchoredCheckpoint(*row) for row in await tx.execute(select(log_anchor))}


async def put_anchored(tx: AsyncConnection, kept: AnchoredCheckpoint) -> None:
    """Store what an anchor keeps now."""
    make = postgresql.insert if tx.dialect.name == "postgresql" else sqlite.insert
    values = kept._asdict()
    statement = make(log_anchor).values(values)
    changed = {name: value for name, value in values.items() if name != "name"}
    await tx.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))


async def oldest_unsealed(tx: AsyncConnection) -> datetime | None:
    """Return when the oldest event happened that is not in the log; None where all are, or the log is first made."""
    progress = await read_progress(tx)
    if progress.until is not None:
        return None
    query = newer(tx, select(audit_event.c.at), progress).limit(1)
    moment: datetime | None = (await tx.execute(query)).scalar_one_or_none()
    return moment


async def oldest_beyond(tx: AsyncConnection, size: int) -> datetime | None:
    """Return when the first checkpoint of more than ``size`` entries was signed; None where there is none."""
    query = select(log_checkpoint.c.at).where(log_checkpoint.c.size > size)
    first = query.order_by(log_checkpoint.c.size).limit(1)
    return (await tx.execute(first)).scalar_one_or_none()
