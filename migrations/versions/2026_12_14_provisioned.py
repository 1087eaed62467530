"""Add the mirror of people and groups that an identity provider keeps up to date.

Expand only. Safe while the previous release runs: it does not know the table. Undone by downgrade, which forgets the
mirror; the provider fills it again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_14_provisioned"
down_revision = "2026_12_13_identity_marks"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
TABLE = "provisioned"


def upgrade() -> None:
    op.create_table(
        TABLE,
        *(_text("tenant"), _text("kind"), _text("id"), _text("name_digest")),
        sa.Column("external_digest", sa.Text, nullable=True),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("removed", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "kind", "id", name=f"pk_{TABLE}"),
        sa.UniqueConstraint("tenant", "kind", "name_digest", name=f"uq_{TABLE}_tenant_kind_name_digest"),
    )
    op.create_index(f"ix_{TABLE}_external", TABLE, ["tenant", "kind", "external_digest"])
    if op.get_bind().dialect.name == "postgresql":
        mine = "tenant = nullif(current_setting('app.tenant', true), '')"
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {TABLE} TO {APP}")
        # The system path looks a person up before it is known whose request it is, and forgets who was removed.
        op.execute(f"GRANT SELECT, DELETE ON {TABLE} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {TABLE} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {TABLE} TO {SYSTEM} USING (true)")


def downgrade() -> None:
    op.drop_table(TABLE)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)
