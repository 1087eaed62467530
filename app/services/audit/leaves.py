"""The canonical bytes of an event: its authentication code and its leaf in the log are computed over them."""

from collections.abc import Sequence
from typing import Any, Final

from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.transparency.hashing import leaf_hash
from app.engines.cipher import RecordKeys
from app.services.audit.canonical import CanonicalForm
from app.store.audit.audit import RecordedEvent

_UNNUMBERED: Final = 1
_NUMBERED: Final = 2
"""Versions of the canonical form; each is the first byte of its leaves."""
_FORMS: Final = {
    _UNNUMBERED: CanonicalForm(_UNNUMBERED, numbered=False),
    _NUMBERED: CanonicalForm(_NUMBERED, numbered=True),
}


def payload(event: AuditEvent, number: WriterNumber | None = None) -> bytes:
    """Return the canonical bytes of ``event``, over which its leaf in the log is computed.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256. ``number`` is None for an event
    from before events were numbered.
    """
    return (
        _FORMS[_UNNUMBERED].of_event(event) if number is None else _FORMS[_NUMBERED].of_event(event, *number)
    )


def leaf_of(recorded: RecordedEvent) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log: a version byte and the event's payload."""
    version = _UNNUMBERED if recorded.number is None else _NUMBERED
    return bytes([version]) + payload(recorded.event, recorded.number)


class StoredLeaves:
    """Makes leaves of stored rows whose columns are named so, without an object for each."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._writer = columns.index("writer")
        self._unnumbered = _FORMS[_UNNUMBERED].of_stored(columns)
        self._numbered = _FORMS[_NUMBERED].of_stored(columns)

    def __call__(self, row: Sequence[Any]) -> tuple[bytes, bytes | None]:
        """Return a row's leaf, as `leaf_of`, and what its code is over (None: the leaf's hash).

        Raises TypeError, ValueError or AttributeError for a row that no event was stored as.
        """
        if row[self._writer] is None:
            signed = self._unnumbered(row)
            return bytes([_UNNUMBERED]) + signed, signed
        return bytes([_NUMBERED]) + self._numbered(row), None


def event_code(keys: RecordKeys, event: AuditEvent, number: WriterNumber) -> EventCode:
    """Return the hash of a numbered event's leaf, and its authentication code."""
    leaf = leaf_hash(bytes([_NUMBERED]) + payload(event, number))
    return EventCode(leaf, keys.mac(event.tenant, leaf))


def expected_mac(keys: RecordKeys, recorded: RecordedEvent, leaf: bytes | None = None) -> bytes:
    """Return the authentication code that a stored event must have: over its leaf's hash, or its payload if old.

    ``leaf`` is the hash of `leaf_of`, where it is known.
    """
    event = recorded.event
    if recorded.number is None:
        return keys.mac(event.tenant, payload(event))
    return keys.mac(event.tenant, leaf or leaf_hash(leaf_of(recorded)))
