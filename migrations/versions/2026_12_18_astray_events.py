"""Index the events whose id tells another time than they do, and request ids in the order of the pages.

Expand only. Safe while the previous release runs, whose queries use the same indexes. On PostgreSQL the indexes of each
partition are built without blocking writers, and attached; what was interrupted is continued by the next try. Only the
exchange of the index of request ids locks the table, for a moment. That of astray events is nearly empty: an id has the
time of its event, but where a clock was set back.
Undone by downgrade: the older index of request ids is built again, the function is lost; nothing else.
"""

from typing import Any

from alembic import op

revision = "2026_12_18_astray_events"
down_revision = "2026_12_17_trusted_issuers"
branch_labels = None
depends_on = None

APP = "sluice_app"
INDEX = "ix_audit_event_astray"
REQUESTS, OLD_REQUESTS = "ix_audit_event_tenant_request_id_id", "ix_audit_event_tenant_request_id"
# More than a minute between both, to the millisecond. ``store.audit.id_bounds`` asks in the same words.
ASTRAY = {
    "postgresql": "abs(date_part('epoch', at - timestamptz '1970-01-01 00:00:00+00') * 1000 - "
    "('x' || left(id::text, 8) || substr(id::text, 10, 4))::bit(48)::bigint) > 60000",
    "sqlite": "substr(id, 1, 12) NOT BETWEEN "
    "printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) - 60000) AND "
    "printf('%012x', strftime('%s', at) * 1000 + substr(at, 21, 3) + 60000)",
}

# The database believes a third of all rows to be astray, and would read them from indexes that have more columns. What
# IS TRUE stands behind chooses no index: that of all events' times would have to be sorted.
FUNCTION = f"""
CREATE OR REPLACE FUNCTION sluice_astray_events(
    since timestamptz, until timestamptz, before uuid, most integer
) RETURNS TABLE (id uuid, at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_indexonlyscan = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT id, at FROM public.audit_event
    WHERE tenant = nullif(current_setting('app.tenant', true), '') AND {ASTRAY["postgresql"]}
    AND ($1 IS NULL OR at >= $1) IS TRUE AND ($2 IS NULL OR at < $2) IS TRUE AND ($3 IS NULL OR id < $3)
    ORDER BY id DESC LIMIT $4;
END $$"""  # noqa: S608 - our own words
SIGNATURE = "sluice_astray_events(timestamptz, timestamptz, uuid, integer)"


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute(f"CREATE INDEX {INDEX} ON audit_event (tenant, id) WHERE {ASTRAY['sqlite']}")
        op.create_index(REQUESTS, "audit_event", ["tenant", "request_id", "id"])
        op.drop_index(OLD_REQUESTS, "audit_event")
        return
    op.execute(FUNCTION)
    op.execute(f"REVOKE ALL ON FUNCTION {SIGNATURE} FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION {SIGNATURE} TO {APP}")
    build = _indexes().build
    build(INDEX, "tenant, id", f" WHERE {ASTRAY['postgresql']}")
    build(REQUESTS, "tenant, request_id, id", "")
    op.execute(f"DROP INDEX IF EXISTS {OLD_REQUESTS}")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"DROP FUNCTION IF EXISTS {SIGNATURE}")
        _indexes().build(OLD_REQUESTS, "tenant, request_id", "")
    else:
        op.create_index(OLD_REQUESTS, "audit_event", ["tenant", "request_id"])
    for name in (INDEX, REQUESTS):
        op.execute(f"DROP INDEX {'IF EXISTS ' if op.get_bind().dialect.name == 'postgresql' else ''}{name}")


def _indexes() -> Any:
    """Return the migration that builds an index of each partition."""
    script = op.get_context().script
    if script is None:
        raise RuntimeError("The folder of migrations is not known.")
    return script.get_revision("2026_11_27_audit_indexes").module
