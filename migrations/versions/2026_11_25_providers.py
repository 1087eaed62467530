"""Add model providers: where the gateway sends requests, with sealed credentials.

Safe while the previous release runs: it does not know the table.
Undone by downgrade: the table and the providers with their credentials are lost; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_25_providers"
down_revision = "2026_11_25_gateway_scopes"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"


def upgrade() -> None:
    op.create_table(
        "provider",
        *(_text("tenant"), _text("name")),
        sa.Column("document", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("secrets", sa.LargeBinary, nullable=True),
        _text("origin"),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        _text("created_by"),
        sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_provider"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_provider_tenant"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    op.drop_table("provider")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON provider TO {APP}")
    op.execute(f"GRANT SELECT ON provider TO {SYSTEM}")
    op.execute("ALTER TABLE provider ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE provider FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY own_tenant ON provider TO {APP} USING ({mine}) WITH CHECK ({mine})")
    op.execute(f"CREATE POLICY every_tenant ON provider TO {SYSTEM} USING (true) WITH CHECK (true)")
