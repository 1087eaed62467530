"""Queries on the audit record; ``store.writer`` adds to it, and nothing ever changes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import Select, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import CLIENT_REQUEST_ID, AuditEvent
from app.store.paging import paged
from app.store.tables import WRITTEN_BY, audit_event

Transaction: TypeAlias = AsyncConnection
"""An open transaction, for services that pass it on without using it."""

_EQUAL = ("actor", "middleware", "action", "outcome", "scope_ref", "request_id")


_WRITERS = text(
    """SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND mode = 'RowExclusiveLock' AND relation = 'audit_event'::regclass
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()"""
)


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """Which events to return; None does not filter. ``since`` is inclusive, ``until`` is exclusive."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str | None = None
    middleware: str | None = None
    action: str | None = None
    outcome: str | None = None
    scope_ref: str | None = None
    request_id: str | None = None
    client_request_id: str | None = None

    def named(self) -> list[str]:
        """Return the names of the filters that are set."""
        names = ("since", "until", *_EQUAL, CLIENT_REQUEST_ID)
        return [name for name in names if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event as stored in the record, with the MAC over its payload."""

    event: AuditEvent
    mac: bytes


async def find_event(tx: AsyncConnection, tenant: str, event_id: UUID) -> RecordedEvent | None:
    """Return one event."""
    query = select(audit_event).where(audit_event.c.tenant == tenant, audit_event.c.id == event_id)
    row = (await tx.execute(query)).one_or_none()
    return recorded(row._asdict()) if row is not None else None


async def list_events(
    tx: AsyncConnection, tenant: str, filters: AuditFilters, *, before: UUID | None, limit: int
) -> Sequence[RecordedEvent]:
    """Return the events whose ids are below ``before`` (None: all), the highest first.

    Ids are unique and never change, so that pages which follow each other hold every event that was there when the
    first was read, whatever the clocks did that made them.
    """
    query = select(audit_event).where(audit_event.c.tenant == tenant)
    query = paged(_filtered(query, filters), audit_event.c.id, behind=before, limit=limit, newest_first=True)
    return [recorded(row._asdict()) for row in await tx.execute(query)]


async def unfinished_writers(tx: AsyncConnection) -> frozenset[str]:
    """Return the transactions of other connections that have added to the record and have not ended.

    Each name is of one transaction alone. SQLite has none: there a reader sees all that was written before it.
    """
    if tx.dialect.name != "postgresql":
        return frozenset()
    return frozenset((await tx.execute(_WRITERS)).scalars())


async def make_partitions(tx: AsyncConnection, months: int = 3) -> None:
    """Create the record's partitions of this and the next months; SQLite has none."""
    if tx.dialect.name == "postgresql":
        await tx.execute(text("SELECT sluice_make_audit_partitions(:months)"), {"months": months})


def _filtered(query: Select[Any], filters: AuditFilters) -> Select[Any]:
    for name in _EQUAL:
        wanted = getattr(filters, name)
        if wanted is not None:
            query = query.where(audit_event.c[name] == wanted)
    if filters.client_request_id is not None:
        theirs = audit_event.c.details[CLIENT_REQUEST_ID].as_string()
        query = query.where(theirs == filters.client_request_id)
    if filters.since is not None:
        query = query.where(audit_event.c.at >= filters.since)
    if filters.until is not None:
        query = query.where(audit_event.c.at < filters.until)
    return query


def recorded(row: Mapping[str, Any]) -> RecordedEvent:
    """Return a row of the record, its values by column, as an event."""
    columns = dict(row)
    mac, roles = columns.pop("mac"), columns.pop("roles")
    columns.pop(WRITTEN_BY)
    return RecordedEvent(AuditEvent(roles=tuple(roles), **columns), mac)
