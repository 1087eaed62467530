"""The leaves and codes that events on record must have, for those who check them."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from app.core.transparency.hashing import leaf_hash
from app.engines.cipher import RecordKeys
from app.services.audit.canonical import FORMS, IDENTIFIED, LATER, NUMBERED, UNNUMBERED, event_leaf, payload
from app.store.audit.audit import RecordedEvent

_NOTHING: Final = (None,) * len(LATER)


def leaf_of(recorded: RecordedEvent) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log."""
    return event_leaf(recorded.event, recorded.number)


class StoredLeaves:
    """Makes leaves of stored rows whose columns are named so, without an object for each."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._writer, self._versions = columns.index("writer"), columns.index("versions")
        self._later = itemgetter(*(columns.index(name) for name in LATER))
        self._forms = {key: form.of_stored(columns) for key, form in FORMS.items()}

    def __call__(self, row: Sequence[Any]) -> tuple[bytes, bytes | None]:
        """Return a row's leaf, as `leaf_of`, and what its code is over (None: the leaf's hash).

        Raises TypeError, ValueError or AttributeError for a row that no event was stored as.
        """
        is_numbered = row[self._writer] is not None
        version = NUMBERED if is_numbered else UNNUMBERED
        if row[self._versions] is not None or self._later(row) != _NOTHING:
            version = IDENTIFIED
        form = self._forms[version, is_numbered](row)
        return bytes([version]) + form, None if is_numbered else form


def expected_mac(keys: RecordKeys, recorded: RecordedEvent, leaf: bytes | None = None) -> bytes:
    """Return the authentication code that a stored event must have: over its leaf's hash, or its payload if old.

    ``leaf`` is the hash of `leaf_of`, where it is known.
    """
    event = recorded.event
    if recorded.number is None:
        return keys.mac(event.tenant, payload(event))
    return keys.mac(event.tenant, leaf or leaf_hash(leaf_of(recorded)))
