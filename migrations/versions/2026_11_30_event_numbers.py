"""Number the events of each writer, store their leaf's hash, and keep the batch functions to the service's roles.

Safe while the previous release runs, but for the function that stores batches, which has three columns more: no
release has used it yet. Rows that are there stay unnumbered, and are sealed as they are found.
Undone by downgrade: numbers and hashes are lost, so that what was sealed with them no longer verifies.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "2026_11_30_event_numbers"
down_revision = "2026_11_29_audit_anchors"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
COLUMNS = (
    ("writer", sa.Text, "text"),
    ("writer_seq", sa.BigInteger, "bigint"),
    ("leaf", sa.LargeBinary, "bytea"),
)
NAMES = [name for name, *_ in COLUMNS]
BEHIND = {
    "a_sealed bytea[], a_mac bytea[]": ", ".join(
        ["a_sealed bytea[]", *(f"a_{name} {kind}[]" for name, _, kind in COLUMNS), "a_mac bytea[]"]
    ),
    **{
        f" {prefix}sealed, {prefix}mac": " "
        + ", ".join(f"{prefix}{name}" for name in ["sealed", *NAMES, "mac"])
        for prefix in ("", "q.", "a_")
    },
}
"""What stands in the function that stores batches, and what takes its place."""
FUNCTIONS = ("sluice_store_batch", "sluice_read_batch")


def upgrade() -> None:
    for name, kind, _ in COLUMNS:
        op.add_column("audit_event", sa.Column(name, kind, nullable=True))
    document = sa.JSON().with_variant(sa.dialects.postgresql.JSONB(), "postgresql")
    op.create_table(
        "log_writer",
        sa.Column("tenant", sa.Text, nullable=False),
        sa.Column("writer", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("missing", document, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "writer", name="pk_log_writer"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    _isolate()
    store = _batches().STORE
    for before, after in BEHIND.items():
        if before not in store:
            raise RuntimeError("The function that stores batches is not the one that this migration changes.")
        store = store.replace(before, after)
    op.execute("DROP FUNCTION sluice_store_batch")
    op.execute(store)
    for function in FUNCTIONS:
        op.execute(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {function} TO {APP}")


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION sluice_store_batch")
        op.execute(_batches().STORE)
        op.execute("GRANT EXECUTE ON FUNCTION sluice_read_batch TO PUBLIC")
        op.execute(f"REVOKE ALL ON FUNCTION sluice_read_batch FROM {APP}")
    op.drop_table("log_writer")
    for name in reversed(NAMES):
        op.drop_column("audit_event", name)


def _batches() -> Any:
    """Return the migration that made the function."""
    script = op.get_context().script
    if script is None:
        raise RuntimeError("The folder of migrations is not known.")
    return script.get_revision("2026_11_26_tenant_batches").module


def _isolate() -> None:
    op.execute(f"GRANT SELECT, INSERT, UPDATE ON log_writer TO {SYSTEM}")
    op.execute("ALTER TABLE log_writer ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE log_writer FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY every_tenant ON log_writer TO {SYSTEM} USING (true) WITH CHECK (true)")
