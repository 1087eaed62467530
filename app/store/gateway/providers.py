"""Queries on the model providers of a tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.gateway.tables import provider
from app.store.insertion import insert_absent
from app.store.paging import paged

ProviderOrigin = Literal["file", "host", "api"]
"""Who wrote a provider: the declarative file, the command line on the host, or an operator over REST."""


@dataclass(frozen=True, slots=True)
class StoredProvider:
    """One provider; ``document`` is its entry without name and secrets, ``secrets`` is ciphertext."""

    tenant: str
    name: str
    document: Mapping[str, Any]
    secrets: bytes | None = field(repr=False)
    origin: ProviderOrigin
    created: datetime
    created_by: str
    updated: datetime


async def add_provider(tx: AsyncConnection, added: StoredProvider) -> bool:
    """Store a provider; return False and change nothing where the name is taken."""
    return await insert_absent(tx, provider, _values(added))


async def find_provider(
    tx: AsyncConnection, tenant_name: str, name: str, *, lock: bool = False
) -> StoredProvider | None:
    """Return a provider; ``lock`` keeps others from changing it until the transaction ends."""
    query = select(provider).where(_named(tenant_name, name))
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return _provider(row) if row is not None else None


async def list_providers(
    tx: AsyncConnection, tenant_name: str, *, after: str | None = None, limit: int | None = None
) -> Sequence[StoredProvider]:
    """Return a tenant's providers in order of name, after the name ``after``."""
    query = select(provider).where(provider.c.tenant == tenant_name)
    query = paged(query, provider.c.name, behind=after, limit=limit)
    return [_provider(row) for row in await tx.execute(query)]


async def count_providers(tx: AsyncConnection, tenant_name: str) -> int:
    """Return how many providers a tenant has."""
    query = select(func.count()).select_from(provider).where(provider.c.tenant == tenant_name)
    return int((await tx.execute(query)).scalar_one())


async def update_provider(tx: AsyncConnection, changed: StoredProvider) -> None:
    """Replace everything of a provider except who made it and when."""
    values = _values(changed)
    for fixed in ("tenant", "name", "created", "created_by"):
        del values[fixed]
    await tx.execute(update(provider).where(_named(changed.tenant, changed.name)).values(**values))


async def remove_provider(tx: AsyncConnection, tenant_name: str, name: str) -> bool:
    """Delete a provider and its secrets; return False where there was none."""
    done = await tx.execute(delete(provider).where(_named(tenant_name, name)))
    return bool(done.rowcount)


def _named(tenant_name: str, name: str) -> ColumnElement[bool]:
    return (provider.c.tenant == tenant_name) & (provider.c.name == name)


def _values(stored: StoredProvider) -> dict[str, Any]:
    return {
        "tenant": stored.tenant,
        "name": stored.name,
        "document": dict(stored.document),
        "secrets": stored.secrets,
        "origin": stored.origin,
        "created": stored.created,
        "created_by": stored.created_by,
        "updated": stored.updated,
    }


def _provider(row: Row[Any]) -> StoredProvider:
    return StoredProvider(
        tenant=row.tenant,
        name=row.name,
        document=row.document,
        secrets=row.secrets,
        origin=row.origin,
        created=row.created,
        created_by=row.created_by,
        updated=row.updated,
    )
