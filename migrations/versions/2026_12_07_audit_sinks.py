"""Add how far each sink of the audit record is.

Safe while the previous release runs: it does not know the table.
Undone by downgrade: sinks get the record from its beginning again after the next upgrade; nothing else is lost.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_07_audit_sinks"
down_revision = "2026_12_06_audit_counts"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"


def upgrade() -> None:
    op.create_table(
        "log_sink",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("entry", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("position", sa.BigInteger, nullable=False, autoincrement=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_log_sink"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON log_sink TO {SYSTEM}")
        op.execute("ALTER TABLE log_sink ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE log_sink FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY every_tenant ON log_sink TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table("log_sink")
