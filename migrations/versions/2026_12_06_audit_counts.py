"""Keep counts of sealed events by day, action, outcome and actor, so that a page of numbers reads no events.

Expand only. Safe while the previous release runs, which does not know the tables. They begin empty: a job of the new
release counts what is sealed already, from the first event on.
Undone by downgrade: the counts are lost; a later upgrade counts what is still in the record again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_06_audit_counts"
down_revision = "2026_12_05_emptied_months"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
MINE = "tenant = nullif(current_setting('app.tenant', true), '')"


def upgrade() -> None:
    op.create_table(
        "log_count",
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("tenant", "day", "action", "outcome", "actor")
        ),
        sa.Column("events", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day", "action", "outcome", "actor", name="pk_log_count"),
    )
    op.create_table(
        "log_counted",
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("tenant", name="pk_log_counted"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in ("log_count", "log_counted"):
        op.execute(f"GRANT SELECT ON {table} TO {APP}")
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON {table} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {table} FOR SELECT TO {APP} USING ({MINE})")
        op.execute(f"CREATE POLICY every_tenant ON {table} TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table("log_counted")
    op.drop_table("log_count")
