"""Add the grants of people for servers that are called with their rights: sealed tokens, one row a person and server.

Expand only. Safe while the previous release runs: it does not know the table, and calls no such server.
Undone by downgrade: people have to connect again; their tokens stay valid at the authorization servers.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_15_user_grants"
down_revision = "2026_12_14_provisioned"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
TABLE = "user_grant"


def upgrade() -> None:
    op.create_table(
        TABLE,
        *(_text("tenant"), _text("holder"), _text("server"), _text("issuer")),
        sa.Column("tokens", sa.LargeBinary, nullable=False),
        *(_moment("created"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "holder", "server", name=f"pk_{TABLE}"),
        sa.ForeignKeyConstraint(
            ["tenant", "server"],
            ["server.tenant", "server.name"],
            name=f"fk_{TABLE}_server",
            ondelete="CASCADE",
        ),
    )
    if op.get_bind().dialect.name == "postgresql":
        mine = "tenant = nullif(current_setting('app.tenant', true), '')"
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLE} TO {APP}")
        # The system path empties tenants that are erased.
        op.execute(f"GRANT SELECT, DELETE ON {TABLE} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {TABLE} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {TABLE} TO {SYSTEM} USING (true) WITH CHECK (true)")


def downgrade() -> None:
    op.drop_table(TABLE)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
