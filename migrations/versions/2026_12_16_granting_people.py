"""Say in a grant which person of the mirror gave it, so that it ends when the identity provider removes that person.

Expand only. Safe while the previous release runs: it writes no such digest, and ends no grant with a person.
Undone by downgrade: grants stay when people are removed, who can use none of them.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_16_granting_people"
down_revision = "2026_12_15_user_grants"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("user_grant", sa.Column("person", sa.Text, nullable=True))


def downgrade() -> None:
    op.drop_column("user_grant", "person")
