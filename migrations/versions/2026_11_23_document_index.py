"""Add what is known of indexes of documents on other servers: which documents they hold, and which parts are whole.

Safe while the previous release runs: it knows neither table.
Undone by downgrade: both tables are lost, and such an index is built anew after the next upgrade.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_23_document_index"
down_revision = "2026_11_22_documents"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
TABLES = ("indexed_document", "indexed_part")


def upgrade() -> None:
    op.create_table(
        "indexed_document",
        *(_text("tenant"), _text("target"), _text("document_id"), _number("part")),
        sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
        _number("done"),
        sa.PrimaryKeyConstraint("tenant", "target", "document_id", name="pk_indexed_document"),
    )
    op.create_index(
        "ix_indexed_document_tenant_target_part", "indexed_document", ["tenant", "target", "part"]
    )
    op.create_table(
        "indexed_part",
        *(_text("tenant"), _text("target"), _number("part"), _number("revision")),
        sa.PrimaryKeyConstraint("tenant", "target", "part", name="pk_indexed_part"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    for name in TABLES:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {APP}")
        # The system path looks for work of all tenants, and forgets an index that is gone.
        op.execute(f"GRANT SELECT, DELETE ON {name} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
