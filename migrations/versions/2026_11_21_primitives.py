"""Add servers and their approved definitions, groups, concerns and their mappings, descriptions and disclosures.

Safe while the previous release runs: it knows none of these tables.
Undone by downgrade: the tables and what they hold are lost; nothing else changes.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_21_primitives"
down_revision = "2026_11_20_first_tables"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
# The system path reads every tenant's servers at start and forgets what has expired; the rest is the tenant's own.
GRANTS = {
    "server": (EVERYTHING, "SELECT"),
    "server_pin": (EVERYTHING, "SELECT"),
    "primitive_group": (EVERYTHING, "SELECT"),
    "group_member": (EVERYTHING, "SELECT"),
    "concern": (EVERYTHING, "SELECT"),
    "concern_mapping": (EVERYTHING, "SELECT"),
    "concern_preference": (EVERYTHING, "SELECT"),
    "tool_description": (EVERYTHING, "SELECT"),
    "disclosure": (EVERYTHING, "SELECT, DELETE"),
}


def upgrade() -> None:
    _make_servers()
    _make_groups()
    _make_concerns()
    _make_disclosure()
    if op.get_bind().dialect.name == "postgresql":
        _isolate()


def downgrade() -> None:
    for name in (
        *("disclosure", "tool_description", "concern_preference", "concern_mapping", "concern"),
        *("group_member", "primitive_group", "server_pin", "server"),
    ):
        op.drop_table(name)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _moment(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _document(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False)


def _make_servers() -> None:
    op.create_table(
        "server",
        *(_text("tenant"), _text("name"), _document("document")),
        sa.Column("secrets", sa.LargeBinary, nullable=True),
        *(_text("origin"), _text("state"), _moment("pinned", nullable=True), _moment("created")),
        *(_text("created_by"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_server"),
    )
    op.create_table(
        "server_pin",
        *(_text("tenant"), _text("server"), _text("kind"), _text("name"), _text("digest")),
        *(_document("definition"), _moment("approved"), _text("approved_by")),
        sa.PrimaryKeyConstraint("tenant", "server", "kind", "name", name="pk_server_pin"),
        sa.ForeignKeyConstraint(
            ["tenant", "server"],
            ["server.tenant", "server.name"],
            name="fk_server_pin_server",
            ondelete="CASCADE",
        ),
    )


def _make_groups() -> None:
    op.create_table(
        "primitive_group",
        *(_text("tenant"), _text("name"), _document("document"), _text("origin")),
        *(_moment("created"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_primitive_group"),
    )
    op.create_table(
        "group_member",
        *(_text("tenant"), _text("group_name"), _text("kind"), _text("name"), _text("server")),
        sa.PrimaryKeyConstraint("tenant", "group_name", "kind", "name", "server", name="pk_group_member"),
        sa.ForeignKeyConstraint(
            ["tenant", "group_name"],
            ["primitive_group.tenant", "primitive_group.name"],
            name="fk_group_member_primitive_group",
            ondelete="CASCADE",
        ),
    )


def _make_concerns() -> None:
    op.create_table(
        "concern",
        *(_text("tenant"), _text("name"), _document("document"), _text("origin")),
        *(_moment("created"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_concern"),
    )
    op.create_table(
        "concern_mapping",
        *(_text("tenant"), _text("kind"), _text("name"), _document("document"), _text("origin")),
        *(_moment("created"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "kind", "name", name="pk_concern_mapping"),
    )
    op.create_table(
        "concern_preference",
        *(_text("tenant"), _text("principal"), _document("document"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "principal", name="pk_concern_preference"),
    )


def _make_disclosure() -> None:
    op.create_table(
        "tool_description",
        *(_text("tenant"), _text("name"), _document("document"), _text("origin"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_tool_description"),
    )
    op.create_table(
        "disclosure",
        *(_text("tenant"), _text("principal"), _text("name"), _text("digest"), _moment("expires")),
        sa.PrimaryKeyConstraint("tenant", "principal", "name", name="pk_disclosure"),
    )
    op.create_index("ix_disclosure_expires", "disclosure", ["expires"])


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    for name, (app, system) in GRANTS.items():
        op.execute(f"GRANT {app} ON {name} TO {APP}")
        op.execute(f"GRANT {system} ON {name} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
