"""Index the record for each filter of its queries, newest first, and find client request ids under isolation.

Expand only. Safe while the previous release runs: its queries use the same indexes. On PostgreSQL the index of each
partition is built without blocking writers, and attached; what was interrupted is continued by the next try. Only
the exchange of the index of scopes locks the table, for a moment.
Undone by downgrade: the indexes and the function are lost, the older index of scopes is built again; nothing else.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_27_audit_indexes"
down_revision = "2026_11_27_audit_log"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
WAITS = ("lock_timeout", "statement_timeout")
COLUMNS = ("at", "actor", "action", "middleware", "outcome", "scope_ref")
OLD = "ix_audit_event_tenant_scope_ref"
CLIENT = "ix_audit_event_client_request_id"
THEIRS = {
    "postgresql": "(details ->> 'client_request_id')",
    "sqlite": "json_extract(details, '$.client_request_id')",
}

# The operator ->> is not leakproof: a policy would keep the index from being used. The tenant is the transaction's.
FUNCTION = """
CREATE OR REPLACE FUNCTION sluice_client_events(
    client_request_id text, since timestamptz, until timestamptz, before uuid, most integer
) RETURNS TABLE (id uuid, at timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
    RETURN QUERY SELECT e.id, e.at FROM public.audit_event e
    WHERE e.tenant = nullif(current_setting('app.tenant', true), '')
    AND (e.details ->> 'client_request_id') = $1
    AND ($2 IS NULL OR e.at >= $2) AND ($3 IS NULL OR e.at < $3) AND ($4 IS NULL OR e.id < $4)
    ORDER BY e.id DESC LIMIT $5;
END $$"""
SIGNATURE = "sluice_client_events(text, timestamptz, timestamptz, uuid, integer)"
OWNED = f"""
DO $$ BEGIN
    GRANT CREATE ON SCHEMA public TO {SYSTEM};
    ALTER FUNCTION {SIGNATURE} OWNER TO {SYSTEM};
    REVOKE CREATE ON SCHEMA public FROM {SYSTEM};
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'This login may not give a function to the role {SYSTEM}.'
        USING HINT = 'Migrate as the owner of the database, who owns the schema public.';
END $$"""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        for name, (columns, where) in _indexes("sqlite").items():
            op.execute(f"CREATE INDEX {name} ON audit_event ({columns}){where}")
        op.drop_index(OLD, "audit_event")
        return
    op.execute(f"DROP FUNCTION IF EXISTS {SIGNATURE}")
    op.execute(FUNCTION)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {APP}")
    op.execute(OWNED)
    for name, (columns, where) in _indexes("postgresql").items():
        build(name, columns, where)
    op.execute(f"DROP INDEX IF EXISTS {OLD}")


def downgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute(f"DROP FUNCTION IF EXISTS {SIGNATURE}")
        build(OLD, "tenant, scope_ref", "")
    else:
        op.create_index(OLD, "audit_event", ["tenant", "scope_ref"])
    for name in _indexes(op.get_bind().dialect.name):
        op.execute(f"DROP INDEX {'IF EXISTS ' if postgresql else ''}{name}")


def _indexes(dialect: str) -> dict[str, tuple[str, str]]:
    """Return columns and condition of each index by its name."""
    made = {f"ix_audit_event_tenant_{column}_id": (f"tenant, {column}, id", "") for column in COLUMNS}
    return made | {CLIENT: (f"tenant, {THEIRS[dialect]}, id", f" WHERE {THEIRS[dialect]} IS NOT NULL")}


def build(name: str, columns: str, where: str) -> None:
    """Build an index of the partitioned table: of each partition without blocking it, then of the whole."""
    definition = f"({columns}){where}"
    op.execute(f"CREATE INDEX IF NOT EXISTS {name} ON ONLY audit_event {definition}")
    # Partitions whose index is attached, or that were made after the line above, need none.
    missing = f"""
        SELECT p.inhrelid::regclass::text FROM pg_inherits p
        WHERE p.inhparent = 'audit_event'::regclass AND NOT EXISTS (
            SELECT FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid
            WHERE i.inhparent = '{name}'::regclass AND x.indrelid = p.inhrelid
        ) ORDER BY 1"""  # noqa: S608 - our own names
    partitions = list(op.get_bind().execute(sa.text(missing)).scalars())
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        _set_waits(dict.fromkeys(WAITS, "0"))
        for partition in partitions:
            its = f"{partition}_{name.removeprefix('ix_audit_event_')}"
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {its}")
            op.execute(f"CREATE INDEX CONCURRENTLY {its} ON {partition} {definition}")
            op.execute(f"ALTER INDEX {name} ATTACH PARTITION {its}")
        _set_waits(dict(zip(WAITS, before, strict=True)))


def _set_waits(values: dict[str, str]) -> None:
    for name, value in values.items():
        op.execute(f"SET {name} = '{value}'")
