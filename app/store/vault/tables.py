"""Tables of the vault beside scopes and entries: keys, erasures, and what the gateway keeps of a conversation."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    false,
    text,
)

from app.store.tables import Document, Instant, metadata


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _blob(name: str) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=False)


# Ids of responses and conversations that a provider gave, as keyed digests: which scope they belong to, and whose
# they are. ``handles`` are those that the conversation behind the id has met.
gateway_binding = Table(
    "gateway_binding",
    metadata,
    _text("tenant"),
    _blob("lookup"),
    _text("scope"),
    _text("provider"),
    _text("owner"),
    Column("handles", Document, nullable=False),
    Column("expires", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "lookup"),
    Index(None, "tenant", "scope"),
    Index(None, "expires"),
)

# Reasoning as a provider signed it, sealed under its scope's data key.
gateway_signed = Table(
    "gateway_signed",
    metadata,
    _text("tenant"),
    _text("scope"),
    _blob("lookup"),
    _blob("ciphertext"),
    Column("created", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "scope", "lookup"),
)

# Receipts. ``counted``: the mark of the database has the receipt in its sum.
erasure = Table(
    "erasure",
    metadata,
    _text("tenant"),
    Column("id", Uuid, nullable=False),
    _text("kind"),
    Column("at", Instant, nullable=False),
    _text("actor"),
    Column("scope", Text, nullable=True),
    Column("counts", Document, nullable=False),
    Column("counted", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("tenant", "id"),
    Index(
        "ix_erasure_uncounted",
        "id",
        postgresql_where=text("NOT counted"),
        sqlite_where=text("counted = 0"),
    ),
)

# Erasures in steps. ``plan`` has keyed digests or names of scopes, never a value, and is empty at the end.
erasure_job = Table(
    "erasure_job",
    metadata,
    _text("tenant"),
    Column("id", Uuid, nullable=False),
    *(_text(name) for name in ("kind", "state", "actor", "reason")),
    Column("created", Instant, nullable=False),
    *(Column(name, BigInteger, nullable=False) for name in ("total", "done", "scopes", "unreadable")),
    *(Column(name, Document, nullable=False) for name in ("counts", "plan")),
    Column("finished", Instant, nullable=True),
    Column("receipt", Text, nullable=True),
    PrimaryKeyConstraint("tenant", "id"),
    Index(
        "ix_erasure_job_running",
        "created",
        postgresql_where=text("state = 'running'"),
        sqlite_where=text("state = 'running'"),
    ),
)

tenant_key = Table(
    "tenant_key",
    metadata,
    _text("tenant"),
    _text("purpose"),
    _blob("wrapped"),
    Column("kek_version", BigInteger, nullable=False),
    Column("created", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "purpose"),
)

key_canary = Table(
    "key_canary",
    metadata,
    Column("version", BigInteger, nullable=False, autoincrement=False),
    _blob("wrapped"),
    Column("created", Instant, nullable=False),
    PrimaryKeyConstraint("version"),
)
