"""Let writers of the audit record be forgotten once they are over: when each was last met, and the right to delete.

Expand only. Safe while the previous release runs, which does not know the column; but its processes use a writer for as
long as they run: writers begin to be forgotten a week after the upgrade, when none of them should run any more.
Undone by downgrade: nothing is lost but when writers were last met.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_03_over_writers"
down_revision = "2026_12_02_tombstones"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"


def upgrade() -> None:
    op.add_column("log_writer", sa.Column("at", sa.DateTime(timezone=True), nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"GRANT DELETE ON log_writer TO {SYSTEM}")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"REVOKE DELETE ON log_writer FROM {SYSTEM}")
    op.drop_column("log_writer", "at")
