"""Queries on the documents of collections and on their chunks."""

import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.catalog.search_words import VERSION
from app.store.documents.collections import grow_part, reach_part, remove_empty_parts, shrink_part
from app.store.documents.search_words import TERMS, index_words, prepared
from app.store.documents.tables import collection_document, collection_part, document_chunk
from app.store.paging import paged

CollectionTransaction = AsyncConnection
"""What the functions here work in; an open transaction of ``Database.transaction``."""

_BATCH = 500
_INDEX = (
    "INSERT INTO document_search (tenant, number, part, embedder, terms) "  # noqa: S608 - our own words
    f"VALUES (:tenant, :number, :part, :embedder, {TERMS})"
)
_INDEX_WITH_VECTORS = (
    "INSERT INTO document_search (tenant, number, part, embedder, terms, embedding) "  # noqa: S608 - as above
    f"VALUES (:tenant, :number, :part, :embedder, {TERMS}, CAST(CAST(:vector AS text) AS vector))"
)
_MARK = "UPDATE document_search SET embedder = :embedder{} WHERE tenant = :tenant AND number = :number"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document without its chunks; ``access`` are its own readers (empty: those of the collection)."""

    id: str
    collection: str
    source: str
    external_id: str
    title: str
    uri: str | None
    written: str | None
    media_type: str
    digest: bytes
    access: tuple[str, ...]
    chunks: int
    words: int
    characters: int
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a document; ``vector`` is None where it was not embedded."""

    headings: str
    text: str
    vector: bytes | None = None


async def find_document(
    tx: AsyncConnection,
    tenant: str,
    collection: str,
    *,
    id_: str | None = None,
    named: tuple[str, str] = ("", ""),
) -> StoredDocument | None:
    """Return a document by its id, or by source and external id."""
    column = collection_document.c
    query = _documents().where(column.tenant == tenant, column.collection == collection)
    if id_ is not None:
        query = query.where(column.id == id_)
    else:
        query = query.where(column.source == named[0], column.external_id == named[1])
    row = (await tx.execute(query)).one_or_none()
    return _document(row) if row is not None else None


async def list_documents(
    tx: AsyncConnection,
    tenant: str,
    collection: str,
    *,
    source: str | None = None,
    after: tuple[str, str] | None = None,
    limit: int,
) -> list[StoredDocument]:
    """Return documents in order of source and external id, after the key ``after``."""
    column = collection_document.c
    query = _documents().where(column.tenant == tenant, column.collection == collection)
    if source is not None:
        query = query.where(column.source == source)
    query = paged(query, column.source, column.external_id, behind=after, limit=limit)
    return [_document(row) for row in await tx.execute(query)]


async def write_document(
    tx: AsyncConnection,
    tenant: str,
    document: StoredDocument,
    chunks: Sequence[StoredChunk],
    embedder: str,
    *,
    vectors: bool,
) -> None:
    """Store a document and replace an older one of the same name; readers see either the one or the other.

    ``embedder`` made the vectors of the chunks (empty: they have none); ``vectors``: the database itself compares
    them.
    """
    old = await find_document(tx, tenant, document.collection, named=(document.source, document.external_id))
    if old is not None:
        await _remove(tx, tenant, old)
    part = await reach_part(tx, tenant, document.collection, document.source, document.access)
    values = {"tenant": tenant, "part": part, "prepared": VERSION, **_values(document)}
    await tx.execute(insert(collection_document).values(values))
    numbers = await _numbers(tx, len(chunks))
    rows = [
        {
            "tenant": tenant,
            "document": document.id,
            "ordinal": ordinal,
            "number": number,
            "part": part,
            "title": document.title,
            "headings": chunk.headings,
            "text": chunk.text,
            "embedder": embedder,
            "vector": chunk.vector,
        }
        for ordinal, (number, chunk) in enumerate(zip(numbers, chunks, strict=True))
    ]
    for start in range(0, len(rows), _BATCH):
        await tx.execute(insert(document_chunk), rows[start : start + _BATCH])
        await _index(tx, rows[start : start + _BATCH], vectors=vectors)
    await grow_part(tx, tenant, part, chunks=len(rows), words=document.words, embedder=embedder)
    await remove_empty_parts(tx, tenant, document.collection)


async def remove_document(tx: AsyncConnection, tenant: str, document: StoredDocument) -> None:
    """Delete a document, its chunks and its entries in the index."""
    await _remove(tx, tenant, document)
    await remove_empty_parts(tx, tenant, document.collection)


