"""Tables of the log that proves the audit record: a Merkle tree per tenant, and one of all their heads.

Nobody but the sealer (``store.audit.log``) adds to them. A tile's ``log`` is a tenant, or ``*``: the tree of heads.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)

from app.store.tables import Document, Instant, metadata

__all__ = [
    "log_anchor",
    "log_checkpoint",
    "log_count",
    "log_counted",
    "log_entry",
    "log_head",
    "log_leaf",
    "log_sink",
    "log_tile",
    "log_writer",
    "metadata",
]


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, autoincrement=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


log_leaf = Table(
    "log_leaf",
    metadata,
    *(_text("tenant"), _number("position"), Column("event", Uuid, nullable=False)),
    # When the event happened: its partition is found by that.
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "position"),
    UniqueConstraint("tenant", "event"),
)

log_tile = Table(
    "log_tile",
    metadata,
    *(_text("log"), _number("level"), _number("number"), _blob("hashes")),
    PrimaryKeyConstraint("log", "level", "number"),
)

log_head = Table(
    "log_head",
    metadata,
    # The newest head of each tenant, and its position in the tree of heads.
    *(_text("tenant"), _number("size"), _blob("root"), _number("entry")),
    PrimaryKeyConstraint("tenant"),
)

log_entry = Table(
    "log_entry",
    metadata,
    *(_number("position"), _text("tenant"), _number("size"), _blob("root")),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("position"),
    Index(None, "tenant", "size"),
)

log_checkpoint = Table(
    "log_checkpoint",
    metadata,
    *(_number("size"), _text("note")),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("size"),
)

log_writer = Table(
    "log_writer",
    metadata,
    # The highest number of each writer in a tenant's log, and ranges of lower ones that may still come.
    *(_text("tenant"), _text("writer"), _number("number")),
    Column("missing", Document, nullable=False),
    # When an event of the writer was last sealed.
    Column("at", Instant, nullable=True),
    PrimaryKeyConstraint("tenant", "writer"),
)

log_anchor = Table(
    "log_anchor",
    metadata,
    # The newest checkpoint that each anchor is known to keep.
    *(_text("name"), _number("size"), _blob("root")),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("name"),
)

log_count = Table(
    "log_count",
    metadata,
    # Sealed events by the day (YYYY-MM-DD, UTC) on which they happened.
    *(_text("tenant"), _text("day"), _text("action"), _text("outcome"), _text("actor"), _number("events")),
    PrimaryKeyConstraint("tenant", "day", "action", "outcome", "actor"),
)

log_counted = Table(
    "log_counted",
    metadata,
    # How many leaves of each tenant's log are in its counts.
    *(_text("tenant"), _number("size")),
    PrimaryKeyConstraint("tenant"),
)

log_sink = Table(
    "log_sink",
    metadata,
    # The next entry of the tree of heads that each sink gets, and the position in its tenant's log.
    *(_text("name"), _number("entry"), _number("position")),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("name"),
)
