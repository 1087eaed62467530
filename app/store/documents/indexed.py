"""Queries on what indexes on other servers hold of a tenant's documents, and on what they lack."""

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
    """A chunk as an index is given it; ``vector`` is None where nothing embedded it."""

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
    """Return the names of all indexes that anything is known of (system transactions)."""
    names = select(indexed_document.c.target).union(select(indexed_part.c.target))
    return sorted(str(name) for name in (await tx.execute(names)).scalars())


async def list_tenants_of(tx: AsyncConnection, target: str) -> list[str]:
    """Return the tenants that an index may hold anything of (system transactions)."""
    document, part = indexed_document.c, indexed_part.c
    names = select(document.tenant).where(document.target == target)
    names_of_parts = select(part.tenant).where(part.target == target)
    return sorted(str(name) for name in (await tx.execute(names.union(names_of_parts))).scalars())


async def forget_index(tx: AsyncConnection, target: str, tenant: str | None = None) -> None:
    """Forget what an index was said to hold (of one tenant)."""
    for table in (indexed_document, indexed_part):
        query = delete(table).where(table.c.target == target)
        await tx.execute(query if tenant is None else query.where(table.c.tenant == tenant))


async def list_marks(tx: AsyncConnection, tenant: str) -> list[tuple[str, int, int]]:
    """Return index, part and the revision at which it is whole there (below 0: it is not)."""
    column = indexed_part.c
    query = select(column.target, column.part, column.revision).where(column.tenant == tenant)
    return [(row.target, row.part, row.revision) for row in await tx.execute(query)]


async def list_stale(
    tx: AsyncConnection, tenant: str, target: str, *, limit: int, deleted: bool = False
) -> list[str]:
    """Return documents that an index holds otherwise than they are now, or half (``deleted``: those that are gone)."""
    held, now = indexed_document.c, collection_document.c
    query = select(held.document_id).where(held.tenant == tenant, held.target == target)
    same = and_(now.tenant == held.tenant, now.id == held.document_id)
    if deleted:
        query = query.where(held.done == 1, ~exists(select(now.id).where(same)))
    else:
        same = and_(same, now.updated == held.updated, now.part == held.part)
        query = query.where(or_(held.done == 0, ~exists(select(now.id).where(same))))
    return [str(one) for one in (await tx.execute(query.order_by(held.document_id).limit(limit))).scalars()]


async def list_pending(
    tx: AsyncConnection, tenant: str, target: str, part: int, *, limit: int
) -> list[PendingDocument]:
    """Return documents of a part that an index lacks."""
    held, now = indexed_document.c, collection_document.c
    same = and_(held.tenant == now.tenant, held.target == target, held.document_id == now.id)
    query = (
        select(now.id, now.updated, now.chunks)
        .where(now.tenant == tenant, now.part == part, ~exists(select(held.document_id).where(same)))
        .order_by(now.id)
        .limit(limit)
    )
    return [PendingDocument(row.id, row.updated, row.chunks) for row in await tx.execute(query)]


async def begin_indexing(
    tx: AsyncConnection, tenant: str, target: str, part: int, documents: Sequence[PendingDocument]
) -> None:
    """Say that an index may hold these documents, before it is given any of them."""
    rows = [
        {
            "tenant": tenant,
            "target": target,
            "document_id": one.id,
            "part": part,
            "updated": one.updated,
            "done": 0,
        }
        for one in documents
    ]
    await tx.execute(insert(indexed_document), rows)


async def finish_indexing(tx: AsyncConnection, tenant: str, target: str, documents: Sequence[str]) -> None:
    """Say that an index holds these documents whole."""
    named = _named(tenant, target, documents)
    await tx.execute(update(indexed_document).where(named).values(done=1))


async def forget_indexed(tx: AsyncConnection, tenant: str, target: str, documents: Sequence[str]) -> None:
    """Say that an index no longer holds any of these documents."""
    await tx.execute(delete(indexed_document).where(_named(tenant, target, documents)))


async def count_indexed(tx: AsyncConnection, tenant: str, target: str) -> int:
    """Return how many chunks an index should have of the documents that it holds as they are now."""
    held, now = indexed_document.c, collection_document.c
    same = and_(now.tenant == held.tenant, now.id == held.document_id, now.updated == held.updated)
    query = (
        select(func.coalesce(func.sum(now.chunks), 0))
        .select_from(indexed_document.join(collection_document, same))
        .where(held.tenant == tenant, held.target == target, held.done == 1)
    )
    return int((await tx.execute(query)).scalar_one())


async def set_marks(
    tx: AsyncConnection, tenant: str, target: str, whole: Mapping[int, int], compared: Mapping[int, int]
) -> None:
    """Say which of the parts that were ``compared`` an index holds whole; both are revisions by part."""
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
    """Return chunks of a document in their order, those behind the ordinal ``after``."""
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
