"""The canonical bytes of an event: its authentication code and its leaf in the log are computed over them."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Final

from app.core.audit import AuditEvent
from app.engines.cipher import RecordKeys

_LEAF_VERSION: Final = b"\x01"
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def payload(event: AuditEvent) -> bytes:
    """Return the canonical bytes of ``event``, over which its MAC, and later its leaf in the log, is computed.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256.
    """
    fields = {
        "v": 1,
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
    return _CANONICAL.encode(fields).encode()


def event_mac(keys: RecordKeys, event: AuditEvent) -> bytes:
    """Return the message authentication code that an event is stored with."""
    return keys.mac(event.tenant, payload(event))


def leaf_of(event: AuditEvent) -> bytes:
    """Return the bytes of an event as an entry of its tenant's log: a version byte and the event's payload."""
    return _LEAF_VERSION + payload(event)


def payload_of(leaf: bytes) -> bytes:
    """Return the event's payload, over which its authentication code is computed, in the bytes of its leaf."""
    return leaf.removeprefix(_LEAF_VERSION)
