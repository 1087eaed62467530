"""Add collections of documents with their chunks, their search index and what waits to be read.

Safe while the previous release runs: it knows none of these tables.
Undone by downgrade: the tables and the documents are lost; the extension vector, where this installed it, stays.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "2026_11_22_documents"
down_revision = "2026_11_22_pipelines"
branch_labels = None
depends_on = None

APP, SYSTEM = "sluice_app", "sluice_system"
EVERYTHING = "SELECT, INSERT, UPDATE, DELETE"
# The system path looks for work of all tenants: what waits to be read and what has no vector yet.
GRANTS = {
    "collection": (EVERYTHING, "SELECT"),
    "collection_part": (EVERYTHING, "SELECT"),
    "collection_document": (EVERYTHING, "SELECT"),
    "document_chunk": (EVERYTHING, "SELECT"),
    "ingestion": (EVERYTHING, "SELECT, DELETE"),
    "document_search": (EVERYTHING, "SELECT"),
}
# The columns of the text index must be those of document_chunk, by name: it holds no copy of the text.
FTS5 = """
CREATE VIRTUAL TABLE document_search USING fts5(
    title, headings, text, part,
    content = 'document_chunk', content_rowid = 'number', tokenize = 'porter unicode61 remove_diacritics 2'
)"""
NEW = (
    "INSERT INTO document_search (rowid, title, headings, text, part) "
    "VALUES (new.number, new.title, new.headings, new.text, new.part)"
)
OLD = (
    "INSERT INTO document_search (document_search, rowid, title, headings, text, part) "
    "VALUES ('delete', old.number, old.title, old.headings, old.text, old.part)"
)
INDEXED = "title, headings, text, part, number"


def upgrade() -> None:
    _make_collections()
    _make_documents()
    _make_ingestion()
    if op.get_bind().dialect.name == "postgresql":
        _make_postgres_index()
        _isolate()
    else:
        op.execute(FTS5)
        op.execute(f"CREATE TRIGGER document_chunk_added AFTER INSERT ON document_chunk BEGIN {NEW}; END")
        op.execute(f"CREATE TRIGGER document_chunk_gone AFTER DELETE ON document_chunk BEGIN {OLD}; END")
        op.execute(
            f"CREATE TRIGGER document_chunk_changed AFTER UPDATE OF {INDEXED} ON document_chunk BEGIN {OLD}; {NEW}; END"
        )


def downgrade() -> None:
    op.execute("DROP TABLE document_search")
    for name in ("ingestion", "document_chunk", "collection_document", "collection_part", "collection"):
        op.drop_table(name)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP SEQUENCE document_chunk_number")


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, autoincrement=False)


def _moment(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _document(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.JSON().with_variant(JSONB(), "postgresql"), nullable=False)


def _in_collection(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant", "collection"],
        ["collection.tenant", "collection.name"],
        name=f"fk_{table}_collection",
        ondelete="CASCADE",
    )


def _make_collections() -> None:
    op.create_table(
        "collection",
        *(_text("tenant"), _text("name"), _document("document"), _moment("created"), _text("created_by")),
        _moment("updated"),
        sa.PrimaryKeyConstraint("tenant", "name", name="pk_collection"),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_collection_tenant"),
    )
    op.create_table(
        "collection_part",
        *(_text("tenant"), _number("id"), _text("collection"), _text("source"), _text("access_key")),
        *(_document("access"), _number("documents"), _number("chunks"), _number("words"), _text("embedder")),
        _number("revision"),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_collection_part"),
        sa.UniqueConstraint(
            *("tenant", "collection", "source", "access_key"),
            name="uq_collection_part_tenant_collection_source_access_key",
        ),
        _in_collection("collection_part"),
    )


def _make_documents() -> None:
    op.create_table(
        "collection_document",
        *(_text("tenant"), _text("id"), _text("collection"), _text("source"), _text("external_id")),
        *(_number("part"), _text("title"), _text("uri", nullable=True), _text("written", nullable=True)),
        _text("media_type"),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        *(_number("chunks"), _number("words"), _number("characters"), _moment("created"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_collection_document"),
        sa.UniqueConstraint(
            *("tenant", "collection", "source", "external_id"),
            name="uq_collection_document_tenant_collection_source_external_id",
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "part"],
            ["collection_part.tenant", "collection_part.id"],
            name="fk_collection_document_collection_part",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_collection_document_tenant_part", "collection_document", ["tenant", "part"])
    op.create_table(
        "document_chunk",
        *(_text("tenant"), _text("document"), _number("ordinal"), _number("number"), _number("part")),
        *(_text("title"), _text("headings"), _text("text"), _text("embedder")),
        sa.Column("vector", sa.LargeBinary, nullable=True),
        sa.PrimaryKeyConstraint("tenant", "document", "ordinal", name="pk_document_chunk"),
        sa.UniqueConstraint("tenant", "number", name="uq_document_chunk_tenant_number"),
        sa.ForeignKeyConstraint(
            ["tenant", "document"],
            ["collection_document.tenant", "collection_document.id"],
            name="fk_document_chunk_collection_document",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_document_chunk_tenant_part_number", "document_chunk", ["tenant", "part", "number"])


def _make_ingestion() -> None:
    op.create_table(
        "ingestion",
        *(_text("tenant"), _text("id"), _text("collection"), _document("document")),
        sa.Column("body", sa.LargeBinary, nullable=True),
        *(_text("state"), _number("done"), _number("total"), _number("attempts")),
        *(_text("result", nullable=True), _moment("created"), _text("created_by"), _moment("updated")),
        sa.PrimaryKeyConstraint("tenant", "id", name="pk_ingestion"),
        _in_collection("ingestion"),
    )
    op.create_index("ix_ingestion_state_updated", "ingestion", ["state", "updated"])


def _make_postgres_index() -> None:
    op.execute("CREATE SEQUENCE document_chunk_number")
    op.execute(f"GRANT USAGE ON SEQUENCE document_chunk_number TO {APP}")
    vector = ", embedding vector" if _has_vectors() else ""
    op.execute(
        "CREATE TABLE document_search (tenant text NOT NULL, number bigint NOT NULL, part bigint NOT NULL, "
        f"terms tsvector NOT NULL, embedder text NOT NULL{vector}, "
        "CONSTRAINT pk_document_search PRIMARY KEY (tenant, number), "
        "CONSTRAINT fk_document_search_document_chunk FOREIGN KEY (tenant, number) "
        "REFERENCES document_chunk (tenant, number) ON DELETE CASCADE)"
    )
    op.execute("CREATE INDEX ix_document_search_terms ON document_search USING gin (terms)")
    op.execute("CREATE INDEX ix_document_search_tenant_part ON document_search (tenant, part)")


def _has_vectors() -> bool:
    """Tell whether the extension vector is there, installing it where the server has it and lets this login."""
    connection = op.get_bind()
    installed = "SELECT count(*) FROM pg_extension WHERE extname = 'vector'"
    if connection.execute(sa.text(installed)).scalar_one():
        return True
    available = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
    if not connection.execute(sa.text(available)).scalar_one():
        return False
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION vector"))
    except sa.exc.DBAPIError:
        # Only some logins may install extensions: vectors are then compared in the service's own process.
        return False
    return True


def _isolate() -> None:
    mine = "tenant = nullif(current_setting('app.tenant', true), '')"
    for name, (app, system) in GRANTS.items():
        op.execute(f"GRANT {app} ON {name} TO {APP}")
        op.execute(f"GRANT {system} ON {name} TO {SYSTEM}")
        op.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY own_tenant ON {name} TO {APP} USING ({mine}) WITH CHECK ({mine})")
        op.execute(f"CREATE POLICY every_tenant ON {name} TO {SYSTEM} USING (true) WITH CHECK (true)")
