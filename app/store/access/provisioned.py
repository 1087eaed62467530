"""Queries on the mirror of people and groups; names are digests and ciphertext."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Row, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.access.tables import provisioned
from app.store.insertion import insert_absent

Part = Literal["id", "name", "external"]
_COLUMNS: Final = {
    "id": provisioned.c.id,
    "name": provisioned.c.name_digest,
    "external": provisioned.c.external_digest,
}


class StoredEntry(NamedTuple):
    """A person or a group; one that was ``removed`` keeps its digests alone."""

    tenant: str
    kind: str
    id: str
    name_digest: str
    external_digest: str | None
    active: bool
    removed: datetime | None
    sealed: bytes


async def add_entry(tx: AsyncConnection, entry: StoredEntry) -> bool:
    """Store an entry; return False and change nothing where its name is taken."""
    return await insert_absent(tx, provisioned, entry._asdict())


async def update_entry(tx: AsyncConnection, entry: StoredEntry) -> None:
    """Replace an entry."""
    named = (provisioned.c.tenant == entry.tenant) & (provisioned.c.kind == entry.kind)
    await tx.execute(update(provisioned).where(named, provisioned.c.id == entry.id).values(**entry._asdict()))


async def find_entry(
    tx: AsyncConnection, tenant: str, kind: str, part: Part, value: str, *, lock: bool = False
) -> StoredEntry | None:
    """Return the entry with an id, or with the digest of a name or an external id; active ones before others."""
    query = (
        select(provisioned)
        .where(provisioned.c.tenant == tenant, provisioned.c.kind == kind, _COLUMNS[part] == value)
        .order_by(provisioned.c.active.desc(), provisioned.c.id)
        .limit(1)
    )
    row = (await tx.execute(query.with_for_update() if lock else query)).one_or_none()
    return _entry(row) if row is not None else None


async def list_entries(
    tx: AsyncConnection, tenant: str, kind: str, *, offset: int, limit: int
) -> Sequence[StoredEntry]:
    """Return entries in the order of their ids, without those that were removed."""
    query = select(provisioned).where(
        provisioned.c.tenant == tenant, provisioned.c.kind == kind, provisioned.c.removed.is_(None)
    )
    rows = await tx.execute(query.order_by(provisioned.c.id).offset(offset).limit(limit))
    return [_entry(row) for row in rows]


async def list_people(tx: AsyncConnection, tenant: str, ids: Collection[str]) -> Sequence[StoredEntry]:
    """Return the people with these ids, at most some hundred."""
    query = select(provisioned).where(
        provisioned.c.tenant == tenant, provisioned.c.kind == "User", provisioned.c.id.in_(sorted(ids))
    )
    return [_entry(row) for row in await tx.execute(query)]


async def count_entries(tx: AsyncConnection, tenant: str, kind: str) -> int:
    """Return how many entries there are, without those that were removed."""
    query = select(func.count()).where(
        provisioned.c.tenant == tenant, provisioned.c.kind == kind, provisioned.c.removed.is_(None)
    )
    return int((await tx.execute(query)).scalar_one())


async def count_inactive(tx: AsyncConnection, tenant: str) -> int:
    """Return how many people are there and not active, without those that were removed."""
    people = (provisioned.c.tenant == tenant) & (provisioned.c.kind == "User")
    query = select(func.count()).where(
        people, provisioned.c.removed.is_(None), provisioned.c.active.is_(False)
    )
    return int((await tx.execute(query)).scalar_one())


async def remove_forgotten(tx: AsyncConnection, before: datetime) -> int:
    """Delete, for all tenants, what is kept of entries that were removed before a moment; return how many."""
    done = await tx.execute(delete(provisioned).where(provisioned.c.removed < before))
    return done.rowcount


def _entry(row: Row[Any]) -> StoredEntry:
    return StoredEntry(**row._mapping)  # noqa: SLF001 - the columns by name
