"""The tables; each key begins with the tenant, so that a cluster can shard by it."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Dialect,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    false,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

WRITTEN_BY = "written_by"
SCOPE_ACTIVE, SCOPE_ERASED = "active", "erased"


class Instant(TypeDecorator[datetime]):
    """A moment in UTC; SQLite, which knows no zones, stores it as text that sorts by time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a moment without a time zone and convert the others to UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise TypeError("A moment needs a time zone.")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the moment in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if dialect.name == "sqlite" else value.astimezone(UTC)


Document: JSON[Any] = JSON().with_variant(JSONB(), "postgresql")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
    }
)


def _where(condition: str) -> dict[str, Any]:
    return {"postgresql_where": text(condition), "sqlite_where": text(condition)}


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def _moment(name: str, *, nullable: bool = False) -> Column[datetime]:
    return Column(name, Instant, nullable=nullable)


def _blob(name: str, *, nullable: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _index_of_some(present: str, *columns: str) -> Index:  # of the rows that have ``present``
    where = text(f"{present} IS NOT NULL")
    return Index(None, *columns, postgresql_where=where, sqlite_where=where)


def _document(name: str) -> Column[Any]:
    return Column(name, Document, nullable=False)


def _optional_document(name: str) -> Column[Any]:  # None is NULL, and not the JSON value null
    kind: JSON[Any] = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    return Column(name, kind, nullable=True)


tenant = Table(
    "tenant",
    metadata,
    _text("id"),
    _moment("created"),
    _text("created_by"),
    *(_moment(name, nullable=True) for name in ("disabled", "erased", "emptied")),
    Column("own_key", Boolean, nullable=False, server_default=false()),
    PrimaryKeyConstraint("id"),
)

api_key = Table(
    "api_key",
    metadata,
    _text("tenant"),
    _text("id"),
    _blob("digest"),
    # During a rotation the old secret stays valid until previous_expires.
    _blob("previous_digest", nullable=True),
    _moment("previous_expires", nullable=True),
    _text("name", nullable=True),
    _document("roles"),
    _document("cidrs"),
    _moment("created"),
    _text("created_by"),
    _moment("expires", nullable=True),
    _moment("revoked", nullable=True),
    # What the secret before the last rotation may do; NULL: what the key may do.
    _optional_document("previous_roles"),
    # Roles that the key gets at pending_until, or when another custodian than pending_by approves.
    _optional_document("pending_roles"),
    _moment("pending_until", nullable=True),
    _text("pending_by", nullable=True),
    # Who made its secrets, and when; NULL: only created_by.
    _optional_document("makers"),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("id"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)

policy = Table(
    "policy",
    metadata,
    _text("tenant"),
    _number("version"),
    _document("document"),
    _moment("created"),
    _text("created_by"),
    PrimaryKeyConstraint("tenant", "version"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)

# An ended scope stays for a time as a tombstone: its counters keep ordinals from being used twice, as do those of the
# row without a name later. ``generation`` counts data keys and is sealed into entries; ``owner`` NULL: the tenant's.
scope = Table(
    "scope",
    metadata,
    _text("tenant"),
    _text("id"),
    _moment("created"),
    *(_moment(name, nullable=True) for name in ("expires", "erased")),
    _text("state"),
    _number("generation"),
    _document("counters"),
    _number("restore_epoch"),
    _blob("dek_wrapped", nullable=True),
    _number("kek_version", nullable=True),
    _text("owner", nullable=True),
    PrimaryKeyConstraint("tenant", "id"),
    Index(None, "kek_version", "tenant", "id"),
    *(Index(None, "expires"), Index(None, "erased", **_where("state = 'erased'"))),
)

# ``origin`` states how the look-up was made: exact, spelled (exact, with its spelling inside JSON) or canonical.
entry = Table(
    "entry",
    metadata,
    _text("tenant"),
    _text("scope"),
    _text("type"),
    _number("ordinal"),
    _blob("lookup"),
    _blob("ciphertext"),
    _text("origin"),
    _moment("created"),
    # A keyed digest of the value for its tenant; NULL until it is filled in, for entries of older releases.
    _blob("blind", nullable=True),
    # The same of its normal form, which spellings of one value share.
    _blob("blind_normal", nullable=True),
    PrimaryKeyConstraint("tenant", "scope", "type", "ordinal"),
    UniqueConstraint("tenant", "scope", "type", "lookup"),
    Index(None, "tenant", "blind"),
    Index("ix_entry_tenant_scope_unindexed", "tenant", "scope", **_where("blind IS NULL")),
    Index(None, "tenant", "blind_normal"),
    Index("ix_entry_tenant_scope_without_normal", "tenant", "scope", **_where("blind_normal IS NULL")),
    sqlite_with_rowid=False,
)

audit_event = Table(
    "audit_event",
    metadata,
    _text("tenant"),
    Column("id", Uuid, nullable=False),
    _moment("at"),
    _text("actor"),
    _document("roles"),
    _text("action"),
    _text("outcome"),
    _text("middleware", nullable=True),
    _number("policy_version", nullable=True),
    _text("error_code", nullable=True),
    *(_text(name, nullable=True) for name in ("scope_ref", "in_hmac", "out_hmac")),
    *(_number(name) for name in ("blocks", "bytes_in", "bytes_out")),
    _document("counts"),
    _number("duration_us"),
    _text("request_id", nullable=True),
    _text("traceparent", nullable=True),
    _document("details"),
    _blob("sealed", nullable=True),
    # Rows from before the upgrades that brought them have none of these.
    *(_text(name, nullable=True) for name in ("on_behalf_of", "key_name", "address_class", "decision")),
    _optional_document("versions"),
    *(_text("writer", nullable=True), _number("writer_seq", nullable=True), _blob("leaf", nullable=True)),
    _blob("mac"),
    # The transaction that wrote the row; PostgreSQL sets it, and the sealer finds by it what is new.
    _number(WRITTEN_BY, nullable=True),
    # PostgreSQL requires the partition column in the key.
    PrimaryKeyConstraint("tenant", "id", "at"),
    *(Index(None, "tenant", name, "id") for name in ("actor", "action", "outcome")),
    *(Index(None, "tenant", name, "id") for name in ("middleware", "scope_ref", "at", "request_id")),
    _index_of_some("on_behalf_of", "tenant", "on_behalf_of", "id"),
    _index_of_some(WRITTEN_BY, WRITTEN_BY, "tenant", "id"),
    postgresql_partition_by="RANGE (at)",
)

session = Table(
    "session",
    metadata,
    _text("tenant"),
    # A digest of the session's id, so that a reader of the table cannot join a session.
    _text("id"),
    _text("principal"),
    _text("revision"),
    _document("data"),
    *(_moment("created"), _moment("last_seen")),
    PrimaryKeyConstraint("tenant", "id"),
    Index(None, "last_seen"),
)

# Values of the whole installation: the restore epoch, the last readiness write.
installation = Table(
    "installation",
    metadata,
    _text("name"),
    _document("value"),
    PrimaryKeyConstraint("name"),
)

# The servers behind this one. ``secrets`` is ciphertext; ``pinned`` is when its definitions were first approved.
server = Table(
    "server",
    metadata,
    _text("tenant"),
    _text("name"),
    _document("document"),
    _blob("secrets", nullable=True),
    _text("origin"),
    _text("state"),
    _moment("pinned", nullable=True),
    _moment("created"),
    _text("created_by"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "name"),
)

# The definitions that an operator (or the file) approved, by digest.
server_pin = Table(
    "server_pin",
    metadata,
    _text("tenant"),
    _text("server"),
    _text("kind"),
    _text("name"),
    _text("digest"),
    _document("definition"),
    _moment("approved"),
    _text("approved_by"),
    PrimaryKeyConstraint("tenant", "server", "kind", "name"),
    ForeignKeyConstraint(["tenant", "server"], ["server.tenant", "server.name"], ondelete="CASCADE"),
)

primitive_group = Table(
    "primitive_group",
    metadata,
    _text("tenant"),
    _text("name"),
    _document("document"),
    _text("origin"),
    _moment("created"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "name"),
)

# ``name`` is a pattern; ``server`` is empty where any server will do.
group_member = Table(
    "group_member",
    metadata,
    _text("tenant"),
    _text("group_name"),
    _text("kind"),
    _text("name"),
    _text("server"),
    PrimaryKeyConstraint("tenant", "group_name", "kind", "name", "server"),
    ForeignKeyConstraint(
        ["tenant", "group_name"], ["primitive_group.tenant", "primitive_group.name"], ondelete="CASCADE"
    ),
)

concern = Table(
    "concern",
    metadata,
    _text("tenant"),
    _text("name"),
    _document("document"),
    _text("origin"),
    _moment("created"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "name"),
)

concern_mapping = Table(
    "concern_mapping",
    metadata,
    _text("tenant"),
    _text("kind"),
    _text("name"),
    _document("document"),
    _text("origin"),
    _moment("created"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "kind", "name"),
)

# A caller's preference, for where its session and its requests set nothing.
concern_preference = Table(
    "concern_preference",
    metadata,
    _text("tenant"),
    _text("principal"),
    _document("document"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "principal"),
)

tool_description = Table(
    "tool_description",
    metadata,
    _text("tenant"),
    _text("name"),
    _document("document"),
    _text("origin"),
    _moment("updated"),
    PrimaryKeyConstraint("tenant", "name"),
)

# The descriptions that a caller has read, where a policy records that per caller; sessions record their own.
disclosure = Table(
    "disclosure",
    metadata,
    _text("tenant"),
    _text("principal"),
    _text("name"),
    _text("digest"),
    _moment("expires"),
    PrimaryKeyConstraint("tenant", "principal", "name"),
    Index(None, "expires"),
)

# Versions are never deleted, so that no number is used twice; the newest one's ``state`` may be removed.
pipeline = Table(
    "pipeline",
    metadata,
    _text("tenant"),
    _text("name"),
    _number("version"),
    _document("document"),
    _text("state"),
    _text("origin"),
    _moment("created"),
    _text("created_by"),
    PrimaryKeyConstraint("tenant", "name", "version"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)
