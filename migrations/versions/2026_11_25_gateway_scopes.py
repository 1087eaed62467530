"""Add what the gateway keeps of conversations: who owns a scope, ids of providers, and signed reasoning.

Expand only. Safe while the previous release runs: it makes scopes without an owner and knows neither table; but it
lets every caller of the tenant use a scope that has an owner: serve the gateway when every process has the new release.
Undone by downgrade: scopes lose their owners, ids given out are unknown, and turns with signed reasoning are refused.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_25_gateway_scopes"
down_revision = "2026_11_24_custody"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
TABLES = ("gateway_binding", "gateway_signed")


def upgrade() -> None:
    op.add_column("scope", sa.Column("owner", sa.Text, nullable=True))
    op.create_table(
        "gateway_binding",
        *(_text("tenant"), _blob("lookup"), _text("scope"), _text("provider"), _text("owner")),
        sa.Column("handles", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        _moment("expires"),
        sa.PrimaryKeyConstraint("tenant", "lookup", name="pk_gateway_binding"),
    )
    op.create_index("ix_gateway_binding_tenant_scope", "gateway_binding", ["tenant", "scope"])
    op.create_index("ix_gateway_binding_expires", "gateway_binding", ["expires"])
    op.create_table(
        "gateway_signed",
        *(_text("tenant"), _text("scope"), _blob("lookup"), _blob("ciphertext"), _moment("created")),
        sa.PrimaryKeyConstraint("tenant", "scope", "lookup", name="pk_gateway_signed"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
    op.drop_column("scope", "owner")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _blob(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    for name in TABLES:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {APP}")
        # The system path removes what has expired, for all tenants.
        op.execute(f"GRANT SELECT, DELETE ON {name} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
