"""Queries on the blind index: find and remove entries by the digest of their value, and fill in missing digests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import run_many
from app.store.tables import entry, scope
from app.store.vault.vault import EntryPlace, SealedEntry, live_scope

EntryKey = tuple[str, str, str, int]
"""Tenant, scope, label and ordinal."""


@dataclass(frozen=True, slots=True)
class UnindexedEntry:
    """An entry without a digest, and what is needed to open it."""

    tenant: str
    scope: str
    sealed: SealedEntry
    canonical: bool
    created: datetime

    @property
    def key(self) -> EntryKey:
        """Return the key of the entry in its table."""
        return self.tenant, self.scope, self.sealed.label, self.sealed.ordinal


async def list_by_digest(
    tx: AsyncConnection,
    tenant: str,
    digests: Sequence[bytes],
    now: datetime,
    *,
    after: EntryPlace | None,
    limit: int,
) -> list[EntryPlace]:
    """Return entries of live scopes with one of ``digests``, by the bytes of scope and label, and by ordinal."""
    texts = (entry.c.scope, entry.c.type)
    place = (
        *(texts if tx.dialect.name == "sqlite" else (name.collate("C") for name in texts)),
        entry.c.ordinal,
    )
    query = (
        select(entry.c.scope, entry.c.type, entry.c.ordinal)
        .join_from(entry, scope, (scope.c.tenant == entry.c.tenant) & (scope.c.id == entry.c.scope))
        .where(entry.c.tenant == tenant, entry.c.blind.in_(digests), *live_scope(now))
        .order_by(*place)
        .limit(limit)
    )
    if after is not None:
        query = query.where(tuple_(*place) > (after.scope, after.label, after.ordinal))
    return [EntryPlace(*row) for row in await tx.execute(query)]


async def remove_by_digest(tx: AsyncConnection, tenant: str, digests: Sequence[bytes]) -> list[EntryPlace]:
    """Delete the entries with one of ``digests`` and return their places. Their ordinals stay used."""
    result = await tx.execute(
        entry.delete()
        .where(entry.c.tenant == tenant, entry.c.blind.in_(digests))
        .returning(entry.c.scope, entry.c.type, entry.c.ordinal)
    )
    return [EntryPlace(*row) for row in result]


async def list_unindexed_scopes(
    tx: AsyncConnection, tenant: str, *, after: str | None, limit: int
) -> list[str]:
    """Return names of scopes that have entries without a digest, in their order, after the name ``after``."""
    query = select(entry.c.scope).where(entry.c.tenant == tenant, entry.c.blind.is_(None)).distinct()
    query = query.order_by(entry.c.scope).limit(limit)
    return list(
        (await tx.execute(query if after is None else query.where(entry.c.scope > after))).scalars().all()
    )


async def count_unindexed(tx: AsyncConnection, *, most: int, tenant: str | None = None) -> int:
    """Return how many entries of ``tenant`` (None: of all) lack a digest, up to ``most``: more are not counted."""
    query = select(entry.c.scope).where(entry.c.blind_normal.is_(None)).limit(most)
    some = (query if tenant is None else query.where(entry.c.tenant == tenant)).subquery()
    return (await tx.execute(select(func.count()).select_from(some))).scalar_one()


async def list_unindexed(
    tx: AsyncConnection,
    *,
    after: EntryKey | None,
    limit: int,
    tenant: str | None = None,
    normal: bool = True,
    now: datetime | None = None,
) -> list[UnindexedEntry]:
    """Return entries that lack a digest, in the order of their keys: of ``tenant``, or of all tenants.

    ``normal``: the digest of the normal form, which is the last one that an entry gets; else that of the value.
    ``now``: only those of scopes that are live then.
    """
    key = (entry.c.tenant, entry.c.scope, entry.c.type, entry.c.ordinal)
    query = (
        select(
            *(*key, entry.c.ciphertext, entry.c.origin, entry.c.created),
            *(scope.c.generation, scope.c.kek_version, scope.c.dek_wrapped),
        )
        .join_from(entry, scope, (scope.c.tenant == entry.c.tenant) & (scope.c.id == entry.c.scope))
        .where(
            (entry.c.blind_normal if normal else entry.c.blind).is_(None), scope.c.dek_wrapped.is_not(None)
        )
        .order_by(*key)
        .limit(limit)
    )
    if tenant is not None:
        query = query.where(entry.c.tenant == tenant)
    if now is not None:
        query = query.where(*live_scope(now))
    if after is not None:
        query = query.where(tuple_(*key) > after)
    return [
        UnindexedEntry(
            row.tenant,
            row.scope,
            SealedEntry(
                *(row.type, row.ordinal, row.ciphertext, row.generation, row.kek_version, row.dek_wrapped)
            ),
            row.origin == "canonical",
            row.created,
        )
        for row in await tx.execute(query)
    ]


async def index_entries(tx: AsyncConnection, digests: Sequence[tuple[EntryKey, tuple[bytes, bytes]]]) -> None:
    """Store digests of entries (of the value, of its normal form); one that was erased meanwhile stays away."""
    if not digests:
        return
    if tx.dialect.name == "sqlite":
        await run_many(
            tx,
            "UPDATE entry SET blind = ?, blind_normal = ? "
            "WHERE tenant = ? AND scope = ? AND type = ? AND ordinal = ?",
            [(*pair, *key) for key, pair in digests],
        )
        return
    columns = zip(*((*key, *pair) for key, pair in digests), strict=True)
    await tx.exec_driver_sql(
        "UPDATE entry SET blind = q.blind, blind_normal = q.normal "
        "FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[]) "
        "AS q(tenant, scope, type, ordinal, blind, normal) WHERE entry.tenant = q.tenant AND entry.scope = q.scope "
        "AND entry.type = q.type AND entry.ordinal = q.ordinal",
        tuple(list(column) for column in columns),
    )
