"""Queries on what the key ring must match: canaries by version, and keys that belong to no scope."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.tables import scope, tenant
from app.store.vault.tables import key_canary, tenant_key

DIGEST_PURPOSE: Final = "digest"
"""The purpose of the key of a tenant's own, with which its digests and its blind index are made."""


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


async def list_keyless(tx: AsyncConnection, purpose: str) -> list[str]:
    """Return the tenants that had a key of their own for a purpose and have it no more, in order of name."""
    own = select(tenant_key.c.tenant).where(tenant_key.c.purpose == purpose)
    query = select(tenant.c.id).where(tenant.c.own_key, tenant.c.id.not_in(own)).order_by(tenant.c.id)
    return list((await tx.execute(query)).scalars())


async def remove_tenant_keys(tx: AsyncConnection, name: str) -> int:
    """Delete the keys of an erased tenant that belong to no scope (system transactions); return how many."""
    return (await tx.execute(delete(tenant_key).where(tenant_key.c.tenant == name))).rowcount


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
    tx: AsyncConnection, active: int, rewrap: Callable[[int, bytes], tuple[int, bytes]], *, limit: int
) -> int:
    """Wrap at most ``limit`` keys of other versions again with the active one; return how many."""
    query = (
        select(tenant_key)
        .where(tenant_key.c.kek_version != active)
        .order_by(tenant_key.c.tenant, tenant_key.c.purpose)
        .limit(limit)
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
