"""Read events of the archive beside those of the database: the highest ids first, each event once."""

from collections.abc import AsyncIterator, Sequence
from typing import Final
from uuid import UUID

from app.core.archive import ArchivedPart, ArchiveSearch, EventArchive
from app.core.audit import AuditEvent
from app.store.audit.audit import EQUAL, AuditFilters

_CHUNK: Final = 10_000
"""Events that are read at a time, for which a file is read once."""


def joined(stored: Sequence[AuditEvent], archived: Sequence[AuditEvent], limit: int) -> list[AuditEvent]:
    """Return the ``limit`` highest of both, each once: as the database has it, where both do."""
    events = {event.id: event for event in (*archived, *stored)}
    return sorted(events.values(), key=_id, reverse=True)[:limit]


async def archived_page(
    archive: EventArchive, tenant: str, filters: AuditFilters, *, before: UUID | None, limit: int
) -> list[AuditEvent]:
    """Return a tenant's events whose ids are below ``before`` (None: all), the highest first."""
    equal = {name: value for name in EQUAL if (value := getattr(filters, name)) is not None}
    search = ArchiveSearch(equal, limit, filters.since, filters.until, before, filters.client_request_id)
    events: list[AuditEvent] = []
    parts = [part for part in await archive.parts(tenant) if _may_have(part, search)]
    for stored in sorted(parts, key=_highest, reverse=True):
        if len(events) == limit and _highest(stored) < str(events[-1].id):
            break
        events = joined(events, await archive.find(stored.part, search), limit)
    return events


async def archived_events(
    archive: EventArchive, tenant: str, filters: AuditFilters
) -> AsyncIterator[AuditEvent]:
    """Yield all of a tenant's events, the highest first."""
    before: UUID | None = None
    while True:
        events = await archived_page(archive, tenant, filters, before=before, limit=_CHUNK)
        for event in events:
            yield event
        if len(events) < _CHUNK:
            return
        before = events[-1].id


async def merged(
    stored: AsyncIterator[AuditEvent], archived: AsyncIterator[AuditEvent]
) -> AsyncIterator[AuditEvent]:
    """Yield what both yield, the highest first, each event once: as ``stored`` has it, where both do."""
    old = await anext(archived, None)
    async for event in stored:
        while old is not None and old.id >= event.id:
            if old.id > event.id:
                yield old
            old = await anext(archived, None)
        yield event
    while old is not None:
        yield old
        old = await anext(archived, None)


def _may_have(stored: ArchivedPart, search: ArchiveSearch) -> bool:
    """Return whether a part's times and ids allow that it has an event that is searched for."""
    if stored.times is None or stored.ids is None:
        return False
    first, last = stored.times
    return (
        (search.since is None or last >= search.since)
        and (search.until is None or first < search.until)
        and (search.before is None or stored.ids[0] < str(search.before))
    )


def _highest(stored: ArchivedPart) -> str:
    return stored.ids[1] if stored.ids is not None else ""


def _id(event: AuditEvent) -> UUID:
    return event.id
