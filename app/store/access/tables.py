"""Tables of who may call: shards, in a database of its own; identities that ended; grants; issuers."""

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from app.store.tables import Document, Instant, metadata


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

# Not keyed by the tenant: a subject of an issuer may be mapped to any. ``digest`` is keyed, so that nobody reads here
# who has signed out; ``at`` is in seconds since 1970 by the clock of the issuer.
identity_mark = Table(
    "identity_mark",
    metadata,
    *(_text("kind"), _text("digest")),
    Column("at", Float(53), nullable=False),
    Column("ends", Instant, nullable=False),
    PrimaryKeyConstraint("kind", "digest"),
    Index(None, "ends"),
)

# The people and groups that an identity provider mirrors here: names are keyed digests and ciphertext.
provisioned = Table(
    "provisioned",
    metadata,
    *(_text("tenant"), _text("kind"), _text("id"), _text("name_digest")),
    Column("external_digest", Text, nullable=True),
    Column("active", Boolean, nullable=False),
    Column("removed", Instant, nullable=True),
    Column("sealed", LargeBinary, nullable=False),
    PrimaryKeyConstraint("tenant", "kind", "id"),
    UniqueConstraint("tenant", "kind", "name_digest", name="uq_provisioned_tenant_kind_name_digest"),
    Index("ix_provisioned_external", "tenant", "kind", "external_digest"),
)

# What people granted for servers that are called with their rights: tokens under seal. ``holder`` is the keyed digest
# that stands for a person, ``person`` the one by which the mirror of the identity provider finds that person.
user_grant = Table(
    "user_grant",
    metadata,
    *(_text("tenant"), _text("holder"), _text("server"), _text("issuer")),
    Column("tokens", LargeBinary, nullable=False),
    Column("created", Instant, nullable=False),
    Column("updated", Instant, nullable=False),
    Column("person", Text, nullable=True),
    PrimaryKeyConstraint("tenant", "holder", "server"),
    ForeignKeyConstraint(["tenant", "server"], ["server.tenant", "server.name"], ondelete="CASCADE"),
)

# Issuers that operators of the tenant system have added, by their names; no transaction of another tenant sees them.
# ``secrets`` is ciphertext.
trusted_issuer = Table(
    "trusted_issuer",
    metadata,
    *(_text("tenant"), _text("name")),
    Column("version", Integer, nullable=False),
    Column("document", Document, nullable=False),
    Column("secrets", LargeBinary, nullable=True),
    Column("created", Instant, nullable=False),
    _text("created_by"),
    Column("updated", Instant, nullable=False),
    _text("updated_by"),
    PrimaryKeyConstraint("tenant", "name"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)
