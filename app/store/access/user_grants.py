"""Queries on what people granted for servers: sealed tokens, one row for each person and server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.access.tables import user_grant


@dataclass(frozen=True, slots=True)
class StoredGrant:
    """What one person granted for one server; ``holder`` is the person's keyed digest, ``tokens`` is ciphertext.

    ``person`` is the digest by which the tenant's mirror finds the person, None where it has no mirror.
    """

    tenant: str
    holder: str
    server: str
    issuer: str
    tokens: bytes = field(repr=False)
    created: datetime
    updated: datetime
    person: str | None = None


async def find_grant(tx: AsyncConnection, tenant: str, holder: str, server: str) -> StoredGrant | None:
    """Return a person's grant for a server."""
    row = (await tx.execute(select(user_grant).where(_named(tenant, holder, server)))).one_or_none()
    return StoredGrant(*row) if row is not None else None


async def list_grants(tx: AsyncConnection, tenant: str, holder: str | None = None) -> Sequence[StoredGrant]:
    """Return the grants of a tenant, or of one person there, by person and server."""
    query = select(user_grant).where(user_grant.c.tenant == tenant)
    if holder is not None:
        query = query.where(user_grant.c.holder == holder)
    rows = await tx.execute(query.order_by(user_grant.c.holder, user_grant.c.server))
    return [StoredGrant(*row) for row in rows]


async def list_grants_of(tx: AsyncConnection, tenant: str, person: str) -> Sequence[StoredGrant]:
    """Return the grants of whom the mirror finds by a digest."""
    query = select(user_grant).where(user_grant.c.tenant == tenant, user_grant.c.person == person)
    return [StoredGrant(*row) for row in await tx.execute(query.order_by(user_grant.c.server))]


async def put_grant(tx: AsyncConnection, grant: StoredGrant) -> None:
    """Store a grant in the place of an older one."""
    await remove_grant(tx, grant.tenant, grant.holder, grant.server)
    await tx.execute(
        insert(user_grant).values(
            tenant=grant.tenant,
            holder=grant.holder,
            server=grant.server,
            issuer=grant.issuer,
            tokens=grant.tokens,
            created=grant.created,
            updated=grant.updated,
            person=grant.person,
        )
    )


async def renew_grant(tx: AsyncConnection, grant: StoredGrant, tokens: bytes, moment: datetime) -> bool:
    """Store new tokens; return False and change nothing where the grant has changed since it was read."""
    unchanged = _named(grant.tenant, grant.holder, grant.server) & (user_grant.c.updated == grant.updated)
    done = await tx.execute(update(user_grant).where(unchanged).values(tokens=tokens, updated=moment))
    return bool(done.rowcount)


async def remove_grant(tx: AsyncConnection, tenant: str, holder: str, server: str) -> bool:
    """Delete a grant; return False where there was none."""
    done = await tx.execute(delete(user_grant).where(_named(tenant, holder, server)))
    return bool(done.rowcount)


def _named(tenant: str, holder: str, server: str) -> ColumnElement[bool]:
    columns = user_grant.c
    return (columns.tenant == tenant) & (columns.holder == holder) & (columns.server == server)
