"""Add the log that proves the audit record: leaves, tiles, heads and signed checkpoints.

Safe while the previous release runs: it names the columns that it writes; its events enter the log, too. Each event
gets the transaction that wrote it (PostgreSQL), by which the sealer finds what is new; older rows have none.
Undone by downgrade: the log with its proofs and its signing keys is lost; the record itself does not change.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_27_audit_log"
down_revision = "2026_11_26_tenant_batches"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"

# Column by which each table belongs to a tenant. Tiles of the installation's own log are named *: all may read them.
OWNED = {
    "log_leaf": "tenant = {tenant}",
    "log_head": "tenant = {tenant}",
    "log_entry": "tenant = {tenant}",
    "log_tile": "log IN ({tenant}, '*')",
    "log_checkpoint": "true",
}
TENANT = "nullif(current_setting('app.tenant', true), '')"


def upgrade() -> None:
    op.add_column("audit_event", sa.Column("written_by", sa.BigInteger, nullable=True))
    op.execute(
        "CREATE INDEX ix_audit_event_written_by_tenant_id ON audit_event (written_by, tenant, id) "
        "WHERE written_by IS NOT NULL"
    )
    op.create_table(
        "log_leaf",
        *(_text("tenant"), _number("position"), sa.Column("event", sa.Uuid, nullable=False), _moment("at")),
        sa.PrimaryKeyConstraint("tenant", "position", name="pk_log_leaf"),
        sa.UniqueConstraint("tenant", "event", name="uq_log_leaf_tenant_event"),
    )
    op.create_table(
        "log_tile",
        *(_text("log"), _number("level"), _number("number"), _blob("hashes")),
        sa.PrimaryKeyConstraint("log", "level", "number", name="pk_log_tile"),
    )
    op.create_table(
        "log_head",
        *(_text("tenant"), _number("size"), _blob("root"), _number("entry")),
        sa.PrimaryKeyConstraint("tenant", name="pk_log_head"),
    )
    op.create_table(
        "log_entry",
        *(_number("position"), _text("tenant"), _number("size"), _blob("root"), _moment("at")),
        sa.PrimaryKeyConstraint("position", name="pk_log_entry"),
    )
    op.create_index("ix_log_entry_tenant_size", "log_entry", ["tenant", "size"])
    op.create_table(
        "log_checkpoint",
        *(_number("size"), _text("note"), _moment("at")),
        sa.PrimaryKeyConstraint("size", name="pk_log_checkpoint"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    for name in ("log_checkpoint", "log_entry", "log_head", "log_tile", "log_leaf"):
        op.drop_table(name)
    op.execute("DELETE FROM installation WHERE name IN ('audit_log_keys', 'audit_log_sealed')")
    op.execute("DROP INDEX ix_audit_event_written_by_tenant_id")
    op.drop_column("audit_event", "written_by")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _blob(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _isolate() -> None:
    # A default that is set later leaves the stored rows as they are; as part of the new column it would rewrite them.
    op.execute(
        "ALTER TABLE audit_event ALTER COLUMN written_by SET DEFAULT pg_current_xact_id()::text::bigint"
    )
    for name, condition in OWNED.items():
        mine = condition.format(tenant=TENANT)
        op.execute(f"GRANT SELECT ON {name} TO {APP}")
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON {name} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} FOR SELECT TO {APP} USING ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
