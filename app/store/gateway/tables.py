"""Tables of the gateway: the model providers of each tenant; ``secrets`` is ciphertext."""

from sqlalchemy import Column, ForeignKeyConstraint, LargeBinary, PrimaryKeyConstraint, Table, Text

from app.store.tables import Document, Instant, metadata

__all__ = ["metadata", "provider"]


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


provider = Table(
    "provider",
    metadata,
    _text("tenant"),
    _text("name"),
    Column("document", Document, nullable=False),
    Column("secrets", LargeBinary, nullable=True),
    _text("origin"),
    Column("created", Instant, nullable=False),
    _text("created_by"),
    Column("updated", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "name"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)
