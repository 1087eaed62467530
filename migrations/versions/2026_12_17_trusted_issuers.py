"""Add the issuers of tokens that operators of the tenant system name beside those of the settings.

Expand only. Safe while the previous release runs: it does not know the table, and takes no token of such an issuer.
Undone by downgrade, which forgets these issuers: their tokens and sessions count no more.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_12_17_trusted_issuers"
down_revision = "2026_12_16_granting_people"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
TABLE = "trusted_issuer"


def upgrade() -> None:
    op.create_table(
        TABLE,
        *(_text("tenant"), _text("name")),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("document", sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False),
        sa.Column("secrets", sa.LargeBinary, nullable=True),
        _moment("created"),
        _text("created_by"),
        _moment("updated"),
        _text("updated_by"),
        sa.PrimaryKeyConstraint("tenant", "name", name=f"pk_{TABLE}"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name=f"fk_{TABLE}_tenant"),
    )
    if op.get_bind().dialect.name != "postgresql":
        return
    # Transactions of tenants have no right here: whose tokens count is a matter of the whole installation.
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLE} TO {SYSTEM}")
    op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY every_tenant ON {TABLE} TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table(TABLE)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
