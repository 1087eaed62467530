"""Queries on documents that wait to be ingested."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.documents.tables import ingestion
from app.store.paging import paged

IngestionState = Literal["queued", "running", "done", "failed"]
_UNFINISHED = ("queued", "running")


@dataclass(frozen=True, slots=True)
class StoredIngestion:
    """A document being ingested; ``result`` is the id of the document when done, or why it failed."""

    tenant: str
    id: str
    collection: str
    document: Mapping[str, Any]
    state: IngestionState
    done: int
    total: int
    attempts: int
    result: str | None
    created: datetime
    created_by: str
    updated: datetime


async def add_ingestion(tx: AsyncConnection, added: StoredIngestion, body: bytes) -> None:
    """Queue a document for ingestion."""
    values = {name: getattr(added, name) for name in StoredIngestion.__slots__}
    await tx.execute(insert(ingestion).values(**values | {"document": dict(added.document), "body": body}))


async def find_ingestion(
    tx: AsyncConnection, tenant: str, collection: str, id_: str
) -> StoredIngestion | None:
    """Return one ingestion, without its content."""
    column = ingestion.c
    query = _ingestions().where(column.tenant == tenant, column.collection == collection, column.id == id_)
    row = (await tx.execute(query)).one_or_none()
    return _ingestion(row) if row is not None else None


async def list_ingestions(
    tx: AsyncConnection, tenant: str, collection: str, *, after: str | None, limit: int
) -> list[StoredIngestion]:
    """Return ingestions in order of arrival, after the id ``after``."""
    column = ingestion.c
    query = _ingestions().where(column.tenant == tenant, column.collection == collection)
    query = paged(query, column.id, behind=after, limit=limit)
    return [_ingestion(row) for row in await tx.execute(query)]


async def count_waiting(tx: AsyncConnection, tenant: str) -> int:
    """Return how many ingestions of a tenant wait or run."""
    column = ingestion.c
    query = select(column.id).where(column.tenant == tenant, column.state.in_(_UNFINISHED))
    return len((await tx.execute(query)).all())


async def list_oldest_waiting(tx: AsyncConnection, *, silent_since: datetime) -> dict[str, StoredIngestion]:
    """Return the oldest ingestion of each tenant that waits, or runs without progress since a moment.

    For system transactions.
    """
    column = ingestion.c
    abandoned = (column.state == "running") & (column.updated < silent_since)
    oldest = select(func.min(column.id)).where((column.state == "queued") | abandoned).group_by(column.tenant)
    rows = await tx.execute(_ingestions().where(column.id.in_(oldest)))
    return {row.tenant: _ingestion(row) for row in rows}


async def claim_ingestion(tx: AsyncConnection, waiting: StoredIngestion, moment: datetime) -> bytes | None:
    """Claim an ingestion from ``list_oldest_waiting`` and return its content; None where another process was faster."""
    column = ingestion.c
    named = (column.tenant == waiting.tenant) & (column.id == waiting.id)
    unchanged = named & (column.attempts == waiting.attempts) & (column.state == waiting.state)
    changed = {"state": "running", "attempts": waiting.attempts + 1, "updated": moment}
    taken = await tx.execute(update(ingestion).where(unchanged).values(**changed).returning(column.body))
    body: bytes | None = taken.scalar_one_or_none()
    return body


async def note_progress(
    tx: AsyncConnection, tenant: str, id_: str, *, done: int, total: int, moment: datetime
) -> None:
    """Record the progress of an ingestion, which also shows that its process is alive."""
    column = ingestion.c
    changed = {"done": done, "total": total, "updated": moment}
    await tx.execute(update(ingestion).where(column.tenant == tenant, column.id == id_).values(**changed))


async def finish_ingestion(
    tx: AsyncConnection, tenant: str, id_: str, state: IngestionState, result: str, moment: datetime
) -> None:
    """Record the outcome of an ingestion and delete its content."""
    column = ingestion.c
    changed: dict[str, Any] = {"state": state, "result": result, "body": None, "updated": moment}
    if state == "done":
        changed["done"] = column.total
    await tx.execute(update(ingestion).where(column.tenant == tenant, column.id == id_).values(**changed))


async def remove_waiting(
    tx: AsyncConnection, tenant: str, collection: str, source: str, external_id: str
) -> None:
    """Delete waiting and running ingestions under the name of a document that is deleted."""
    column = ingestion.c
    query = _ingestions().where(
        column.tenant == tenant, column.collection == collection, column.state.in_(_UNFINISHED)
    )
    named = [
        row.id
        for row in await tx.execute(query)
        if (row.document["details"]["source"], row.document["details"]["external_id"])
        == (source, external_id)
    ]
    await tx.execute(delete(ingestion).where(column.tenant == tenant, column.id.in_(named)))


async def remove_finished(tx: AsyncConnection, before: datetime) -> None:
    """Delete ingestions that ended before a moment (system transactions)."""
    column = ingestion.c
    await tx.execute(delete(ingestion).where(column.state.in_(("done", "failed")), column.updated < before))


def _ingestions() -> Select[Any]:
    return select(*(ingestion.c[name] for name in StoredIngestion.__slots__))


def _ingestion(row: Row[Any]) -> StoredIngestion:
    return StoredIngestion(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public name for it
