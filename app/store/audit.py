"""Queries on the audit record: rows are added and read, never changed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import Row, Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import AuditEvent
from app.store.bulk import insert_rows
from app.store.tables import audit_event

Transaction: TypeAlias = AsyncConnection
"""An open transaction, for services that hand one on without looking into it."""

_EQUAL = ("actor", "middleware", "action", "outcome", "scope_ref", "request_id")


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """Which events are asked for; None does not filter. ``since`` is included, ``until`` is not."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str | None = None
    middleware: str | None = None
    action: str | None = None
    outcome: str | None = None
    scope_ref: str | None = None
    request_id: str | None = None

    def named(self) -> list[str]:
        """Return the names of the filters that are set."""
        return [name for name in ("since", "until", *_EQUAL) if getattr(self, name) is not None]


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event as it lies in the record, with the MAC over its payload."""

    event: AuditEvent
    mac: bytes


AUDIT_COLUMNS = tuple(column.name for column in audit_event.columns)


def audit_row(recorded: RecordedEvent) -> tuple[Any, ...]:
    """Return one event in the order of AUDIT_COLUMNS, JSON as text, for ``insert_rows``."""
    event = recorded.event
    return (
        event.tenant,
        event.id,
        event.at,
        event.actor,
        json.dumps(sorted(event.roles)),
        event.action,
        event.outcome,
        event.middleware,
        event.policy_version,
        event.error_code,
        event.scope_ref,
        event.in_hmac,
        event.out_hmac,
        event.blocks,
        event.bytes_in,
        event.bytes_out,
        json.dumps(dict(event.counts)),
        event.duration_us,
        event.request_id,
        event.traceparent,
        json.dumps(dict(event.details)),
        event.sealed,
        recorded.mac,
    )


async def add_events(tx: AsyncConnection, recorded: Sequence[RecordedEvent]) -> None:
    """Store events of one or more tenants that ``tx`` may write."""
    await insert_rows(tx, audit_event, AUDIT_COLUMNS, [audit_row(one) for one in recorded])


async def find_event(tx: AsyncConnection, tenant: str, event_id: UUID) -> RecordedEvent | None:
    """Return one event."""
    query = select(audit_event).where(audit_event.c.tenant == tenant, audit_event.c.id == event_id)
    row = (await tx.execute(query)).one_or_none()
    return _recorded(row) if row is not None else None


async def list_events(
    tx: AsyncConnection, tenant: str, filters: AuditFilters, *, before: UUID | None, limit: int
) -> Sequence[RecordedEvent]:
    """Return events newest first, those made before the event ``before``; ids sort by time."""
    query = select(audit_event).where(audit_event.c.tenant == tenant)
    query = _filtered(query, filters).order_by(audit_event.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_event.c.id < before)
    return [_recorded(row) for row in await tx.execute(query)]


def _filtered(query: Select[Any], filters: AuditFilters) -> Select[Any]:
    for name in _EQUAL:
        wanted = getattr(filters, name)
        if wanted is not None:
            query = query.where(audit_event.c[name] == wanted)
    if filters.since is not None:
        query = query.where(audit_event.c.at >= filters.since)
    if filters.until is not None:
        query = query.where(audit_event.c.at < filters.until)
    return query


def _recorded(row: Row[Any]) -> RecordedEvent:
    columns = row._asdict()
    mac, roles = columns.pop("mac"), columns.pop("roles")
    return RecordedEvent(AuditEvent(roles=tuple(roles), **columns), mac)
