"""Queries on the virtual sessions of handshake clients; a session is stored under a digest of its id only."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.tables import session


@dataclass(frozen=True, slots=True)
class StoredSession:
    """One session; ``id`` is the digest, ``principal`` the credential that began the session."""

    tenant: str
    id: str
    principal: str
    revision: str
    data: Mapping[str, Any]
    created: datetime
    last_seen: datetime


async def add_session(tx: AsyncConnection, added: StoredSession) -> None:
    """Store a new session."""
    await tx.execute(
        insert(session).values(
            tenant=added.tenant,
            id=added.id,
            principal=added.principal,
            revision=added.revision,
            data=dict(added.data),
            created=added.created,
            last_seen=added.last_seen,
        )
    )


async def find_session(
    tx: AsyncConnection, tenant: str, digest: str, *, lock: bool = False
) -> StoredSession | None:
    """Return a session; ``lock`` keeps others from changing it until the transaction ends."""
    query = select(session).where(_named(tenant, digest))
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    if row is None:
        return None
    return StoredSession(
        row.tenant, row.id, row.principal, row.revision, row.data, row.created, row.last_seen
    )


async def update_session_seen(tx: AsyncConnection, tenant: str, digest: str, seen: datetime) -> bool:
    """Record that a session is in use; return False where it no longer exists."""
    done = await tx.execute(update(session).where(_named(tenant, digest)).values(last_seen=seen))
    return bool(done.rowcount)


async def update_session_data(
    tx: AsyncConnection, tenant: str, digest: str, data: Mapping[str, Any], seen: datetime
) -> None:
    """Replace what a session remembers."""
    await tx.execute(update(session).where(_named(tenant, digest)).values(data=dict(data), last_seen=seen))


async def remove_session(tx: AsyncConnection, tenant: str, digest: str) -> bool:
    """Delete a session; return False where there was none."""
    done = await tx.execute(delete(session).where(_named(tenant, digest)))
    return bool(done.rowcount)


async def remove_idle_sessions(tx: AsyncConnection, before: datetime, *, limit: int) -> int:
    """Delete up to ``limit`` sessions last used before ``before``; return how many.

    The deletion checks the time again, so a session that is used meanwhile stays.
    """
    idle = select(session.c.tenant, session.c.id).where(session.c.last_seen < before).limit(limit)
    chosen = tuple_(session.c.tenant, session.c.id).in_(idle)
    done = await tx.execute(delete(session).where(chosen, session.c.last_seen < before))
    return done.rowcount


def _named(tenant: str, digest: str) -> ColumnElement[bool]:
    return (session.c.tenant == tenant) & (session.c.id == digest)
