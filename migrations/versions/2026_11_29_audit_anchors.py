"""Add what anchors of the audit log are known to keep.

Safe while the previous release runs: it does not know the table.
Undone by downgrade: anchors that cannot be asked get the newest checkpoint again; nothing else is lost.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_29_audit_anchors"
down_revision = "2026_11_28_tenant_erasure"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"


def upgrade() -> None:
    op.create_table(
        "log_anchor",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("root", sa.LargeBinary, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_log_anchor"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"GRANT SELECT ON log_anchor TO {APP}")
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON log_anchor TO {SYSTEM}")
        op.execute("ALTER TABLE log_anchor ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE log_anchor FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY all_read ON log_anchor FOR SELECT TO {APP} USING (true)")
        op.execute(f"CREATE POLICY every_tenant ON log_anchor TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table("log_anchor")
