"""Queries for the values of a person: where entries with certain digests are, how many, and from when."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, func, literal, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.paging import by_code_point
from app.store.tables import entry, scope
from app.store.vault.vault import EntryPlace, live_scope


@dataclass(frozen=True, slots=True)
class SoughtDigests:
    """Digests of one value; ``label``: only entries of this type (None: of any)."""

    digests: frozenset[bytes]
    label: str | None = None


@dataclass(frozen=True, slots=True)
class SoughtEntries:
    """Which entries to find: those with one of the digests of values, or, with ``normal``, of their normal forms.

    ``now``: only those of scopes that are live then (None: of any scope).
    """

    values: Sequence[SoughtDigests]
    normal: bool
    now: datetime | None = None

    def matching(self, digest: bytes, label: str) -> Iterator[int]:
        """Yield the positions of the values that an entry has."""
        for at, value in enumerate(self.values):
            if digest in value.digests and value.label in {None, label}:
                yield at


class ScopeType(NamedTuple):
    """A scope, and the type of some of its entries."""

    scope: str
    label: str

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Return what orders these as both databases do."""
        return self.scope.encode(), self.label.encode()


@dataclass(frozen=True, slots=True)
class OccurrenceGroup:
    """The entries of one type that a scope has of what is sought, and when the first and the last were stored."""

    place: ScopeType
    count: int
    first: datetime
    last: datetime


async def list_groups(
    tx: AsyncConnection, tenant: str, sought: SoughtEntries, *, after: ScopeType | None, limit: int
) -> list[OccurrenceGroup]:
    """Return the groups in the order of scope and type, by code point."""
    key = (by_code_point(tx, entry.c.scope), by_code_point(tx, entry.c.type))
    query = (
        select(
            *(entry.c.scope, entry.c.type, func.count()),
            *(func.min(entry.c.created), func.max(entry.c.created)),
        )
        .where(*_conditions(tenant, sought))
        .group_by(entry.c.scope, entry.c.type)
        .order_by(*key)
        .limit(limit)
    )
    if after is not None:
        query = query.where(tuple_(*key) > (after.scope, after.label))
    return [OccurrenceGroup(ScopeType(*row[:2]), *row[2:]) for row in await tx.execute(query)]


async def count_digests(
    tx: AsyncConnection, tenant: str, sought: SoughtEntries
) -> dict[tuple[bytes, str], int]:
    """Return how many entries there are, by digest and type."""
    digest = _column(sought)
    query = (
        select(digest, entry.c.type, func.count())
        .where(*_conditions(tenant, sought))
        .group_by(digest, entry.c.type)
    )
    return {(bytes(row[0]), row[1]): row[2] for row in await tx.execute(query)}


async def count_scopes(tx: AsyncConnection, tenant: str, sought: SoughtEntries) -> int:
    """Return in how many scopes there are entries."""
    query = select(func.count(entry.c.scope.distinct())).where(*_conditions(tenant, sought))
    return int((await tx.execute(query)).scalar_one())


async def list_places(
    tx: AsyncConnection, tenant: str, sought: SoughtEntries, *, limit: int
) -> list[EntryPlace]:
    """Return some of the entries."""
    query = select(entry.c.scope, entry.c.type, entry.c.ordinal).where(*_conditions(tenant, sought))
    return [EntryPlace(*row) for row in await tx.execute(query.limit(limit))]


async def list_scopes_with(
    tx: AsyncConnection, tenant: str, sought: SoughtEntries, names: Sequence[str]
) -> set[str]:
    """Return which of the scopes ``names`` have such entries."""
    query = select(entry.c.scope).where(*_conditions(tenant, sought), entry.c.scope.in_(names)).distinct()
    return set((await tx.execute(query)).scalars())


async def is_indexed(tx: AsyncConnection, tenant: str, *, normal: bool) -> bool:
    """Return whether every entry of the tenant has the digest of its value, or that of its normal form."""
    column = entry.c.blind_normal if normal else entry.c.blind
    query = select(literal(1)).where(entry.c.tenant == tenant, column.is_(None)).limit(1)
    return (await tx.execute(query)).one_or_none() is None


async def lock_searches(tx: AsyncConnection, tenant: str) -> None:
    """Let no other search of the tenant begin before this transaction ends; SQLite has one writer anyway."""
    if tx.dialect.name == "postgresql":
        query = text("SELECT pg_advisory_xact_lock(hashtextextended('subjects' || chr(31) || :tenant, 0))")
        await tx.execute(query, {"tenant": tenant})


def _column(sought: SoughtEntries) -> ColumnElement[bytes]:
    return entry.c.blind_normal if sought.normal else entry.c.blind


def _conditions(tenant: str, sought: SoughtEntries) -> tuple[Any, ...]:
    column = _column(sought)
    any_type = frozenset[bytes]().union(*(value.digests for value in sought.values if value.label is None))
    typed = [value for value in sought.values if value.label is not None]
    own = or_(
        column.in_(sorted(any_type)),
        *(and_(entry.c.type == value.label, column.in_(sorted(value.digests))) for value in typed),
    )
    if sought.now is None:
        return entry.c.tenant == tenant, own
    of_entry = (scope.c.tenant == entry.c.tenant) & (scope.c.id == entry.c.scope)
    return entry.c.tenant == tenant, own, select(scope.c.id).where(of_entry, *live_scope(sought.now)).exists()
