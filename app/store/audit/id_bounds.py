"""Bound what a query of the record reads by ids, without losing events whose ids tell another time than they do.

An id begins with the milliseconds at which it was made, and the events of each filter are indexed by id. An event's own
time says the same, but where a clock was set back: a process's ids go on from the highest, its events do not. Those
events, *astray* by more than a minute, have an index of their own, and are asked for beside the others.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Select, text

from app.core.ids import lowest_uuid7
from app.store.tables import audit_event

ASTRAY_EVENTS: Final = "SELECT id, at FROM sluice_astray_events($1, $2, $3, $4)"
"""Finds a tenant's events that are astray (PostgreSQL); parameters: since, until, the id behind them, how many."""

_NEAR: Final = timedelta(minutes=2)
"""More than what is not astray can be away from its id, whatever was rounded."""
_FIRST: Final = datetime(1970, 1, 2, tzinfo=UTC)
_LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
_ASTRAY: Final = (
    "substr(id, 1, 12) NOT BETWEEN "
    "printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) - 60000) AND "
    "printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) + 60000)"
)
"""The condition of the index, in its words: SQLite uses it for no others."""


def within_ids(query: Select[Any], since: datetime | None, until: datetime | None) -> Select[Any]:
    """Return ``query`` for the ids of the time from ``since`` to ``until``; what is astray may not be among them."""
    if since is not None and since > _FIRST:
        query = query.where(audit_event.c.id >= lowest_uuid7(since - _NEAR))
    if until is not None and until < _LAST:
        query = query.where(audit_event.c.id < lowest_uuid7(until + _NEAR))
    return query


def astray(query: Select[Any]) -> Select[Any]:
    """Return ``query`` for events that are astray alone (SQLite)."""
    return query.where(text(_ASTRAY)).with_hint(audit_event, "INDEXED BY ix_audit_event_astray", "sqlite")
