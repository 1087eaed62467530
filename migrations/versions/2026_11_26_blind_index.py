"""Add the blind index of the vault: a keyed digest of each value, by which its tenant finds it in every scope.

Expand only: digests of older entries are filled in the background (`sluice vault index` does it at once); until then
their scopes are searched one by one, as before. On PostgreSQL the indexes are built while others write.
Safe while the previous release runs: it stores entries without a digest, which are filled later.
Undone by downgrade: nothing is lost; finding a value opens every scope again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_26_blind_index"
down_revision = "2026_11_26_search_functions"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
INDEXES = {
    "ix_entry_tenant_blind": "entry (tenant, blind)",
    # What is still to be filled is found without reading the rest; in the end this index is empty.
    "ix_entry_tenant_scope_unindexed": "entry (tenant, scope) WHERE blind IS NULL",
}
WAITS = ("lock_timeout", "statement_timeout")


def upgrade() -> None:
    op.add_column("entry", sa.Column("blind", sa.LargeBinary, nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"GRANT UPDATE (blind) ON entry TO {SYSTEM}")
        _build_beside_writers()
        return
    for name, definition in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {definition}")


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"REVOKE UPDATE (blind) ON entry FROM {SYSTEM}")
    op.drop_column("entry", "blind")


def _build_beside_writers() -> None:
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        for wait in WAITS:
            op.execute(f"SET {wait} = '0'")
        for name, definition in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {definition}")
        for wait, value in zip(WAITS, before, strict=True):
            op.execute(f"SET {wait} = '{value}'")
