"""Let events say for whom, under which name of a key, from which kind of address, with what result and by what.

Expand only; on PostgreSQL the index is built without blocking writers, and what was interrupted is continued by the
next try. Safe while the previous release runs, whose events have none of these members and keep the older form of a
leaf, but for the function that stores batches, which has five columns more: no release has used it yet.
Undone by downgrade: the members are lost, so that what was sealed with them no longer verifies.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_12_04_event_identity"
down_revision = "2026_12_03_over_writers"
branch_labels = None
depends_on = None

APP = "sluice_app"
TEXTS = ("on_behalf_of", "key_name", "address_class", "decision")
DOCUMENT = "versions"
NAMES = (*TEXTS, DOCUMENT)
INDEX = "ix_audit_event_tenant_on_behalf_of_id"
COLUMNS, WHERE = "tenant, on_behalf_of, id", " WHERE on_behalf_of IS NOT NULL"
TYPES = {**dict.fromkeys(TEXTS, "text"), DOCUMENT: "jsonb"}
BETWEEN = {
    "a_sealed bytea[], a_writer": ", ".join(
        ["a_sealed bytea[]", *(f"a_{name} {kind}[]" for name, kind in TYPES.items()), "a_writer"]
    ),
    **{
        f" {prefix}sealed, {prefix}writer": " "
        + ", ".join(f"{prefix}{name}" for name in ["sealed", *NAMES, "writer"])
        for prefix in ("", "q.", "a_")
    },
}
"""What stands in the function that stores batches, and what takes its place."""


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        for name in TEXTS:
            op.add_column("audit_event", sa.Column(name, sa.Text, nullable=True))
        op.add_column("audit_event", sa.Column(DOCUMENT, sa.JSON, nullable=True))
        op.execute(f"CREATE INDEX {INDEX} ON audit_event ({COLUMNS}){WHERE}")
        return
    added = (f"ADD COLUMN IF NOT EXISTS {name} {kind}" for name, kind in TYPES.items())
    op.execute(f"ALTER TABLE audit_event {', '.join(added)}")
    _replace(numbered(), BETWEEN)
    _revision("2026_11_27_audit_indexes").build(INDEX, COLUMNS, WHERE)


def downgrade() -> None:
    op.execute(f"DROP INDEX {INDEX}")
    if op.get_bind().dialect.name == "postgresql":
        _replace(numbered(), {})
    for name in reversed(NAMES):
        op.drop_column("audit_event", name)


def numbered() -> str:
    """Return the function that stores batches as the migration before left it."""
    return changed(_revision("2026_11_26_tenant_batches").STORE, _revision("2026_11_30_event_numbers").BEHIND)


def _replace(store: str, changes: dict[str, str]) -> None:
    op.execute("DROP FUNCTION sluice_store_batch")
    op.execute(changed(store, changes))
    op.execute("REVOKE ALL ON FUNCTION sluice_store_batch FROM PUBLIC")
    op.execute(f"GRANT EXECUTE ON FUNCTION sluice_store_batch TO {APP}")


def changed(store: str, changes: dict[str, str]) -> str:
    """Return a definition with ``changes``; raise RuntimeError where something that they replace is not in it."""
    for before, after in changes.items():
        if before not in store:
            raise RuntimeError("The function that stores batches is not the one that this migration changes.")
        store = store.replace(before, after)
    return store


def _revision(name: str) -> Any:
    """Return an earlier migration."""
    script = op.get_context().script
    if script is None:
        raise RuntimeError("The folder of migrations is not known.")
    return script.get_revision(name).module
