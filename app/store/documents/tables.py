"""Tables of documents: collections, their parts by source and access, documents, chunks and ingestions.

Unlike the vault's originals, documents are stored unencrypted: an index cannot search ciphertext. The search index
itself, ``document_search``, is not a SQLAlchemy table: FTS5 on SQLite, tsvector and pgvector on PostgreSQL. On
SQLite, whose tokenizer knows Latin letters, ``document_search_words`` has the words beyond ASCII.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from app.store.tables import Document, Instant, metadata

__all__ = [
    "collection",
    "collection_document",
    "collection_part",
    "document_chunk",
    "indexed_document",
    "indexed_part",
    "ingestion",
    "metadata",
]


def _text(name: str, *, nullable: bool = False) -> Column[str]:
    return Column(name, Text, nullable=nullable)


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


collection = Table(
    "collection",
    metadata,
    _text("tenant"),
    _text("name"),
    Column("document", Document, nullable=False),
    Column("created", Instant, nullable=False),
    _text("created_by"),
    Column("updated", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "name"),
    ForeignKeyConstraint(["tenant"], ["tenant.id"]),
)

# Documents of one source that the same principals may read. Access is decided by part, before anything is ranked.
# Ranking needs ``chunks`` and ``words``; ``embedder`` names the model of all its vectors (empty: none or mixed).
collection_part = Table(
    "collection_part",
    metadata,
    _text("tenant"),
    Column("id", BigInteger, nullable=False, autoincrement=False),
    _text("collection"),
    _text("source"),
    _text("access_key"),
    Column("access", Document, nullable=False),
    _number("documents"),
    _number("chunks"),
    _number("words"),
    _text("embedder"),
    _number("revision"),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "collection", "source", "access_key"),
    ForeignKeyConstraint(
        ["tenant", "collection"], ["collection.tenant", "collection.name"], ondelete="CASCADE"
    ),
)

# ``prepared`` is the version of the rules (search_words.VERSION) by which its words were made for the index.
collection_document = Table(
    "collection_document",
    metadata,
    _text("tenant"),
    _text("id"),
    _text("collection"),
    _text("source"),
    _text("external_id"),
    _number("part"),
    _text("title"),
    _text("uri", nullable=True),
    _text("written", nullable=True),
    _text("media_type"),
    Column("digest", LargeBinary, nullable=False),
    _number("chunks"),
    _number("words"),
    _number("characters"),
    Column("created", Instant, nullable=False),
    Column("updated", Instant, nullable=False),
    Column("prepared", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("tenant", "id"),
    UniqueConstraint("tenant", "collection", "source", "external_id"),
    Index(None, "prepared", "tenant"),
    ForeignKeyConstraint(
        ["tenant", "part"], ["collection_part.tenant", "collection_part.id"], ondelete="CASCADE"
    ),
    Index(None, "tenant", "part"),
)

# ``number`` identifies a chunk in the search index; ``embedder`` is empty where there is no vector.
document_chunk = Table(
    "document_chunk",
    metadata,
    _text("tenant"),
    _text("document"),
    _number("ordinal"),
    _number("number"),
    _number("part"),
    _text("title"),
    _text("headings"),
    _text("text"),
    _text("embedder"),
    Column("vector", LargeBinary, nullable=True),
    PrimaryKeyConstraint("tenant", "document", "ordinal"),
    UniqueConstraint("tenant", "number"),
    Index(None, "tenant", "part", "number"),
    ForeignKeyConstraint(
        ["tenant", "document"], ["collection_document.tenant", "collection_document.id"], ondelete="CASCADE"
    ),
)

# A document being ingested: its bytes stay here until that is done, so that a restart loses none.
ingestion = Table(
    "ingestion",
    metadata,
    _text("tenant"),
    _text("id"),
    _text("collection"),
    Column("document", Document, nullable=False),
    Column("body", LargeBinary, nullable=True),
    _text("state"),
    _number("done"),
    _number("total"),
    _number("attempts"),
    _text("result", nullable=True),
    Column("created", Instant, nullable=False),
    _text("created_by"),
    Column("updated", Instant, nullable=False),
    PrimaryKeyConstraint("tenant", "id"),
    ForeignKeyConstraint(
        ["tenant", "collection"], ["collection.tenant", "collection.name"], ondelete="CASCADE"
    ),
    Index(None, "state", "updated"),
)

# What an index on another server contains, or may contain (``done`` 0: being sent). A row outlives its document, so
# that a deletion which the server did not confirm is repeated later.
indexed_document = Table(
    "indexed_document",
    metadata,
    _text("tenant"),
    _text("target"),
    _text("document_id"),
    _number("part"),
    Column("updated", Instant, nullable=False),
    _number("done"),
    PrimaryKeyConstraint("tenant", "target", "document_id"),
    Index(None, "tenant", "target", "part"),
)

# The revision at which a part is in the index with all its documents.
indexed_part = Table(
    "indexed_part",
    metadata,
    _text("tenant"),
    _text("target"),
    _number("part"),
    _number("revision"),
    PrimaryKeyConstraint("tenant", "target", "part"),
)
