"""Tables of a directory of shards, in a database of its own; in the database of a shard they stay empty."""

from sqlalchemy import Column, PrimaryKeyConstraint, Table, Text

from app.store.tables import metadata


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


# Not keyed by the tenant: the ids of keys are unique over all shards here, so that no shard has to know the others.
directory_key = Table(
    "directory_key",
    metadata,
    *(_text("id"), _text("tenant"), _text("shard")),
    PrimaryKeyConstraint("id"),
)

directory_tenant = Table(
    "directory_tenant",
    metadata,
    *(_text("tenant"), _text("shard")),
    PrimaryKeyConstraint("tenant"),
)
