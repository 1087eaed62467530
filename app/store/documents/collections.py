"""Queries on collections of documents and on their parts: documents of a source that the same principals may read."""

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, case, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import document, fetch
from app.store.documents.tables import collection, collection_part
from app.store.insertion import insert_absent
from app.store.paging import paged

_PART_BITS = 53
"""Keeps the numbers of parts within the integers of every JSON reader."""


_FILLED_PARTS = (
    "SELECT p.id, p.collection, p.source, p.access, p.documents, p.chunks, p.words, p.embedder, p.revision, c.document "
    "FROM collection_part p JOIN collection c ON c.tenant = p.tenant AND c.name = p.collection "
    "WHERE p.tenant = {} AND p.chunks > 0 ORDER BY p.id"
)


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """A collection; ``document`` contains its description and access list."""

    name: str
    document: Mapping[str, Any]
    created: datetime
    created_by: str
    updated: datetime


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Documents of one source and one access list; ``embedder`` is empty where vectors are missing or mixed.

    ``access`` are the principals that may read it (empty: those of the collection). ``revision`` grows with every
    change.
    """

    id: int
    collection: str
    source: str
    access: tuple[str, ...]
    documents: int
    chunks: int
    words: int
    embedder: str
    revision: int


class _FilledPart(NamedTuple):
    """A row of the statement above."""

    id: int
    collection: str
    source: str
    access: Any
    documents: int
    chunks: int
    words: int
    embedder: str
    revision: int
    document: Any


async def put_collection(tx: AsyncConnection, tenant: str, stored: StoredCollection) -> bool:
    """Store a collection or replace its document; return whether it is new."""
    values = {
        "tenant": tenant,
        "name": stored.name,
        "document": dict(stored.document),
        "created": stored.created,
        "created_by": stored.created_by,
        "updated": stored.updated,
    }
    if await insert_absent(tx, collection, values):
        return True
    changed = {"document": values["document"], "updated": stored.updated}
    named = (collection.c.tenant == tenant) & (collection.c.name == stored.name)
    await tx.execute(update(collection).where(named).values(**changed))
    return False


async def find_collection(tx: AsyncConnection, tenant: str, name: str) -> StoredCollection | None:
    """Return a collection."""
    query = select(collection).where(collection.c.tenant == tenant, collection.c.name == name)
    row = (await tx.execute(query)).one_or_none()
    return _collection(row) if row is not None else None


async def list_collections(
    tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
) -> list[StoredCollection]:
    """Return a tenant's collections in order of name, after the name ``after``."""
    query = select(collection).where(collection.c.tenant == tenant)
    query = paged(query, collection.c.name, behind=after, limit=limit)
    return [_collection(row) for row in await tx.execute(query)]


async def remove_collection(tx: AsyncConnection, tenant: str, name: str) -> None:
    """Delete a collection with its documents, their chunks and its waiting ingestions."""
    await tx.execute(delete(collection).where(collection.c.tenant == tenant, collection.c.name == name))


async def list_parts(
    tx: AsyncConnection, tenant: str, *, collections: Collection[str] | None = None
) -> list[StoredPart]:
    """Return the parts of a tenant, or those of ``collections``, in a stable order."""
    query = select(collection_part).where(collection_part.c.tenant == tenant).order_by(collection_part.c.id)
    if collections is not None:
        query = query.where(collection_part.c.collection.in_(collections))
    return [_part(row) for row in await tx.execute(query)]


async def list_held_parts(tx: AsyncConnection, tenant: str) -> list[tuple[StoredPart, frozenset[str]]]:
    """Return the parts of a tenant that have chunks, with the readers of their collections.

    Every retrieval begins with this, so it is one statement without SQLAlchemy's overhead.
    """
    mark = "$1" if tx.dialect.name == "postgresql" else "?"
    return [
        (_part(row), frozenset(document(row.document).get("access", ())))
        for row in map(_FilledPart._make, await fetch(tx, _FILLED_PARTS.format(mark), (tenant,)))
    ]


