"""Add pipelines: named sequences of middlewares, kept in versions.

Safe while the previous release runs: it does not know the table.
Undone by downgrade: the table and the pipelines are lost; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_22_pipelines"
down_revision = "2026_11_21_primitives"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"


def upgrade() -> None:
    op.create_table(
        "pipeline",
        *(_text("tenant"), _text("name")),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("document", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        *(_text("state"), _text("origin")),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        _text("created_by"),
        sa.PrimaryKeyConstraint("tenant", "name", "version", name="pk_pipeline"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_pipeline_tenant"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    op.drop_table("pipeline")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    # Versions stay as they were written; the system path only reads them.
    op.execute(f"GRANT SELECT, INSERT ON pipeline TO {APP}")
    op.execute(f"GRANT SELECT ON pipeline TO {SYSTEM}")
    op.execute("ALTER TABLE pipeline ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE pipeline FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_tenant ON pipeline TO {APP} USING ({mine}) WITH CHECK ({mine})")
    op.execute(f"CREATE POLICY every_tenant ON pipeline TO {SYSTEM} USING (true) WITH CHECK (true)")
