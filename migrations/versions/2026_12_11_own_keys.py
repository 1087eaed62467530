"""Say which tenants have a key of their own for their digests and their blind index.

Expand only. Safe while the previous release runs: it makes tenants without such a key, and this one makes none with it
as long as a process of another release serves. The keys are in tenant_key, as that of the record.
Undone by downgrade, after which digests of such tenants are made with another key: what was stored of them is found by
no search any more. Downgrade only where no tenant was made with this release.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_11_own_keys"
down_revision = "2026_12_10_directory"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tenant", sa.Column("own_key", sa.Boolean, nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("tenant", "own_key")
