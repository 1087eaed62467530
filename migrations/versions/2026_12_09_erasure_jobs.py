"""Add erasures that are done in steps: what was ordered, how far it is, and the receipt.

Expand only. Safe while the previous release runs: it does not know the table, and its processes do no such erasures.
Undone by downgrade: orders that are not done are lost, as are receipts; what was erased stays erased.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_12_09_erasure_jobs"
down_revision = "2026_12_08_normal_forms"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
TABLE = "erasure_job"


def upgrade() -> None:
    op.create_table(
        TABLE,
        *(_text("tenant"), sa.Column("id", sa.Uuid, nullable=False), _text("kind"), _text("state")),
        *(_text("actor"), _text("reason"), _moment("created")),
        *(_number("total"), _number("done"), _number("scopes"), _number("unreadable")),
        *(_document("counts"), _document("plan")),
        sa.Column("finished", sa.DateTime(timezone=True), nullable=True),
        sa.Column("receipt", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "id", name=f"pk_{TABLE}"),
    )
    op.execute(f"CREATE INDEX ix_{TABLE}_running ON {TABLE} (created) WHERE state = 'running'")
    if op.get_bind().dialect.name == "postgresql":
        mine = "tenant = nullif(current_setting('app.tenant', true), '')"
        op.execute(f"GRANT SELECT, INSERT, UPDATE ON {TABLE} TO {APP}")
        # The system path finds what is to be done, for all tenants.
        op.execute(f"GRANT SELECT ON {TABLE} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {TABLE} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {TABLE} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {TABLE} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {TABLE} TO {SYSTEM} USING (true)")


def downgrade() -> None:
    op.drop_table(TABLE)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _document(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
