"""Let tombstones of scopes go: when each scope ended, and the right to delete those that did long ago.

Expand only; on PostgreSQL the index is built while others write. Safe while the previous release runs, which does not
know the column; but it does not go by the numbers that deleted tombstones leave behind: their deletion begins a month
after the upgrade, when no process of that release should run any more.
Undone by downgrade: nothing is lost but when scopes ended; numbers that were left behind stay, as a scope that ended.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_02_tombstones"
down_revision = "2026_12_01_audit_retention"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
INDEX = "ix_scope_erased"
DEFINITION = "scope (erased) WHERE state = 'erased'"
WAITS = ("lock_timeout", "statement_timeout")
OF_ERASED = "EXISTS (SELECT FROM tenant t WHERE t.id = scope.tenant AND t.erased IS NOT NULL)"


def upgrade() -> None:
    op.add_column("scope", sa.Column("erased", sa.DateTime(timezone=True), nullable=True))
    if op.get_bind().dialect.name != "postgresql":
        op.execute(f"CREATE INDEX {INDEX} ON {DEFINITION}")
        return
    op.execute(f"GRANT INSERT ON scope TO {SYSTEM}")
    op.execute(f"ALTER POLICY erased_tenant ON scope USING ({OF_ERASED} OR scope.state = 'erased')")
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        for wait in WAITS:
            op.execute(f"SET {wait} = '0'")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX} ON {DEFINITION}")
        for wait, value in zip(WAITS, before, strict=True):
            op.execute(f"SET {wait} = '{value}'")


def downgrade() -> None:
    op.execute(f"DROP INDEX {INDEX}")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(f"ALTER POLICY erased_tenant ON scope USING ({OF_ERASED})")
        op.execute(f"REVOKE INSERT ON scope FROM {SYSTEM}")
    op.drop_column("scope", "erased")
