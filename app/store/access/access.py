"""Queries on API keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.access import Role
from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import api_key, tenant


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """The public facts of an API key: everything except its secrets.

    ``rotating_until`` is the moment at which the secret from before the last rotation ends.
    """

    tenant: str
    id: str
    name: str | None
    roles: frozenset[Role]
    cidrs: tuple[str, ...]
    created: datetime
    created_by: str
    expires: datetime | None = None
    revoked: datetime | None = None
    rotating_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key with the digests of its one or two valid secrets."""

    info: KeyInfo
    digest: bytes = field(repr=False)
    previous_digest: bytes | None = field(default=None, repr=False)
    tenant_disabled: bool = False


async def add_key(tx: AsyncConnection, key: StoredKey) -> bool:
    """Store a key; return False and change nothing where its id is taken."""
    info = key.info
    values = {
        "tenant": info.tenant,
        "id": info.id,
        "name": info.name,
        "roles": sorted(info.roles),
        "cidrs": list(info.cidrs),
        "created": info.created,
        "created_by": info.created_by,
        "expires": info.expires,
        "digest": key.digest,
    }
    return await insert_absent(tx, api_key, values)


async def find_key(
    tx: AsyncConnection, key_id: str, *, tenant_name: str | None, lock: bool = False
) -> StoredKey | None:
    """Return a key of a tenant (None: of any tenant); ``lock`` keeps others from changing it meanwhile."""
    query = select(api_key).where(api_key.c.id == key_id)
    if tenant_name is not None:
        query = query.where(api_key.c.tenant == tenant_name)
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return _key(row) if row is not None else None


async def find_key_with_tenant(tx: AsyncConnection, key_id: str) -> StoredKey | None:
    """Return a key with the state of its tenant, for authentication."""
    query = (
        select(api_key, tenant.c.disabled.label("tenant_disabled"))
        .join(tenant, tenant.c.id == api_key.c.tenant)
        .where(api_key.c.id == key_id)
    )
    row = (await tx.execute(query)).one_or_none()
    return _key(row, disabled=row.tenant_disabled is not None) if row is not None else None


async def list_keys(
    tx: AsyncConnection, tenant_name: str, *, after: str | None = None, limit: int = 1000
) -> Sequence[KeyInfo]:
    """Return the keys of a tenant in order of id, after the id ``after``."""
    query = select(api_key).where(api_key.c.tenant == tenant_name)
    query = paged(query, api_key.c.id, behind=after, limit=limit)
    return [_key(row).info for row in await tx.execute(query)]


async def list_keys_made_by(tx: AsyncConnection, maker: str) -> Sequence[KeyInfo]:
    """Return the keys that ``maker`` made, in any tenant that ``tx`` may see."""
    query = select(api_key).where(api_key.c.created_by == maker).order_by(api_key.c.id)
    return [_key(row).info for row in await tx.execute(query)]


async def count_keys(tx: AsyncConnection) -> int:
    """Return the number of keys, including revoked and expired ones."""
    return (await tx.execute(select(func.count()).select_from(api_key))).scalar_one()


async def update_key_revoked(tx: AsyncConnection, tenant_name: str, key_id: str, revoked: datetime) -> None:
    """Revoke a key and all its secrets."""
    await tx.execute(
        update(api_key)
        .where(_named(tenant_name, key_id))
        .values(revoked=revoked, previous_digest=None, previous_expires=None)
    )


async def update_key_secret(
    tx: AsyncConnection, before: StoredKey, digest: bytes, until: datetime | None
) -> None:
    """Give a key a new secret; the old one stays valid until ``until`` (None: it ends at once)."""
    old = before.digest if until is not None else None
    await tx.execute(
        update(api_key)
        .where(_named(before.info.tenant, before.info.id))
        .values(digest=digest, previous_digest=old, previous_expires=until)
    )


async def remove_old_secrets(tx: AsyncConnection, now: datetime) -> int:
    """Delete the old secrets whose rotation is over; return how many."""
    done = await tx.execute(
        update(api_key)
        .where(api_key.c.previous_expires <= now)
        .values(previous_digest=None, previous_expires=None)
    )
    return done.rowcount


def _named(tenant_name: str, key_id: str) -> ColumnElement[bool]:
    return (api_key.c.tenant == tenant_name) & (api_key.c.id == key_id)


def _key(row: Row[Any], *, disabled: bool = False) -> StoredKey:
    info = KeyInfo(
        tenant=row.tenant,
        id=row.id,
        name=row.name,
        roles=frozenset(Role(name) for name in row.roles),
        cidrs=tuple(row.cidrs),
        created=row.created,
        created_by=row.created_by,
        expires=row.expires,
        revoked=row.revoked,
        rotating_until=row.previous_expires,
    )
    return StoredKey(info, row.digest, row.previous_digest, disabled)
