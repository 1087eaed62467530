"""Tables of what the gateway keeps of a conversation; it goes with the conversation's scope."""

from sqlalchemy import Column, Index, LargeBinary, PrimaryKeyConstraint, Table, Text

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
