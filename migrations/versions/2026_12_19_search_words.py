"""Add an index of words in scripts that SQLite's tokenizer does not cut, and by which rules documents were indexed.

Documents that are stored already are indexed again in the background by the service, a few at a time; until then they
are found as before. Safe while the previous release runs: what it stores counts as not prepared and is indexed again.
On PostgreSQL the index is built without blocking writers; a build that was interrupted is begun anew by the next try.
Undone by downgrade: the second index is lost, and texts in other scripts are found as badly as before.
"""

import sqlalchemy as sa
from alembic import op

revision = "2026_12_19_search_words"
down_revision = "2026_12_18_astray_events"
branch_labels = None
depends_on = None

INDEX = "ix_collection_document_prepared_tenant"
WAITS = ("lock_timeout", "statement_timeout")
# The words are made by the service: whatever is not ASCII belongs to a word, and only spaces separate them.
FTS5 = "CREATE VIRTUAL TABLE document_search_words USING fts5(words, part, tokenize = 'ascii')"
GONE = "DELETE FROM document_search_words WHERE rowid = old.number"
TRIGGER = f"CREATE TRIGGER document_chunk_words_gone AFTER DELETE ON document_chunk BEGIN {GONE}; END"


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    columns = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("collection_document")}
    if "prepared" not in columns:  # an interrupted build of the index is tried again
        op.add_column(
            "collection_document", sa.Column("prepared", sa.BigInteger, nullable=False, server_default="0")
        )
    if postgres:
        _build()
        return
    op.create_index(INDEX, "collection_document", ["prepared", "tenant"])
    op.execute(FTS5)
    op.execute(TRIGGER)


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        op.execute("DROP TRIGGER document_chunk_words_gone")
        op.execute("DROP TABLE document_search_words")
    op.execute(f"DROP INDEX IF EXISTS {INDEX}")
    op.drop_column("collection_document", "prepared")


def _build() -> None:
    asked = f"SELECT {', '.join(f'current_setting({wait!r})' for wait in WAITS)}"
    before = op.get_bind().execute(sa.text(asked)).one()
    with op.get_context().autocommit_block():
        # A concurrent build waits for transactions that began before it, without blocking anybody.
        _set_waits(dict.fromkeys(WAITS, "0"))
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX} ON collection_document (prepared, tenant)")
        _set_waits(dict(zip(WAITS, before, strict=True)))


def _set_waits(values: dict[str, str]) -> None:
    for name, value in values.items():
        op.execute(f"SET {name} = '{value}'")