async def reach_part(
    tx: AsyncConnection, tenant: str, collection_name: str, source: str, access: Sequence[str]
) -> int:
    """Return the id of the part for such documents; create the part where there is none."""
    readers = sorted(set(access))
    key = hashlib.sha256(json.dumps(readers).encode()).hexdigest()[:32] if readers else ""
    values = {
        "tenant": tenant,
        "id": secrets.randbits(_PART_BITS) + 1,
        "collection": collection_name,
        "source": source,
        "access_key": key,
        "access": readers,
        **dict.fromkeys(("documents", "chunks", "words", "revision"), 0),
        "embedder": "",
    }
    await insert_absent(tx, collection_part, values)
    query = select(collection_part.c.id).where(
        collection_part.c.tenant == tenant,
        collection_part.c.collection == collection_name,
        collection_part.c.source == source,
        collection_part.c.access_key == key,
    )
    return int((await tx.execute(query)).scalar_one())


async def grow_part(
    tx: AsyncConnection, tenant: str, part: int, *, chunks: int, words: int, embedder: str
) -> None:
    """Add a document to the counts of a part."""
    column = collection_part.c
    kept = case((column.chunks == 0, embedder), (column.embedder == embedder, embedder), else_="")
    grown = {
        "documents": column.documents + 1,
        "chunks": column.chunks + chunks,
        "words": column.words + words,
        "revision": column.revision + 1,
        "embedder": kept,
    }
    await tx.execute(
        update(collection_part).where(column.tenant == tenant, column.id == part).values(**grown)
    )


async def shrink_part(tx: AsyncConnection, tenant: str, part: int, *, chunks: int, words: int) -> None:
    """Subtract a document from the counts of a part."""
    column = collection_part.c
    shrunk = {
        "documents": column.documents - 1,
        "chunks": column.chunks - chunks,
        "words": column.words - words,
        "revision": column.revision + 1,
    }
    named = (column.tenant == tenant) & (column.id == part)
    await tx.execute(update(collection_part).where(named).values(**shrunk))


async def remove_empty_parts(tx: AsyncConnection, tenant: str, collection_name: str) -> None:
    """Delete parts without documents, and with them the names of their readers."""
    column = collection_part.c
    await tx.execute(
        delete(collection_part).where(
            column.tenant == tenant, column.collection == collection_name, column.documents <= 0
        )
    )


async def mark_embedded(tx: AsyncConnection, tenant: str, part: int, embedder: str) -> None:
    """Record that all chunks of a part have vectors of ``embedder``."""
    column = collection_part.c
    changed = {"embedder": embedder, "revision": column.revision + 1}
    await tx.execute(
        update(collection_part).where(column.tenant == tenant, column.id == part).values(**changed)
    )


async def find_unembedded(tx: AsyncConnection, embedder: str, *, limit: int) -> list[tuple[str, int]]:
    """Return tenants and parts that lack vectors of ``embedder`` (system transactions)."""
    column = collection_part.c
    query = (
        select(column.tenant, column.id)
        .where(column.embedder != embedder, column.chunks > 0)
        .order_by(column.tenant, column.id)
        .limit(limit)
    )
    return [(row.tenant, row.id) for row in await tx.execute(query)]


async def list_large_tenants(tx: AsyncConnection, *, least: int) -> list[str]:
    """Return the tenants that have at least so many chunks (system transactions)."""
    column = collection_part.c
    query = select(column.tenant).group_by(column.tenant).having(func.sum(column.chunks) >= least)
    return [str(tenant) for tenant in (await tx.execute(query.order_by(column.tenant))).scalars()]


async def count_held(tx: AsyncConnection, tenant: str) -> tuple[int, int]:
    """Return the numbers of documents and chunks of a tenant."""
    column = collection_part.c
    query = select(func.sum(column.documents), func.sum(column.chunks)).where(column.tenant == tenant)
    documents, chunks = (await tx.execute(query)).one()
    return int(documents or 0), int(chunks or 0)


def _collection(row: Row[Any]) -> StoredCollection:
    return StoredCollection(row.name, row.document, row.created, row.created_by, row.updated)


def _part(row: "Row[Any] | _FilledPart") -> StoredPart:
    return StoredPart(
        row.id,
        row.collection,
        row.source,
        tuple(document(row.access)),
        row.documents,
        row.chunks,
        row.words,
        row.embedder,
        row.revision,
    )