async def list_unembedded(
    tx: AsyncConnection, tenant: str, part: int, embedder: str, *, limit: int
) -> list[tuple[int, str]]:
    """Return number and text to embed of chunks without a vector of ``embedder``."""
    column = document_chunk.c
    query = (
        select(column.number, column.title, column.headings, column.text)
        .where(column.tenant == tenant, column.part == part, column.embedder != embedder)
        .order_by(column.number)
        .limit(limit)
    )
    return [(row.number, embedded_text(row.title, row.headings, row.text)) for row in await tx.execute(query)]


async def set_vectors(
    tx: AsyncConnection, tenant: str, embedder: str, embedded: Sequence[tuple[int, bytes]], *, vectors: bool
) -> None:
    """Store the vectors of ``embedder`` by number of chunk; chunks deleted meanwhile are skipped."""
    column = document_chunk.c
    for number, vector in embedded:
        named = (column.tenant == tenant) & (column.number == number)
        await tx.execute(update(document_chunk).where(named).values(embedder=embedder, vector=vector))
        if tx.dialect.name == "postgresql":
            statement = _MARK.format(", embedding = CAST(CAST(:vector AS text) AS vector)" if vectors else "")
            values = {"tenant": tenant, "number": number, "embedder": embedder}
            await tx.execute(text(statement), values | ({"vector": spelled(vector)} if vectors else {}))


def embedded_text(title: str, headings: str, body: str) -> str:
    """Return the text of a chunk to embed: its title, its headings and its body."""
    return "\n".join(part for part in (title, headings, body) if part)


def spelled(vector: bytes) -> str:
    """Return a vector in pgvector's text form."""
    return f"[{','.join(map(repr, array.array('f', vector)))}]"


def _documents() -> Select[Any]:
    """Return the query of documents with the readers of their part."""
    its_part = (collection_part.c.tenant == collection_document.c.tenant) & (
        collection_part.c.id == collection_document.c.part
    )
    return select(collection_document, collection_part.c.access).join(collection_part, its_part)


async def _remove(tx: AsyncConnection, tenant: str, document: StoredDocument) -> None:
    column = collection_document.c
    named = (column.tenant == tenant) & (column.id == document.id)
    done = await tx.execute(delete(collection_document).where(named).returning(column.part))
    part = done.scalar_one_or_none()
    if part is not None:
        await shrink_part(tx, tenant, part, chunks=document.chunks, words=document.words)


async def _numbers(tx: AsyncConnection, count: int) -> list[int]:
    """Return ``count`` unused numbers for chunks."""
    if tx.dialect.name == "postgresql":
        drawn = "SELECT nextval('document_chunk_number') FROM generate_series(1, :count)"
        return [int(number) for number in (await tx.execute(text(drawn), {"count": count})).scalars()]
    # The index's own table ends with the greatest number, and SQLite has one writer at a time.
    last = int(
        (await tx.execute(text("SELECT coalesce(max(id), 0) FROM document_search_docsize"))).scalar_one()
    )
    return list(range(last + 1, last + 1 + count))


async def _index(tx: AsyncConnection, rows: Sequence[dict[str, Any]], *, vectors: bool) -> None:
    """Add chunks to the index; on SQLite triggers do, but for words beyond ASCII."""
    if tx.dialect.name != "postgresql":
        await index_words(tx, rows)
        return
    texts = await prepared(rows)
    values = [
        {name: row[name] for name in ("tenant", "number", "part", "embedder")}
        | text_row
        | ({"vector": spelled(row["vector"]) if row["vector"] is not None else None} if vectors else {})
        for row, text_row in zip(rows, texts, strict=True)
    ]
    statement = _INDEX_WITH_VECTORS if vectors else _INDEX
    await tx.execute(text(statement), values)


def _values(document: StoredDocument) -> dict[str, Any]:
    return {
        name: getattr(document, name)
        for name in (
            *("id", "collection", "source", "external_id", "title", "uri", "written", "media_type", "digest"),
            *("chunks", "words", "characters", "created", "updated"),
        )
    }


def _document(row: Row[Any]) -> StoredDocument:
    return StoredDocument(
        row.id,
        row.collection,
        row.source,
        row.external_id,
        row.title,
        row.uri,
        row.written,
        row.media_type,
        row.digest,
        tuple(row.access),
        row.chunks,
        row.words,
        row.characters,
        row.created,
        row.updated,
    )
