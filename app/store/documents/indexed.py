"""Queries on which of a tenant's documents the indexes on other servers contain, and which they lack."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.documents.tables import (
    collection_document,
    collection_part,
    document_chunk,
    indexed_document,
    indexed_part,
)


class ChunkRow(NamedTuple):
    """A chunk as it is sent to an index; ``vector`` is None where it was not embedded."""

    number: int
    part: int
    document: str
    ordinal: int
    title: str
    headings: str
    text: str
    vector: bytes | None


class PendingDocument(NamedTuple):
    """A document that an index lacks."""

    id: str
    updated: datetime
    chunks: int


async def list_tenants_behind(tx: AsyncConnection, target: str) -> list[str]:
    """Return the tenants with parts that changed since they were compared with an index (system transactions)."""
    part, mark = collection_part.c, indexed_part.c
    same = and_(
        mark.target == target,
        mark.tenant == part.tenant,
        mark.part == part.id,
        or_(mark.revision == part.revision, mark.revision == -1 - part.revision),
    )
    lacking = select(part.tenant).where(part.chunks > 0, ~exists(select(mark.part).where(same)))
    overtaken = select(mark.tenant).where(mark.target == target, ~exists(select(part.id).where(same)))
    return sorted({str(row.tenant) for row in await tx.execute(lacking.union(overtaken))})


async def list_targets(tx: AsyncConnection) -> list[str]:
    """Return the names of all indexes that have records here (system transactions)."""
    names = select(indexed_document.c.target).union(select(indexed_part.c.target))
    return sorted(str(name) for name in (await tx.execute(names)).scalars())


async def list_tenants_of(tx: AsyncConnection, target: str) -> list[str]:
    """Return the tenants of which an index may contain documents (system transactions)."""
    document, part = indexed_document.c, indexed_part.c
    names = select(document.tenant).where(document.target == target)
    names_of_parts = select(part.tenant).where(part.target == target)
    return sorted(str(name) for name in (await tx.execute(names.union(names_of_parts))).scalars())


async def forget_index(tx: AsyncConnection, target: str, tenant: str | None = None) -> None:
    """Delete the records of what an index contains (of one tenant, or of all)."""
    for table in (indexed_document, indexed_part):
        query = delete(table).where(table.c.target == target)
        await tx.execute(query if tenant is None else query.where(table.c.tenant == tenant))


async def list_marks(tx: AsyncConnection, tenant: str) -> list[tuple[str, int, int]]:
    """Return index, part and the revision at which the part is complete there (below 0: it is incomplete)."""
    column = indexed_part.c
    query = select(column.target, column.part, column.revision).where(column.tenant == tenant)
    return [(row.target, row.part, row.revision) for row in await tx.execute(query)]


async def list_stale(
    tx: AsyncConnection, tenant: str, target: str, *, limit: int, deleted: bool = False
) -> list[str]:
    """Return documents whose copy in an index is outdated or incomplete (``deleted``: those deleted since)."""
    indexed, now = indexed_document.c, collection_document.c
    query = select(indexed.document_id).where(indexed.tenant == tenant, indexed.target == target)
    same = and_(now.tenant == indexed.tenant, now.id == indexed.document_id)
    if deleted:
        query = query.where(indexed.done == 1, ~exists(select(now.id).where(same)))
    else:
        same = and_(same, now.updated == indexed.updated, now.part == indexed.part)
        query = query.where(or_(indexed.done == 0, ~exists(select(now.id).where(same))))
    return [
        str(document_id)
        for document_id in (await tx.execute(query.order_by(indexed.document_id).limit(limit))).scalars()
    ]


async def list_pending(
    tx: AsyncConnection, tenant: str, target: str, part: int, *, limit: int
) -> list[PendingDocument]:
    """Return documents of a part that an index lacks."""
    indexed, now = indexed_document.c, collection_document.c
    same = and_(indexed.tenant == now.tenant, indexed.target == target, indexed.document_id == now.id)
    query = (
        select(now.id, now.updated, now.chunks)
        .where(now.tenant == tenant, now.part == part, ~exists(select(indexed.document_id).where(same)))
        .order_by(now.id)
        .limit(limit)
    )
    return [PendingDocument(row.id, row.updated, row.chunks) for row in await tx.execute(query)]


async def begin_indexing(
    tx: AsyncConnection, tenant: str, target: str, part: int, documents: Sequence[PendingDocument]
) -> None:
    """Record that an index may contain these documents, before any of them is sent."""
    rows = [
        {
            "tenant": tenant,
            "target": target,
            "document_id": document.id,
            "part": part,
            "updated": document.updated,
            "done": 0,
        }
        for document in documents
    ]
    await tx.execute(insert(indexed_document), rows)


async def finish_indexing(tx: AsyncConnection, tenant: str, target: str, documents: Sequence[str]) -> None:
    """Record that an index contains these documents completely."""
    named = _named(tenant, target, documents)
    await tx.execute(update(indexed_document).where(named).values(done=1))


async def forget_indexed(tx: AsyncConnection, tenant: str, target: str, documents: Sequence[str]) -> None:
    """Record that an index no longer contains any of these documents."""
    await tx.execute(delete(indexed_document).where(_named(tenant, target, documents)))


async def count_indexed(tx: AsyncConnection, tenant: str, target: str) -> int:
    """Return how many chunks an index should have of the documents that are complete and current there."""
    indexed, now = indexed_document.c, collection_document.c
    same = and_(now.tenant == indexed.tenant, now.id == indexed.document_id, now.updated == indexed.updated)
    query = (
        select(func.coalesce(func.sum(now.chunks), 0))
        .select_from(indexed_document.join(collection_document, same))
        .where(indexed.tenant == tenant, indexed.target == target, indexed.done == 1)
    )
    return int((await tx.execute(query)).scalar_one())


async def set_marks(
    tx: AsyncConnection, tenant: str, target: str, whole: Mapping[int, int], compared: Mapping[int, int]
) -> None:
    """Record which of the ``compared`` parts are complete in an index; both mappings are revisions by part."""
    column = indexed_part.c
    await tx.execute(delete(indexed_part).where(column.tenant == tenant, column.target == target))
    rows = [
        {
            "tenant": tenant,
            "target": target,
            "part": part,
            "revision": revision if part in whole else -1 - revision,
        }
        for part, revision in compared.items()
    ]
    if rows:
        await tx.execute(insert(indexed_part), rows)


async def list_document_chunks(
    tx: AsyncConnection, tenant: str, document: str, *, after: int, limit: int
) -> list[ChunkRow]:
    """Return chunks of a document in order, after the ordinal ``after``."""
    column = document_chunk.c
    query = (
        select(
            *(column.number, column.part, column.document, column.ordinal, column.title, column.headings),
            *(column.text, column.vector),
        )
        .where(column.tenant == tenant, column.document == document, column.ordinal > after)
        .order_by(column.ordinal)
        .limit(limit)
    )
    return [ChunkRow(*row) for row in await tx.execute(query)]


async def read_some_vectors(
    tx: AsyncConnection, tenant: str, numbers: Sequence[int], embedder: str
) -> list[tuple[int, bytes]]:
    """Return the numbers of these chunks, ascending, with their vectors of ``embedder``."""
    column = document_chunk.c
    query = (
        select(column.number, column.vector)
        .where(column.tenant == tenant, column.number.in_(list(numbers)), column.embedder == embedder)
        .order_by(column.number)
    )
    return [(row.number, row.vector) for row in await tx.execute(query)]


def _named(tenant: str, target: str, documents: Sequence[str]) -> ColumnElement[bool]:
    column = indexed_document.c
    return and_(column.tenant == tenant, column.target == target, column.document_id.in_(list(documents)))
