"""Add what keys wait for: roles that another custodian approves, and who made a key's secrets.

Expand only, all columns may be empty. Safe while the previous release runs: a key that waits for a role is stored
without it, so the previous release refuses where this one would, and never grants more. It neither makes keys wait nor
approves them: where custody matters, make no keys until every process has the new release.
Undone by downgrade: keys that wait never get the role, and are made anew; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_24_custody"
down_revision = "2026_11_23_document_index"
branch_labels = None
depends_on = None

DOCUMENTS = ("previous_roles", "pending_roles", "makers")


def upgrade() -> None:
    for name in DOCUMENTS:
        kind = sa.JSON().with_variant(JSONB(), "postgresql")
        op.add_column("api_key", sa.Column(name, kind, nullable=True))
    op.add_column("api_key", sa.Column("pending_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("api_key", sa.Column("pending_by", sa.Text, nullable=True))


def downgrade() -> None:
    for name in ("pending_by", "pending_until", *DOCUMENTS):
        op.drop_column("api_key", name)
