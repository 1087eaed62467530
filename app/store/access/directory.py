"""Queries on the directory of shards: which of them has a tenant, and which a key."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.access.tables import directory_key, directory_tenant
from app.store.insertion import insert_absent
from app.store.paging import paged


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """Where a key is; its id is no secret."""

    id: str
    tenant: str
    shard: str


async def add_key_place(tx: AsyncConnection, place: KeyPlace) -> bool:
    """Store where a key is; return False and change nothing where its id is taken."""
    return await insert_absent(
        tx, directory_key, {"id": place.id, "tenant": place.tenant, "shard": place.shard}
    )


async def find_key_place(tx: AsyncConnection, key_id: str) -> KeyPlace | None:
    """Return where a key is."""
    query = select(directory_key).where(directory_key.c.id == key_id)
    row = (await tx.execute(query)).one_or_none()
    return KeyPlace(row.id, row.tenant, row.shard) if row is not None else None


async def list_key_places(tx: AsyncConnection, *, after: str | None, limit: int) -> Sequence[KeyPlace]:
    """Return where keys are, in order of their ids, after the id ``after``."""
    query = paged(select(directory_key), directory_key.c.id, behind=after, limit=limit)
    return [KeyPlace(row.id, row.tenant, row.shard) for row in await tx.execute(query)]


async def add_tenant_place(tx: AsyncConnection, name: str, shard: str) -> bool:
    """Store which shard has a tenant; return False and change nothing where the name is taken."""
    return await insert_absent(tx, directory_tenant, {"tenant": name, "shard": shard})


async def find_tenant_place(tx: AsyncConnection, name: str) -> str | None:
    """Return which shard has a tenant."""
    query = select(directory_tenant.c.shard).where(directory_tenant.c.tenant == name)
    shard: str | None = (await tx.execute(query)).scalar_one_or_none()
    return shard
