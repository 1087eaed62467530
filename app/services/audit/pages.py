"""Which time a page of the record covers, and the cursor that carries it to the next one."""

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from app.core.audit import AuditEvent
from app.core.errors import InvalidArgumentsError

WINDOW = timedelta(days=30)
"""How far back a query without a beginning looks."""

_CURSOR_VERSION = b"\x02"
_OLD_CURSOR_VERSION = b"\x01"
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_ID_BYTES, _TIME_BYTES = 16, 8
_SECOND = 1_000_000


class AuditPage(NamedTuple):
    """Events, newest first, the cursor of the next page (None: this is the last), and the beginning of the time."""

    items: list[AuditEvent]
    next: str | None
    since: datetime


class Place(NamedTuple):
    """Where a page begins: behind an event, within the time since ``since`` (None: a cursor of before 0.3)."""

    before: UUID
    since: datetime | None


def beginning(until: datetime | None, now: datetime) -> datetime:
    """Return where the time of a query begins that ends at ``until`` (None: now) and names no beginning."""
    try:
        return max((until or now) - WINDOW, _BEGINNING)
    except OverflowError:
        return _BEGINNING


def cursor_of(place: Place) -> str:
    """Return the cursor of the page that begins at ``place``."""
    micros = round(place.since.timestamp() * _SECOND) if place.since is not None else 0
    raw = _CURSOR_VERSION + place.before.bytes + micros.to_bytes(_TIME_BYTES, "big", signed=True)
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def place_of(cursor: str) -> Place:
    """Return where a cursor continues; a forged one still reads only the caller's own tenant."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        version, number, time = raw[:1], raw[1 : 1 + _ID_BYTES], raw[1 + _ID_BYTES :]
        if version == _OLD_CURSOR_VERSION and not time:
            return Place(UUID(bytes=number), None)
        if version == _CURSOR_VERSION and len(time) == _TIME_BYTES:
            micros = int.from_bytes(time, "big", signed=True)
            return Place(UUID(bytes=number), _BEGINNING + timedelta(microseconds=micros))
    except (ValueError, OverflowError, binascii.Error):
        pass
    raise InvalidArgumentsError("The cursor was not issued by this service.", details={"pointer": "/cursor"})
