"""Make the first tables: tenants, keys, policies, the vault, the audit record and sessions.

Safe while the previous release runs: there is none. On PostgreSQL it also makes the roles sluice_app and
sluice_system where they are absent (which needs CREATEROLE; otherwise an administrator makes them before:
CREATE ROLE sluice_app NOLOGIN; CREATE ROLE sluice_system NOLOGIN; GRANT sluice_app, sluice_system TO <login>).
Undone by downgrade: every table and all data are lost; the two roles stay, since they belong to the whole
cluster and other databases may use them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_20_first_tables"
down_revision = None
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
MONTHS_AHEAD = 3

# What the two roles may do: no more than the queries of app/store need. Nobody changes or deletes a record.
GRANTS = {
    "tenant": ("SELECT", "SELECT, INSERT, UPDATE"),
    "api_key": ("SELECT, INSERT, UPDATE", "SELECT, INSERT, UPDATE"),
    "policy": ("SELECT, INSERT", "SELECT, INSERT"),
    "scope": ("SELECT, INSERT, UPDATE", "SELECT, UPDATE"),
    "entry": ("SELECT, INSERT, DELETE", "SELECT, DELETE"),
    "erasure": ("SELECT, INSERT", "SELECT, INSERT"),
    "audit_event": ("SELECT, INSERT", "SELECT, INSERT"),
    "session": ("SELECT, INSERT, UPDATE, DELETE", "SELECT, DELETE"),
    "tenant_key": ("SELECT", "SELECT, INSERT, UPDATE"),
    "key_canary": ("SELECT", "SELECT, INSERT, UPDATE, DELETE"),
    "installation": ("SELECT", "SELECT, INSERT, UPDATE, DELETE"),
    "alembic_version": ("SELECT", "SELECT"),
}
ISOLATED = {
    "tenant": "id",
    **dict.fromkeys(
        ("api_key", "policy", "scope", "entry", "erasure", "audit_event", "session", "tenant_key"), "tenant"
    ),
}

ROLES = f"""
DO $$
DECLARE wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['{APP}', '{SYSTEM}'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION 'The role % is absent and this login may not create it.', wanted
                        USING HINT = format('An administrator runs: CREATE ROLE %I NOLOGIN; GRANT %I TO %I',
                                            wanted, wanted, current_user);
            END;
        END IF;
        IF NOT pg_has_role(current_user, wanted, 'SET') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
END $$
"""

# Partitions are made by a function that runs as the owner of the table: the application owns nothing.
PARTITIONS = """
CREATE FUNCTION sluice_make_audit_partitions(months integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    first date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
    month date;
    part text;
    made integer := 0;
BEGIN
    FOR ahead IN 0..least(months, 24) LOOP
        month := first + make_interval(months => ahead);
        part := 'audit_event_' || to_char(month, 'YYYY_MM');
        IF to_regclass('public.' || part) IS NULL AND NOT EXISTS (
            SELECT FROM audit_event_default
            WHERE at >= month::timestamp AT TIME ZONE 'UTC'
              AND at < (month + interval '1 month') AT TIME ZONE 'UTC'
        ) THEN
            EXECUTE format(
                'CREATE TABLE %I PARTITION OF audit_event FOR VALUES FROM (%L) TO (%L)', part,
                month::timestamp AT TIME ZONE 'UTC', (month + interval '1 month') AT TIME ZONE 'UTC'
            );
            made := made + 1;
        END IF;
    END LOOP;
    RETURN made;
END $$
"""


def upgrade() -> None:
    _make_access()
    _make_vault()
    _make_records()
    _make_keys()
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute("DROP FUNCTION sluice_make_audit_partitions(integer)")
        op.execute(f"REVOKE ALL ON alembic_version FROM {APP}, {SYSTEM}")
        op.execute(f"REVOKE USAGE ON SCHEMA public FROM {APP}, {SYSTEM}")
    for name in (
        *("installation", "key_canary", "tenant_key", "session", "audit_event", "erasure", "entry", "scope"),
        *("policy", "api_key", "tenant"),
    ):
        op.drop_table(name)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _blob(name: str, *, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _document(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False)


def _make_access() -> None:
    op.create_table(
        "tenant",
        *(_text("id"), _moment("created"), _text("created_by"), _moment("disabled", nullable=True)),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
    )
    op.create_table(
        "api_key",
        *(_text("tenant"), _text("id"), _blob("digest"), _blob("previous_digest", nullable=True)),
        *(_moment("previous_expires", nullable=True), _text("name", nullable=True)),
        *(_document("roles"), _document("cidrs"), _moment("created"), _text("created_by")),
        *(_moment("expires", nullable=True), _moment("revoked", nullable=True)),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_api_key"),
        sa.UniqueConstraint("id", name="uq_api_key_id"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_api_key_tenant"),
    )
    op.create_table(
        "policy",
        *(
            _text("tenant"),
            _number("version"),
            _document("document"),
            _moment("created"),
            _text("created_by"),
        ),
        sa.PrimaryKeyConstraint("tenant", "version", name="pk_policy"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_policy_tenant"),
    )
    op.create_table(
        "session",
        *(_text("tenant"), _text("id"), _text("principal"), _text("revision"), _document("data")),
        *(_moment("created"), _moment("last_seen")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_session"),
    )
    op.create_index("ix_session_last_seen", "session", ["last_seen"])


def _make_vault() -> None:
    op.create_table(
        "scope",
        *(_text("tenant"), _text("id"), _moment("created"), _moment("expires", nullable=True)),
        *(_text("state"), _number("generation"), _document("counters"), _number("restore_epoch")),
        *(_blob("dek_wrapped", nullable=True), _number("kek_version", nullable=True)),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_scope"),
    )
    op.create_index("ix_scope_kek_version_tenant_id", "scope", ["kek_version", "tenant", "id"])
    op.create_index("ix_scope_expires", "scope", ["expires"])
    op.create_table(
        "entry",
        *(_text("tenant"), _text("scope"), _text("type"), _number("ordinal"), _blob("lookup")),
        *(_blob("ciphertext"), _text("origin"), _moment("created")),
        sa.PrimaryKeyConstraint("tenant", "scope", "type", "ordinal", name="pk_entry"),
        sa.UniqueConstraint("tenant", "scope", "type", "lookup", name="uq_entry_tenant_scope_type_lookup"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "erasure",
        *(_text("tenant"), sa.Column("id", sa.Uuid, nullable=False), _text("kind"), _moment("at")),
        *(_text("actor"), _text("scope", nullable=True), _document("counts")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_erasure"),
    )


def _make_records() -> None:
    op.create_table(
        "audit_event",
        *(_text("tenant"), sa.Column("id", sa.Uuid, nullable=False), _moment("at"), _text("actor")),
        *(_document("roles"), _text("action"), _text("outcome"), _text("middleware", nullable=True)),
        *(_number("policy_version", nullable=True), _text("error_code", nullable=True)),
        *(_text(name, nullable=True) for name in ("scope_ref", "in_hmac", "out_hmac")),
        *(_number("blocks"), _number("bytes_in"), _number("bytes_out"), _document("counts")),
        *(_number("duration_us"), _text("request_id", nullable=True), _text("traceparent", nullable=True)),
        *(_document("details"), _blob("sealed", nullable=True), _blob("mac")),
        sa.PrimaryKeyConstraint("tenant", "id", "at", name="pk_audit_event"),
        postgresql_partition_by="RANGE (at)",
    )
    op.create_index("ix_audit_event_tenant_request_id", "audit_event", ["tenant", "request_id"])
    op.create_index("ix_audit_event_tenant_scope_ref", "audit_event", ["tenant", "scope_ref"])


def _make_keys() -> None:
    op.create_table(
        "tenant_key",
        *(_text("tenant"), _text("purpose"), _blob("wrapped"), _number("kek_version"), _moment("created")),
        sa.PrimaryKeyConstraint("tenant", "purpose", name="pk_tenant_key"),
    )
    op.create_table(
        "key_canary",
        sa.Column("version", sa.BigInteger, nullable=False, autoincrement=False),
        *(_blob("wrapped"), _moment("created")),
        sa.PrimaryKeyConstraint("version", name="pk_key_canary"),
    )
    op.create_table(
        "installation",
        *(_text("name"), _document("value")),
        sa.PrimaryKeyConstraint("name", name="pk_installation"),
    )


def _isolate() -> None:
    op.execute(ROLES)
    op.execute("CREATE TABLE audit_event_default PARTITION OF audit_event DEFAULT")
    op.execute(PARTITIONS)
    op.execute("REVOKE ALL ON FUNCTION sluice_make_audit_partitions(integer) FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION sluice_make_audit_partitions(integer) TO {SYSTEM}")
    op.execute(f"SELECT sluice_make_audit_partitions({MONTHS_AHEAD})")
    op.execute(f"GRANT USAGE ON SCHEMA public TO {APP}, {SYSTEM}")
    for name, (app, system) in GRANTS.items():
        op.execute(f"GRANT {app} ON {name} TO {APP}")
        op.execute(f"GRANT {system} ON {name} TO {SYSTEM}")
    for name, column in ISOLATED.items():
        mine = f"{column} = nullif(current_setting('app.tenant', true), '')"
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
