"""Add the tables of a directory of shards: which of several databases has a tenant, and which a key.

Expand only. Safe while the previous release runs: it does not know the tables. They are used in the database that
SLUICE_DIRECTORY__URL names, and are empty in every other. Undone by downgrade, which forgets the directory; `sluice
directory adopt` on each shard fills it again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_10_directory"
down_revision = "2026_12_09_erasure_jobs"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
TABLES = ("directory_key", "directory_tenant")


def upgrade() -> None:
    op.create_table(
        "directory_key",
        *(_text("id"), _text("tenant"), _text("shard")),
        sa.PrimaryKeyConstraint("id", name="pk_directory_key"),
    )
    op.create_table(
        "directory_tenant",
        *(_text("tenant"), _text("shard")),
        sa.PrimaryKeyConstraint("tenant", name="pk_directory_tenant"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    for table in TABLES:
        # No shard may change or remove what another has claimed.
        op.execute(f"GRANT SELECT, INSERT ON {table} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY every_tenant ON {table} TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)
