"""The canonical bytes of an event: its authentication code and its leaf in the log are computed over them."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Final

from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.transparency.hashing import leaf_hash
from app.engines.cipher import RecordKeys
from app.store.audit.audit import RecordedEvent

_UNNUMBERED: Final = 1
_NUMBERED: Final = 2
"""Versions of the canonical form; each is the first byte of its leaves."""
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def payload(event: AuditEvent, number: WriterNumber | None = None) -> bytes:
    """Return the canonical bytes of ``event``, over which its leaf in the log is computed.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256. ``number`` is None for an event
    from before events were numbered.
    """
    fields: dict[str, object] = {
        "v": _UNNUMBERED if number is None else _NUMBERED,
        "tenant": event.tenant,
        "id": event.id.hex,
        "at": round((event.at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000),
        "actor": event.actor,
        "roles": sorted(event.roles),
        "action": event.action,
        "outcome": event.outcome,
        "middleware": event.middleware,
        "policy_version": event.policy_version,
        "error_code": event.error_code,
        "scope_ref": event.scope_ref,
        "in_hmac": event.in_hmac,
        "out_hmac": event.out_hmac,
        "blocks": event.blocks,
        "bytes_in": event.bytes_in,
        "bytes_out": event.bytes_out,
        "counts": dict(event.counts),
        "duration_us": event.duration_us,
        "request_id": event.request_id,
        "traceparent": event.traceparent,
        "details": dict(event.details),
        "sealed": hashlib.sha256(event.sealed).hexdigest() if event.sealed is not None else None,
    }
    if number is not None:
        fields["writer"], fields["writer_seq"] = number
    return _CANONICAL.encode(fields).encode()


def leaf_of(recorded: RecordedEvent) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log: a version byte and the event's payload."""
    version = _UNNUMBERED if recorded.number is None else _NUMBERED
    return bytes([version]) + payload(recorded.event, recorded.number)


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
