"""Bound what a query of the record reads by ids, without losing events whose ids tell another time than they do.

An id begins with the milliseconds at which it was made, and the events of each filter are indexed by id. An event's own
time says the same, but where a clock was set back: a process's ids go on from the highest, its events do not. Those
events, *astray* by more than a minute, have an index of their own, and are asked for beside the others.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Select

from app.core.ids import lowest_uuid7
from app.store.tables import audit_event

_NEAR: Final = timedelta(minutes=2)
"""More than what is not astray can be away from its id, whatever was rounded."""
_FIRST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
# SQLite uses the index for the words of its own condition alone, and not by itself: it takes the index of all times.
_ASTRAY: Final = (
    "SELECT id, at FROM audit_event INDEXED BY ix_audit_event_astray WHERE tenant = ?1 AND substr(id, 1, 12) "
    "NOT BETWEEN printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) - 60000) "
    "AND printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) + 60000) "
    "AND (?2 IS NULL OR at >= ?2) AND (?3 IS NULL OR at < ?3) AND (?4 IS NULL OR id < ?4) ORDER BY id DESC LIMIT ?5"
)


class EventFinding(NamedTuple):
    """A statement that finds ids and times of events; the id behind them and their number are its last parameters."""

    statement: str
    asked: tuple[Any, ...]


def astray(dialect: str, tenant: str, since: datetime | None, until: datetime | None) -> EventFinding:
    """Return how a tenant's events of a time are found that are astray."""
    if dialect == "sqlite":
        return EventFinding(_ASTRAY, (tenant, since, until))
    return EventFinding("SELECT id, at FROM sluice_astray_events($1, $2, $3, $4)", (since, until))


def place_of(row: Sequence[Any]) -> tuple[UUID, datetime]:
    """Return the id and the time in a row that a finding found."""
    event, at = row
    if isinstance(event, str):  # SQLite
        return UUID(event), datetime.fromisoformat(at).replace(tzinfo=UTC)
    return event, at


def within_ids(query: Select[Any], since: datetime | None, until: datetime | None) -> Select[Any]:
    """Return ``query`` for the ids of the time from ``since`` to ``until``; what is astray may not be among them."""
    if since is not None and since > _FIRST:
        query = query.where(audit_event.c.id >= lowest_uuid7(since - _NEAR))
    if until is not None and until < _LAST:
        query = query.where(audit_event.c.id < lowest_uuid7(until + _NEAR))
    return query
