"""Queries on concerns, on the mappings of primitives and on callers' preferences."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Table, delete, insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.catalog.primitives import PrimitiveKind
from app.store.paging import by_code_point, paged
from app.store.tables import concern, concern_mapping, concern_preference

Origin = Literal["file", "api"]
ConcernTransaction = AsyncConnection
"""What the functions here work in; an open transaction of ``Database.transaction``."""


@dataclass(frozen=True, slots=True)
class StoredConcern:
    """One definition; ``document`` is all of it except the name."""

    name: str
    document: Mapping[str, Any]
    origin: Origin
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """The mapping of the primitives that match a pattern; the keys of ``document`` are names of concerns."""

    kind: PrimitiveKind
    name: str
    document: Mapping[str, Any]
    origin: Origin
    created: datetime
    updated: datetime


async def lock_concerns(tx: AsyncConnection, tenant: str) -> None:
    """Keep others from changing the tenant's concerns until ``tx`` ends, because mappings must fit definitions."""
    if tx.dialect.name == "postgresql":
        digest = hashlib.sha256(f"concerns {tenant}".encode()).digest()
        number = int.from_bytes(digest[:8], signed=True)
        await tx.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})


async def list_concerns(
    tx: AsyncConnection, tenant: str, *, after: str | None = None, limit: int | None = None
) -> Sequence[StoredConcern]:
    """Return a tenant's definitions in order of name, after the name ``after``."""
    query = select(concern).where(concern.c.tenant == tenant)
    query = paged(query, by_code_point(tx, concern.c.name), behind=after, limit=limit)
    return [
        StoredConcern(row.name, row.document, row.origin, row.created, row.updated)
        for row in await tx.execute(query)
    ]


async def put_concern(tx: AsyncConnection, tenant: str, stored: StoredConcern) -> None:
    """Store or replace a definition; an existing one keeps its time of creation."""
    key = {"tenant": tenant, "name": stored.name}
    changing = {"document": dict(stored.document), "origin": stored.origin, "updated": stored.updated}
    await _put(tx, concern, key, changing, {"created": stored.created})


async def remove_concern(tx: AsyncConnection, tenant: str, name: str) -> None:
    """Remove a definition."""
    await tx.execute(delete(concern).where((concern.c.tenant == tenant) & (concern.c.name == name)))


async def list_mappings(
    tx: AsyncConnection, tenant: str, *, after: tuple[str, str] | None = None, limit: int | None = None
) -> Sequence[StoredMapping]:
    """Return a tenant's mappings in order of kind and name, after the key ``after``."""
    query = select(concern_mapping).where(concern_mapping.c.tenant == tenant)
    key = (by_code_point(tx, column) for column in (concern_mapping.c.kind, concern_mapping.c.name))
    query = paged(query, *key, behind=after, limit=limit)
    return [
        StoredMapping(PrimitiveKind(row.kind), row.name, row.document, row.origin, row.created, row.updated)
        for row in await tx.execute(query)
    ]


async def put_mapping(tx: AsyncConnection, tenant: str, stored: StoredMapping) -> None:
    """Store or replace a mapping; an existing one keeps its time of creation."""
    key = {"tenant": tenant, "kind": stored.kind.value, "name": stored.name}
    changing = {"document": dict(stored.document), "origin": stored.origin, "updated": stored.updated}
    await _put(tx, concern_mapping, key, changing, {"created": stored.created})


async def remove_mapping(tx: AsyncConnection, tenant: str, kind: PrimitiveKind, name: str) -> None:
    """Remove a mapping."""
    key = {"tenant": tenant, "kind": kind.value, "name": name}
    await tx.execute(delete(concern_mapping).where(_keyed(concern_mapping, key)))


async def find_preference(tx: AsyncConnection, tenant: str, principal: str) -> Mapping[str, Any] | None:
    """Return a caller's preference, or None where none is stored."""
    key = {"tenant": tenant, "principal": principal}
    query = select(concern_preference.c.document).where(_keyed(concern_preference, key))
    document: Mapping[str, Any] | None = (await tx.execute(query)).scalar_one_or_none()
    return document


async def put_preference(
    tx: AsyncConnection, tenant: str, principal: str, document: Mapping[str, Any], updated: datetime
) -> None:
    """Replace a caller's preference; an empty document removes it."""
    key = {"tenant": tenant, "principal": principal}
    if document:
        await _put(tx, concern_preference, key, {"document": dict(document), "updated": updated}, {})
    else:
        await tx.execute(delete(concern_preference).where(_keyed(concern_preference, key)))


def _keyed(table: Table, key: Mapping[str, str]) -> ColumnElement[bool]:
    condition = table.c.tenant == key["tenant"]
    for name, value in key.items():
        condition &= table.c[name] == value
    return condition


async def _put(
    tx: AsyncConnection,
    table: Table,
    key: Mapping[str, str],
    changing: Mapping[str, Any],
    constant: Mapping[str, Any],
) -> None:
    done = await tx.execute(update(table).where(_keyed(table, key)).values(**changing))
    if not done.rowcount:
        await tx.execute(insert(table).values(**key, **changing, **constant))
