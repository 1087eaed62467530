"""Queries on API keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.access import KeyState, Role
from app.store.insertion import insert_absent
from app.store.paging import paged
from app.store.tables import api_key, tenant


@dataclass(frozen=True, slots=True)
class SecretMaker:
    """Who made a secret of a key, and so has seen it."""

    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """The public facts of an API key: everything except its secrets.

    ``rotating_until`` is the moment at which the secret from before the last rotation ends. ``pending_roles`` are
    without effect until ``pending_until`` or an approval; ``pending_by`` requested them. ``makers`` are those who
    made its secrets, if that is known.
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
    pending_roles: frozenset[Role] = frozenset()
    pending_until: datetime | None = None
    pending_by: str | None = None
    makers: tuple[SecretMaker, ...] = ()

    def settled(self, moment: datetime) -> "KeyInfo":
        """Return the key as it is at ``moment``: with the roles for which it has waited long enough."""
        if self.pending_until is None or self.pending_until > moment:
            return self
        return self.granted()

    def granted(self) -> "KeyInfo":
        """Return the key with the roles for which it waits."""
        return replace(
            self,
            roles=self.roles | self.pending_roles,
            pending_roles=frozenset(),
            pending_until=None,
            pending_by=None,
        )

    def state(self, moment: datetime) -> KeyState:
        """Return what people call the key at ``moment``."""
        if self.revoked is not None:
            return "revoked"
        if self.expires is not None and self.expires <= moment:
            return "expired"
        if self.settled(moment).pending_until is not None:
            return "pending"
        return "rotating" if self.rotating_until is not None and self.rotating_until > moment else "live"


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key with the digests of its one or two valid secrets.

    ``previous_roles`` is what the older secret may do; None: the same as the current one.
    """

    info: KeyInfo
    digest: bytes = field(repr=False)
    previous_digest: bytes | None = field(default=None, repr=False)
    tenant_disabled: bool = False
    previous_roles: frozenset[Role] | None = None


async def add_key(tx: AsyncConnection, key: StoredKey) -> bool:
    """Store a key; return False and change nothing where its id is taken."""
    info = key.info
    values = {
        "tenant": info.tenant,
        "id": info.id,
        "name": info.name,
        "cidrs": list(info.cidrs),
        "created": info.created,
        "created_by": info.created_by,
        "expires": info.expires,
        "digest": key.digest,
        **_grant(info),
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


async def list_keys_due(tx: AsyncConnection, moment: datetime) -> Sequence[KeyInfo]:
    """Return the keys, in any tenant that ``tx`` may see, that have waited long enough for a role; locked."""
    due = (api_key.c.pending_until <= moment) & api_key.c.revoked.is_(None)
    query = select(api_key).where(due).order_by(api_key.c.id).with_for_update()
    return [_key(row).info for row in await tx.execute(query)]


async def count_keys(tx: AsyncConnection) -> int:
    """Return the number of keys, including revoked and expired ones."""
    return (await tx.execute(select(func.count()).select_from(api_key))).scalar_one()


async def update_key_revoked(tx: AsyncConnection, tenant_name: str, key_id: str, revoked: datetime) -> None:
    """Revoke a key and all its secrets."""
    await tx.execute(
        update(api_key)
        .where(_named(tenant_name, key_id))
        .values(revoked=revoked, previous_digest=None, previous_expires=None, previous_roles=None)
    )


async def update_key_secret(
    tx: AsyncConnection,
    before: StoredKey,
    digest: bytes,
    until: datetime | None,
    after: KeyInfo | None = None,
) -> None:
    """Give a key a new secret; the old one stays valid until ``until`` (None: it ends at once).

    The old secret keeps the roles of ``before``; from now on the key has those of ``after`` (None: the same).
    """
    overlaps = until is not None
    old: dict[str, Any] = {
        "previous_digest": before.digest if overlaps else None,
        "previous_expires": until,
        "previous_roles": sorted(before.info.roles) if overlaps else None,
    }
    await tx.execute(
        update(api_key)
        .where(_named(before.info.tenant, before.info.id))
        .values(digest=digest, **old, **_grant(after or before.info))
    )


async def update_key_grant(tx: AsyncConnection, info: KeyInfo) -> None:
    """Store which roles a key has, and which it waits for; its secrets stay."""
    await tx.execute(update(api_key).where(_named(info.tenant, info.id)).values(**_grant(info)))


async def remove_old_secrets(tx: AsyncConnection, now: datetime) -> int:
    """Delete the old secrets whose rotation is over; return how many."""
    done = await tx.execute(
        update(api_key)
        .where(api_key.c.previous_expires <= now)
        .values(previous_digest=None, previous_expires=None, previous_roles=None)
    )
    return done.rowcount


def _grant(info: KeyInfo) -> dict[str, Any]:
    makers = [{"by": maker.by, "at": maker.at.isoformat()} for maker in info.makers]
    return {
        "roles": sorted(info.roles),
        "pending_roles": sorted(info.pending_roles) or None,
        "pending_until": info.pending_until,
        "pending_by": info.pending_by,
        "makers": makers or None,
    }


def _named(tenant_name: str, key_id: str) -> ColumnElement[bool]:
    return (api_key.c.tenant == tenant_name) & (api_key.c.id == key_id)


def _key(row: Row[Any], *, disabled: bool = False) -> StoredKey:
    info = KeyInfo(
        tenant=row.tenant,
        id=row.id,
        name=row.name,
        roles=_roles(row.roles),
        cidrs=tuple(row.cidrs),
        created=row.created,
        created_by=row.created_by,
        expires=row.expires,
        revoked=row.revoked,
        rotating_until=row.previous_expires,
        pending_roles=_roles(row.pending_roles or ()),
        pending_until=row.pending_until,
        pending_by=row.pending_by,
        makers=tuple(
            SecretMaker(maker["by"], datetime.fromisoformat(maker["at"])) for maker in row.makers or ()
        ),
    )
    previous_roles = None if row.previous_roles is None else _roles(row.previous_roles)
    return StoredKey(info, row.digest, row.previous_digest, disabled, previous_roles)


def _roles(names: Iterable[str]) -> frozenset[Role]:
    return frozenset(Role(name) for name in names)
