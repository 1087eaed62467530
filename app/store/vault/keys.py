"""Queries on what the key ring must match: canaries by version, and keys that belong to no scope."""

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import delete, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.tables import scope
from app.store.vault.tables import key_canary, tenant_key


async def list_canaries(tx: AsyncConnection) -> dict[int, bytes]:
    """Return the canary of each key version that was ever active."""
    rows = await tx.execute(select(key_canary.c.version, key_canary.c.wrapped))
    return {version: bytes(wrapped) for version, wrapped in rows}


async def add_canary(tx: AsyncConnection, version: int, wrapped: bytes, created: datetime) -> None:
    """Store the canary of a version unless there is one."""
    await insert_absent(tx, key_canary, {"version": version, "wrapped": wrapped, "created": created})


async def remove_canary(tx: AsyncConnection, version: int) -> None:
    """Delete the canary of a version that wraps nothing any more."""
    await tx.execute(delete(key_canary).where(key_canary.c.version == version))


async def list_versions(tx: AsyncConnection) -> frozenset[int]:
    """Return the versions of the ring that wrap a key.

    Each version of scopes takes one look into their index, however many there are: a start does not count them.
    """
    versions = set((await tx.execute(select(tenant_key.c.kek_version).distinct())).scalars())
    query = select(scope.c.kek_version).where(scope.c.kek_version.is_not(None)).order_by(scope.c.kek_version)
    version = (await tx.execute(query.limit(1))).scalar_one_or_none()
    while version is not None:
        versions.add(version)
        higher = query.where(scope.c.kek_version > version).limit(1)
        version = (await tx.execute(higher)).scalar_one_or_none()
    return frozenset(versions)


async def count_keys(tx: AsyncConnection, version: int, *, most: int) -> int:
    """Return how many data keys and tenant keys a version of the ring wraps; stop at ``most``."""
    scopes = select(literal(1)).where(scope.c.kek_version == version)
    tenants = select(literal(1)).where(tenant_key.c.kek_version == version)
    keys = scopes.union_all(tenants).limit(most).subquery()
    return int((await tx.execute(select(func.count()).select_from(keys))).scalar_one())


async def find_tenant_key(tx: AsyncConnection, tenant: str, purpose: str) -> tuple[int, bytes] | None:
    """Return version and wrapped form of a key that belongs to no scope."""
    query = select(tenant_key.c.kek_version, tenant_key.c.wrapped).where(
        tenant_key.c.tenant == tenant, tenant_key.c.purpose == purpose
    )
    row = (await tx.execute(query)).one_or_none()
    return None if row is None else (row.kek_version, bytes(row.wrapped))


async def add_tenant_key(
    tx: AsyncConnection, tenant: str, purpose: str, version: int, wrapped: bytes, created: datetime
) -> None:
    """Store a key that belongs to no scope, unless another process was first."""
    values = {
        "tenant": tenant,
        "purpose": purpose,
        "wrapped": wrapped,
        "kek_version": version,
        "created": created,
    }
    await insert_absent(tx, tenant_key, values)


async def rewrap_tenant_keys(
    tx: AsyncConnection, active: int, rewrap: Callable[[int, bytes], tuple[int, bytes]]
) -> int:
    """Wrap keys of other versions again with the active one; return how many."""
    query = (
        select(tenant_key)
        .where(tenant_key.c.kek_version != active)
        .order_by(tenant_key.c.tenant, tenant_key.c.purpose)
        .with_for_update(skip_locked=True)
    )
    rows = (await tx.execute(query)).all()
    for row in rows:
        version, wrapped = rewrap(row.kek_version, row.wrapped)
        await tx.execute(
            update(tenant_key)
            .where(tenant_key.c.tenant == row.tenant, tenant_key.c.purpose == row.purpose)
            .values(kek_version=version, wrapped=wrapped)
        )
    return len(rows)
