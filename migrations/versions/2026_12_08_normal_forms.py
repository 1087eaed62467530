"""Add a keyed digest of each value's normal form, by which its tenant finds its variants in every scope.

Expand only: digests of older entries are filled in the background (`sluice vault index` does it at once); until then
a search for variants opens those entries. On PostgreSQL the indexes are built while others write.
Safe while the previous release runs, which stores entries without this digest, but for the function that stores
batches, which has one column more: no release has used it yet.
Undone by downgrade: nothing is lost; variants are not found any more.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_12_08_normal_forms"
down_revision = "2026_12_07_audit_sinks"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
COLUMN = "blind_normal"
INDEXES = {
    "ix_entry_tenant_blind_normal": ("entry", "tenant, blind_normal", ""),
    # What is still to be filled is found without reading the rest; in the end this index is empty.
    "ix_entry_tenant_scope_without_normal": ("entry", "tenant, scope", " WHERE blind_normal IS NULL"),
}
BETWEEN = {
    "e_blind bytea[], a_request": "e_blind bytea[], e_blind_normal bytea[], a_request",
    "e_blind) AS q(": "e_blind, e_blind_normal) AS q(",
    "origin, blind)": "origin, blind, blind_normal)",
    "origin, blind, created": "origin, blind, blind_normal, created",
    "q.blind, moment": "q.blind, q.blind_normal, moment",
}
"""What stands in the function that stores batches, and what takes its place."""
WAITS = ("lock_timeout", "statement_timeout")


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.add_column("entry", sa.Column(COLUMN, sa.LargeBinary, nullable=True))
        for name, (table, columns, where) in INDEXES.items():
            op.execute(f"CREATE INDEX {name} ON {table} ({columns}){where}")
        return
    op.execute(f"ALTER TABLE entry ADD COLUMN IF NOT EXISTS {COLUMN} bytea")
    op.execute(f"GRANT UPDATE ({COLUMN}) ON entry TO {SYSTEM}")
    _replace(BETWEEN)
    _build_beside_writers()


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    if op.get_bind().dialect.name == "postgresql":
        _replace({})
        op.execute(f"REVOKE UPDATE ({COLUMN}) ON entry FROM {SYSTEM}")
    op.drop_column("entry", COLUMN)


def _replace(changes: dict[str, str]) -> None:
    before = _revision("2026_12_04_event_identity")
    store = before.changed(before.numbered(), before.BETWEEN)
    op.execute("DROP FUNCTION sluice_store_batch")
    op.execute(before.changed(store, changes))
    op.execute("REVOKE ALL ON FUNCTION sluice_store_batch FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION sluice_store_batch TO {APP}")


def _build_beside_writers() -> None:
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        for wait in WAITS:
            op.execute(f"SET {wait} = '0'")
        for name, (table, columns, where) in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {table} ({columns}){where}")
        for wait, value in zip(WAITS, before, strict=True):
            op.execute(f"SET {wait} = '{value}'")


def _revision(name: str) -> Any:
    """Return an earlier migration."""
    script = op.get_context().script
    if script is None:
        raise RuntimeError("The folder of migrations is not known.")
    return script.get_revision(name).module
