"""Let tenants be erased: when that was ordered and when it was done, and the right to delete what they had.

Expand only. Safe while the previous release runs: it shows an erased tenant as a disabled one; but it could enable it
again, so erase tenants when every process has the new release.
Undone by downgrade: tenants that were erased are disabled ones without data; what was deleted stays deleted.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_11_28_tenant_erasure"
down_revision = "2026_11_27_audit_indexes"
branch_labels = None
depends_on = None

SYSTEM = "sluice_system"
MOMENTS = ("erased", "emptied")
TABLES = (
    *("api_key", "policy", "scope", "tenant_key", "server", "server_pin", "primitive_group", "group_member"),
    *("concern", "concern_mapping", "concern_preference", "tool_description", "pipeline", "provider"),
    *("collection", "collection_part", "collection_document", "document_chunk"),
)
"""Where the system path could delete nothing before; elsewhere it removes what has expired."""


def upgrade() -> None:
    for name in MOMENTS:
        op.add_column("tenant", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    if op.get_bind().dialect.name != "postgresql":
        return
    for name in TABLES:
        condition = f"EXISTS (SELECT FROM tenant t WHERE t.id = {name}.tenant AND t.erased IS NOT NULL)"
        op.execute(f"GRANT DELETE ON {name} TO {SYSTEM}")
        op.execute(
            f"CREATE POLICY erased_tenant ON {name} AS RESTRICTIVE FOR DELETE TO {SYSTEM} USING ({condition})"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for name in TABLES:
            op.execute(f"DROP POLICY erased_tenant ON {name}")
            op.execute(f"REVOKE DELETE ON {name} FROM {SYSTEM}")
    for name in reversed(MOMENTS):
        op.drop_column("tenant", name)
