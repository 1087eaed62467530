"""Say which receipts of erasures the mark of the database has counted, so that no step counts them all again.

Expand only; on PostgreSQL the index is built while others write. Safe while the previous release runs: it counts all
receipts at each step and forgets the sum of this one, which counts all once more.
Undone by downgrade: nothing is lost.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_12_counted_erasures"
down_revision = "2026_12_11_own_keys"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
INDEX = "ix_erasure_uncounted"
WAITS = ("lock_timeout", "statement_timeout")


def upgrade() -> None:
    postgresql = op.get_bind().dialect.name == "postgresql"
    # What is there already need not be rewritten on PostgreSQL: the first step counts every receipt anyway.
    before = sa.true() if postgresql else sa.false()
    op.add_column("erasure", sa.Column("counted", sa.Boolean, nullable=False, server_default=before))
    if not postgresql:
        op.execute(f"CREATE INDEX {INDEX} ON erasure (id) WHERE counted = 0")
        return
    op.alter_column("erasure", "counted", server_default=sa.false())
    op.execute(f"GRANT UPDATE (counted) ON erasure TO {SYSTEM}")
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    limits = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        for wait in WAITS:
            op.execute(f"SET {wait} = '0'")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX} ON erasure (id) WHERE NOT counted")
        for wait, value in zip(WAITS, limits, strict=True):
            op.execute(f"SET {wait} = '{value}'")


def downgrade() -> None:
    op.execute(f"DROP INDEX {INDEX}")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"REVOKE UPDATE (counted) ON erasure FROM {SYSTEM}")
    op.drop_column("erasure", "counted")
