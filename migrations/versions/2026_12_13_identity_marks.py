"""Add a table of what tokens of issuers count no more: logouts, and tokens and states that work once.

Expand only. Safe while the previous release runs: it does not know the table, and takes tokens of somebody who has
signed out until they expire, as before. Undone by downgrade, which forgets the logouts of the last minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_13_identity_marks"
down_revision = "2026_12_12_counted_erasures"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
TABLE = "identity_mark"


def upgrade() -> None:
    op.create_table(
        TABLE,
        *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "digest")),
        sa.Column("at", sa.Float(53), nullable=False),
        sa.Column("ends", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", "digest", name=f"pk_{TABLE}"),
    )
    op.create_index(f"ix_{TABLE}_ends", TABLE, ["ends"])
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLE} TO {SYSTEM}")
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY every_tenant ON {TABLE} TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table(TABLE)
