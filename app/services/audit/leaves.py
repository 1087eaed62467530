"""The canonical bytes of an event: its authentication code and its leaf in the log are computed over them."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.transparency.hashing import leaf_hash
from app.engines.cipher import RecordKeys
from app.services.audit.canonical import IDENTITY, CanonicalForm
from app.store.audit.audit import RecordedEvent

_UNNUMBERED: Final = 1
_NUMBERED: Final = 2
_IDENTIFIED: Final = 3
"""Versions of the canonical form; each is the first byte of its leaves."""
_FORMS: Final = {
    (_UNNUMBERED, False): CanonicalForm(_UNNUMBERED, numbered=False),
    (_NUMBERED, True): CanonicalForm(_NUMBERED, numbered=True),
    (_IDENTIFIED, True): CanonicalForm(_IDENTIFIED, numbered=True, identified=True),
    # No release made such events: what somebody adds to one without a number changes its leaf, too.
    (_IDENTIFIED, False): CanonicalForm(_IDENTIFIED, numbered=False, identified=True),
}
"""The forms by their version, and by whether the event has a number."""
_LATER: Final = tuple(name for name in IDENTITY if name != "versions")
_NOTHING: Final = (None,) * len(_LATER)


def payload(event: AuditEvent, number: WriterNumber | None = None) -> bytes:
    """Return the canonical bytes of ``event``, over which its leaf in the log is computed.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256. ``number`` is None for an event
    from before events were numbered; one with none of the newest members is from before they existed.
    """
    form = _FORMS[_version(event, number), number is not None]
    return form.of_event(event, *(number or ()))


def leaf_of(recorded: RecordedEvent) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log: a version byte and the event's payload."""
    event, number = recorded.event, recorded.number
    return bytes([_version(event, number)]) + payload(event, number)


def _version(event: AuditEvent, number: WriterNumber | None) -> int:
    """Return the version of an event's form: which members its release had, by what is stored of it."""
    if event.versions is not None or any(getattr(event, name) is not None for name in _LATER):
        return _IDENTIFIED
    return _UNNUMBERED if number is None else _NUMBERED


class StoredLeaves:
    """Makes leaves of stored rows whose columns are named so, without an object for each."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._writer, self._versions = columns.index("writer"), columns.index("versions")
        self._later = itemgetter(*(columns.index(name) for name in _LATER))
        self._forms = {key: form.of_stored(columns) for key, form in _FORMS.items()}

    def __call__(self, row: Sequence[Any]) -> tuple[bytes, bytes | None]:
        """Return a row's leaf, as `leaf_of`, and what its code is over (None: the leaf's hash).

        Raises TypeError, ValueError or AttributeError for a row that no event was stored as.
        """
        is_numbered = row[self._writer] is not None
        version = _NUMBERED if is_numbered else _UNNUMBERED
        if row[self._versions] is not None or self._later(row) != _NOTHING:
            version = _IDENTIFIED
        form = self._forms[version, is_numbered](row)
        return bytes([version]) + form, None if is_numbered else form


def event_code(keys: RecordKeys, event: AuditEvent, number: WriterNumber) -> EventCode:
    """Return the hash of a numbered event's leaf, and its authentication code."""
    leaf = leaf_hash(leaf_of(RecordedEvent(event, b"", number)))
    return EventCode(leaf, keys.mac(event.tenant, leaf))


def expected_mac(keys: RecordKeys, recorded: RecordedEvent, leaf: bytes | None = None) -> bytes:
    """Return the authentication code that a stored event must have: over its leaf's hash, or its payload if old.

    ``leaf`` is the hash of `leaf_of`, where it is known.
    """
    event = recorded.event
    if recorded.number is None:
        return keys.mac(event.tenant, payload(event))
    return keys.mac(event.tenant, leaf or leaf_hash(leaf_of(recorded)))
