"""The columns of an archived part: those members of events that their leaves are made of, each with a type of its own.

A leaf is made of what the columns hold and nothing else, so that whoever verifies a part has verified all of it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from app.core.archive import ArchivedRow
from app.core.audit import AuditEvent

SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("leaf", pa.binary(32)),  # of an event that was deleted before: nothing else of it is there
        pa.field("v", pa.int8()),
        pa.field("id", pa.string()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("tenant", pa.string()),
        pa.field("actor", pa.string()),
        pa.field("roles", pa.list_(pa.string())),
        pa.field("action", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("middleware", pa.string()),
        pa.field("policy_version", pa.int64()),
        pa.field("error_code", pa.string()),
        pa.field("scope_ref", pa.string()),
        pa.field("in_hmac", pa.string()),
        pa.field("out_hmac", pa.string()),
        pa.field("blocks", pa.int64()),
        pa.field("bytes_in", pa.int64()),
        pa.field("bytes_out", pa.int64()),
        pa.field("counts", pa.map_(pa.string(), pa.int64())),
        pa.field("duration_us", pa.int64()),
        pa.field("request_id", pa.string()),
        pa.field("traceparent", pa.string()),
        pa.field("details", pa.string()),  # JSON: values of several types
        pa.field("sealed", pa.string()),  # SHA-256 of what was kept, which is not archived
        pa.field("on_behalf_of", pa.string()),
        pa.field("key_name", pa.string()),
        pa.field("address_class", pa.string()),
        pa.field("decision", pa.string()),
        pa.field("versions", pa.string()),  # JSON
        pa.field("writer", pa.string()),
        pa.field("writer_seq", pa.int64()),
    ]
)
_SAME: Final = (
    *(
        "at",
        "tenant",
        "actor",
        "action",
        "outcome",
        "middleware",
        "policy_version",
        "error_code",
        "scope_ref",
    ),
    *("in_hmac", "out_hmac", "blocks", "bytes_in", "bytes_out", "duration_us", "request_id", "traceparent"),
    *("on_behalf_of", "key_name", "address_class", "decision"),
)
_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def batch_of(rows: Sequence[ArchivedRow]) -> pa.RecordBatch:
    """Return rows as columns; an event that does not fit into them raises ValueError or TypeError."""
    try:
        return pa.RecordBatch.from_pylist([_columns(row) for row in rows], schema=SCHEMA)
    except pa.ArrowException as error:
        raise ValueError(type(error).__name__) from None


def event_of(row: Mapping[str, Any]) -> AuditEvent:
    """Return the event of a row; raise ValueError or TypeError where it has none."""
    same = {name: row[name] for name in _SAME}
    return AuditEvent(
        id=UUID(row["id"]),
        roles=tuple(row["roles"]),
        counts=dict(row["counts"]),
        details=json.loads(row["details"]),
        versions=json.loads(row["versions"]) if row["versions"] is not None else None,
        **same,
    )


def _columns(row: ArchivedRow) -> dict[str, Any]:
    event = row.event
    if event is None:
        return {"position": row.position, "leaf": row.leaf}
    writer, number = row.number or (None, None)
    return {
        **{name: getattr(event, name) for name in _SAME},
        "position": row.position,
        "v": row.version,
        "id": str(event.id),
        "roles": sorted(event.roles),
        "counts": sorted(event.counts.items()),
        "details": _JSON(dict(event.details)),
        "sealed": hashlib.sha256(event.sealed).hexdigest() if event.sealed is not None else None,
        "versions": _JSON(dict(event.versions)) if event.versions is not None else None,
        "writer": writer,
        "writer_seq": number,
    }
