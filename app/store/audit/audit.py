"""Queries on the audit record; ``store.writer`` adds to it, and nothing ever changes it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Select, literal_column, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import CLIENT_REQUEST_ID, AuditEvent, WriterNumber
from app.core.errors import InvalidArgumentsError
from app.store.audit.id_bounds import EventFinding, astray, place_of, within_ids
from app.store.bulk import fetch
from app.store.effort import TooMuchEffortError, limited
from app.store.paging import paged
from app.store.tables import audit_event

Transaction: TypeAlias = AsyncConnection
"""An open transaction, for services that pass it on without using it."""

QUERY_S = 2.0
"""Seconds that finding one page may take before the query is refused as too wide."""

_FOUND = 1_000
"""How many events that were found are looked at in one step."""
_MEMBERS = len(fields(AuditEvent))
_EVIDENCE = 4
"""Columns behind an event's members: its writer and number, its leaf and its code."""
EQUAL = ("actor", "on_behalf_of", "middleware", "action", "outcome", "scope_ref", "request_id")
"""Filters that are members of events, and pass those with the same value."""


# Row-level security would keep PostgreSQL from using the index of this expression.
_CLIENT_EVENTS = "SELECT id, at FROM sluice_client_events($1, $2, $3, $4, $5)"
_CLIENT_ID: ColumnElement[str] = literal_column(f"json_extract(details, '$.{CLIENT_REQUEST_ID}')")
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
    on_behalf_of: str | None = None

    def named(self) -> list[str]:
        """Return the names of the filters that are set."""
        names = ("since", "until", *EQUAL, CLIENT_REQUEST_ID)
        return [name for name in names if getattr(self, name) is not None]


class TooWideError(InvalidArgumentsError):
    """The query would have to read too many events; the message says how to narrow it."""

    def __init__(self, filters: AuditFilters) -> None:
        missing = [name for name in ("since", "until") if getattr(filters, name) is None]
        narrower = "shorter" if not missing else "short"
        super().__init__(
            f"Too many events would have to be read to answer this in {QUERY_S:.0f} s. Give a {narrower} time between "
            "since and until, or a filter that few events pass, such as a scope, an actor or a request id.",
            details={"pointer": f"/{(missing or ['since'])[0]}", "reason": "too_wide"},
        )


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event as stored in the record, with its MAC; ``number`` is None from before events were numbered."""

    event: AuditEvent
    mac: bytes
    number: WriterNumber | None = None


async def find_event(tx: AsyncConnection, tenant: str, event_id: UUID) -> RecordedEvent | None:
    """Return one event."""
    query = select(audit_event).where(audit_event.c.tenant == tenant, audit_event.c.id == event_id)
    row = (await tx.execute(query)).one_or_none()
    return recorded(row) if row is not None else None


async def list_events(
    tx: AsyncConnection, tenant: str, filters: AuditFilters, *, before: UUID | None, limit: int
) -> Sequence[RecordedEvent]:
    """Return the events whose ids are below ``before`` (None: all), the highest first.

    Ids are unique and never change, so that pages which follow each other hold every event that was there when the
    first was read, whatever the clocks did that made them. Raises ``TooWideError`` where too many events would have to
    be read to find them.
    """
    try:
        async with limited(tx, QUERY_S):
            if filters.client_request_id is not None and tx.dialect.name == "postgresql":
                asked = (filters.client_request_id, filters.since, filters.until)
                return await _list_found(
                    tx, tenant, filters, before, limit, EventFinding(_CLIENT_EVENTS, asked)
                )
            query = within_ids(_filtered(tx, tenant, filters), filters.since, filters.until)
            query = paged(query, audit_event.c.id, behind=before, limit=limit, newest_first=True)
            events = [recorded(row) for row in await tx.execute(query)]
            if filters.since is None and filters.until is None:
                return events
            finding = astray(tx.dialect.name, tenant, filters.since, filters.until)
            more = await _list_found(tx, tenant, filters, before, limit, finding)
            return _joined(events, more, limit) if more else events
    except TooMuchEffortError:
        raise TooWideError(filters) from None


def _joined(
    events: Sequence[RecordedEvent], more: Sequence[RecordedEvent], limit: int
) -> list[RecordedEvent]:
    """Return the ``limit`` highest of both, each once."""
    by_id = {recorded.event.id: recorded for recorded in (*events, *more)}
    return [by_id[event] for event in sorted(by_id, reverse=True)[:limit]]


async def _list_found(
    tx: AsyncConnection,
    tenant: str,
    filters: AuditFilters,
    before: UUID | None,
    limit: int,
    finding: EventFinding,
) -> Sequence[RecordedEvent]:
    """Find events first, then read those of them that the filters leave."""
    events: list[RecordedEvent] = []
    while True:
        places = [
            place_of(row) for row in await fetch(tx, finding.statement, (*finding.asked, before, _FOUND))
        ]
        if places:
            query = _filtered(tx, tenant, filters).where(
                tuple_(audit_event.c.id, audit_event.c.at).in_(places)
            )
            query = paged(query, audit_event.c.id, limit=limit - len(events), newest_first=True)
            events += [recorded(row) for row in await tx.execute(query)]
        if len(places) < _FOUND or len(events) == limit:
            return events
        before = places[-1][0]


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


async def drop_emptied_partitions(tx: AsyncConnection) -> int:
    """Drop the record's partitions of months that are over and whose events are all deleted; return how many.

    None is dropped while another transaction uses the record: the next try may.
    """
    if tx.dialect.name != "postgresql":
        return 0
    return int((await tx.execute(text("SELECT sluice_drop_emptied_months()"))).scalar_one())


def _filtered(tx: AsyncConnection, tenant: str, filters: AuditFilters) -> Select[Any]:
    """Return the query of a tenant's events; on PostgreSQL a function finds those with a client's request id."""
    query = select(audit_event).where(audit_event.c.tenant == tenant)
    for name in EQUAL:
        wanted = getattr(filters, name)
        if wanted is not None:
            query = query.where(audit_event.c[name] == wanted)
    if filters.since is not None:
        query = query.where(audit_event.c.at >= filters.since)
    if filters.until is not None:
        query = query.where(audit_event.c.at < filters.until)
    if filters.client_request_id is not None and tx.dialect.name == "sqlite":
        query = query.where(_CLIENT_ID.in_([filters.client_request_id]))
    return query


def recorded(row: Sequence[Any]) -> RecordedEvent:
    """Return a row of the record as an event; its columns begin in the order of an event's members."""
    tenant, event_id, at, actor, roles, *rest = row[:_MEMBERS]
    writer, number, _leaf, mac = row[_MEMBERS : _MEMBERS + _EVIDENCE]
    event = AuditEvent(tenant, event_id, at, actor, tuple(roles), *rest)
    return RecordedEvent(event, mac, WriterNumber(writer, number) if writer is not None else None)
