"""Queries on tenants."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import tenant


@dataclass(frozen=True, slots=True)
class Tenant:
    """One customer of this service; a disabled tenant keeps its data, but its requests are refused.

    ``erased`` is when its erasure was ordered, ``emptied`` when nothing was left to delete.
    ``own_key``: its digests are made with a key of its own, for ever; they are lost with that one.
    """

    name: str
    created: datetime
    created_by: str
    disabled: datetime | None = None
    erased: datetime | None = None
    emptied: datetime | None = None
    own_key: bool = False


async def add_tenant(tx: AsyncConnection, added: Tenant) -> bool:
    """Store a tenant; return False and change nothing where the name is taken."""
    values = {
        "id": added.name,
        "created": added.created,
        "created_by": added.created_by,
        "own_key": added.own_key,
    }
    return await insert_absent(tx, tenant, values)


async def find_tenant(tx: AsyncConnection, name: str, *, lock: bool = False) -> Tenant | None:
    """Return a tenant; ``lock`` keeps other transactions from changing or locking it until this one ends."""
    query = select(tenant).where(tenant.c.id == name)
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return _tenant(row) if row is not None else None


async def list_tenants(tx: AsyncConnection, *, after: str | None, limit: int) -> Sequence[Tenant]:
    """Return tenants in order of name, after the name ``after``."""
    query = paged(select(tenant), tenant.c.id, behind=after, limit=limit)
    return [_tenant(row) for row in await tx.execute(query)]


async def update_tenant(tx: AsyncConnection, name: str, *, disabled: datetime | None) -> None:
    """Disable a tenant from a moment on, or enable it again (None)."""
    await tx.execute(update(tenant).where(tenant.c.id == name).values(disabled=disabled))


async def mark_erased(tx: AsyncConnection, name: str, at: datetime) -> None:
    """Order the erasure of a tenant, which stays disabled for ever; one that was ordered before keeps its moment."""
    await tx.execute(
        update(tenant)
        .where(tenant.c.id == name, tenant.c.erased.is_(None))
        .values(erased=at, disabled=func.coalesce(tenant.c.disabled, at))
    )


async def mark_emptied(tx: AsyncConnection, name: str, at: datetime) -> None:
    """Note that nothing was left to delete of an erased tenant."""
    await tx.execute(update(tenant).where(tenant.c.id == name).values(emptied=at))


async def list_unemptied(tx: AsyncConnection) -> list[Tenant]:
    """Return the tenants whose erasure was ordered and is not done, in order of name."""
    query = select(tenant).where(tenant.c.erased.is_not(None), tenant.c.emptied.is_(None))
    return [_tenant(row) for row in await tx.execute(query.order_by(tenant.c.id))]


def _tenant(row: Row[Any]) -> Tenant:
    return Tenant(row.id, row.created, row.created_by, row.disabled, row.erased, row.emptied, row.own_key)
