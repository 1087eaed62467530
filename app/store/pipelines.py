"""Queries on the versions of a tenant's pipelines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import pipeline

PipelineTransaction = AsyncConnection
"""What the functions here work in; an open transaction of ``Database.transaction``."""

State = Literal["active", "removed"]
Origin = Literal["file", "api"]


@dataclass(frozen=True, slots=True)
class StoredPipeline:
    """One version of a pipeline; versions are never deleted and count from 1, across removals too."""

    name: str
    version: int
    document: Mapping[str, Any]
    state: State
    origin: Origin
    created: datetime
    created_by: str


async def add_pipeline(tx: AsyncConnection, tenant: str, added: StoredPipeline) -> bool:
    """Store a version; return False and change nothing where that number is taken."""
    values = {
        "tenant": tenant,
        "name": added.name,
        "version": added.version,
        "document": dict(added.document),
        "state": added.state,
        "origin": added.origin,
        "created": added.created,
        "created_by": added.created_by,
    }
    return await insert_absent(tx, pipeline, values)


async def list_pipelines(
    tx: AsyncConnection,
    tenant: str,
    *,
    active: bool = False,
    after: str | None = None,
    limit: int | None = None,
) -> list[StoredPipeline]:
    """Return the newest version of each pipeline by name, after ``after``; ``active`` leaves out removed ones."""
    mine = pipeline.c.tenant == tenant
    newest = (
        select(pipeline.c.name, func.max(pipeline.c.version).label("version"))
        .where(mine)
        .group_by(pipeline.c.name)
        .subquery()
    )
    is_newest = (pipeline.c.name == newest.c.name) & (pipeline.c.version == newest.c.version)
    query = select(pipeline).join(newest, is_newest).where(mine)
    if active:
        query = query.where(pipeline.c.state == "active")
    query = paged(query, pipeline.c.name, behind=after, limit=limit)
    return [_stored(row) for row in await tx.execute(query)]


async def list_pipeline_versions(
    tx: AsyncConnection, tenant: str, name: str, *, before: int | None = None, limit: int = 1
) -> Sequence[StoredPipeline]:
    """Return the versions of one pipeline older than ``before``, newest first."""
    named = (pipeline.c.tenant == tenant) & (pipeline.c.name == name)
    query = paged(
        select(pipeline).where(named), pipeline.c.version, behind=before, limit=limit, newest_first=True
    )
    return [_stored(row) for row in await tx.execute(query)]


def _stored(row: Row[Any]) -> StoredPipeline:
    return StoredPipeline(
        row.name, row.version, row.document, row.state, row.origin, row.created, row.created_by
    )
