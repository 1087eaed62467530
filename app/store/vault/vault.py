"""Queries on vault scopes and entries: read, list, expire, erase, re-wrap."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Select, bindparam, func, insert, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.bulk import moment, rows_matching
from app.store.paging import paged
from app.store.tables import (
    SCOPE_ACTIVE,
    SCOPE_ERASED,
    entry,
    installation,
    scope,
)
from app.store.vault.allocation import LOOKUP_NAMES, ORDINALS, remove_contents
from app.store.vault.numbering import EPOCH_STRIDE, ScopeRow
from app.store.vault.tables import erasure, gateway_binding, gateway_signed

_ENTRIES = (
    "SELECT e.type, e.ordinal, e.ciphertext, s.generation, s.kek_version, s.dek_wrapped, s.state, s.expires, s.owner "
    "FROM {q} CROSS JOIN entry e JOIN scope s ON s.tenant = e.tenant AND s.id = e.scope "
    "WHERE e.type = q.type AND e.ordinal = q.ordinal AND e.tenant = {0} AND e.scope = {1}"
)
_LEAST_ROOM = 500_000
"""Ordinals between the highest stored one and a new epoch, at least."""
_HANDLE_NAMES = (("type", "text"), ("ordinal", "bigint"))


@dataclass(frozen=True, slots=True)
class SealedEntry:
    """An entry as stored, with what is needed to open its scope's data key."""

    label: str
    ordinal: int
    ciphertext: bytes
    generation: int
    kek_version: int
    dek_wrapped: bytes


@dataclass(frozen=True, slots=True)
class StoredScope:
    """The facts of a scope that the vault shows without opening it."""

    id: str
    created: datetime
    expires: datetime | None
    state: str
    counts: dict[str, int]
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """The key of one entry."""

    scope: str
    label: str
    ordinal: int


async def list_sealed(
    tx: AsyncConnection,
    tenant: str,
    name: str,
    handles: Iterable[tuple[str, int]],
    now: datetime,
    identity: str | None,
) -> list[SealedEntry]:
    """Return the entries among ``handles`` (label, ordinal) of one scope that ``identity`` may read."""
    wanted = sorted(set(handles))
    rows = await rows_matching(tx, _ENTRIES, _HANDLE_NAMES, wanted, tenant, name)
    return [
        SealedEntry(label, ordinal, bytes(ciphertext), generation, version, bytes(wrapped))
        for label, ordinal, ciphertext, generation, version, wrapped, state, expires, owner in rows
        if state == SCOPE_ACTIVE
        and (expires is None or (moment(expires) or now) > now)
        and owner in {None, identity}
    ]


async def list_all_sealed(
    tx: AsyncConnection, tenant: str, name: str, now: datetime, *, after: tuple[str, int] | None, limit: int
) -> Sequence[SealedEntry]:
    """Return the readable entries of one scope in the order of label and ordinal."""
    query = (
        select(
            *(entry.c.type, entry.c.ordinal, entry.c.ciphertext),
            *(scope.c.generation, scope.c.kek_version, scope.c.dek_wrapped),
        )
        .join_from(entry, scope, (scope.c.tenant == entry.c.tenant) & (scope.c.id == entry.c.scope))
        .where(entry.c.tenant == tenant, entry.c.scope == name, *live_scope(now))
    )
    query = paged(query, entry.c.type, entry.c.ordinal, behind=after, limit=limit)
    return [SealedEntry(*row) for row in await tx.execute(query)]


async def list_scopes(
    tx: AsyncConnection, tenant: str, now: datetime, *, after: str | None, limit: int, prefix: str = ""
) -> list[StoredScope]:
    """Return live scopes whose names begin with ``prefix``, in order of name, with the number of entries by label."""
    query = select(scope).where(scope.c.tenant == tenant, *live_scope(now))
    if prefix:
        # In every order of texts a name comes after its beginning, so the first bound lets an index start there.
        query = query.where(scope.c.id >= prefix, func.substr(scope.c.id, 1, len(prefix)) == prefix)
    query = paged(query, scope.c.id, behind=after, limit=limit)
    return await _counted(tx, tenant, query)


async def find_scope(tx: AsyncConnection, tenant: str, name: str, now: datetime) -> StoredScope | None:
    """Return one live scope, or None whether it is absent, expired or erased."""
    query = select(scope).where(scope.c.tenant == tenant, scope.c.id == name, *live_scope(now))
    scopes = await _counted(tx, tenant, query)
    return scopes[0] if scopes else None


async def update_expiry(
    tx: AsyncConnection, tenant: str, name: str, expires: datetime | None, now: datetime
) -> bool:
    """Set when a live scope expires; return False where there is none."""
    done = await tx.execute(
        update(scope)
        .where(scope.c.tenant == tenant, scope.c.id == name, *live_scope(now))
        .values(expires=expires)
    )
    return done.rowcount > 0


async def list_live_rows(
    tx: AsyncConnection, tenant: str, names: Sequence[str], now: datetime
) -> list[ScopeRow]:
    """Return live scopes among ``names`` as stored, for a look-up in each of them."""
    query = select(scope).where(scope.c.tenant == tenant, scope.c.id.in_(names), *live_scope(now))
    return [
        ScopeRow(
            *(row.id, row.generation, row.state, row.expires, row.counters),
            *(row.restore_epoch, row.dek_wrapped, row.kek_version, row.owner),
        )
        for row in await tx.execute(query)
    ]


async def list_spelled(
    tx: AsyncConnection, tenant: str, names: Sequence[str]
) -> list[tuple[EntryPlace, bytes]]:
    """Return place and ciphertext of entries whose look-up depends on a spelling inside JSON."""
    result = await tx.execute(
        select(entry.c.scope, entry.c.type, entry.c.ordinal, entry.c.ciphertext).where(
            entry.c.tenant == tenant, entry.c.scope.in_(names), entry.c.origin == "spelled"
        )
    )
    return [(EntryPlace(*row[:3]), row[3]) for row in result]


async def remove_scope(tx: AsyncConnection, tenant: str, name: str, now: datetime) -> dict[str, int] | None:
    """Delete a scope's entries and data key; return counts by label, or None where the scope is not active.

    The row stays as a tombstone with its counters, so that none of its ordinals is ever used again; ``now`` is when
    it ended.
    """
    locked = select(scope.c.state).where(scope.c.tenant == tenant, scope.c.id == name).with_for_update()
    if (await tx.execute(locked)).scalar_one_or_none() != SCOPE_ACTIVE:
        return None
    counts = await _counts(tx, tenant, [name])
    await remove_contents(tx, [(tenant, name)])
    await _mark_erased(tx, [(tenant, name)], now)
    return counts.get(name, {})


async def remove_entries(
    tx: AsyncConnection, tenant: str, places: Sequence[EntryPlace], *, until: datetime | None = None
) -> list[EntryPlace]:
    """Delete single entries (made by ``until``) and return those that existed. Their ordinals stay used."""
    made = [] if until is None else [entry.c.created <= until]
    removed: list[EntryPlace] = []
    for start in range(0, len(places), 500):
        part = [(place.scope, place.label, place.ordinal) for place in places[start : start + 500]]
        result = await tx.execute(
            entry.delete()
            .where(
                entry.c.tenant == tenant,
                tuple_(entry.c.scope, entry.c.type, entry.c.ordinal).in_(part),
                *made,
            )
            .returning(entry.c.scope, entry.c.type, entry.c.ordinal)
        )
        removed.extend(EntryPlace(*row) for row in result)
    return removed


async def remove_older(
    tx: AsyncConnection, tenant: str, name: str | None, places: Sequence[EntryPlace], until: datetime
) -> dict[str, int]:
    """Repeat an erasure of the moment ``until``: of the scope ``name``, or of entries; return counts by label.

    What was made after it has another meaning and stays.
    """
    if name is None:
        return dict(Counter(place.label for place in await remove_entries(tx, tenant, places, until=until)))
    made = select(scope.c.created).where(scope.c.tenant == tenant, scope.c.id == name)
    first = select(func.min(entry.c.created)).where(entry.c.tenant == tenant, entry.c.scope == name)
    signed = select(func.min(gateway_signed.c.created)).where(
        gateway_signed.c.tenant == tenant, gateway_signed.c.scope == name
    )
    moments = [(await tx.execute(query)).scalar_one_or_none() for query in (made, first, signed)]
    if any(moment is not None and moment > until for moment in moments):
        return {}
    return await remove_scope(tx, tenant, name, until) or {}


async def list_receipts(tx: AsyncConnection, ids: Sequence[UUID]) -> set[UUID]:
    """Return which of ``ids`` are receipts of any tenant."""
    receipts: set[UUID] = set()
    for start in range(0, len(ids), 500):
        query = select(erasure.c.id).where(erasure.c.id.in_(ids[start : start + 500]))
        receipts.update(row.id for row in await tx.execute(query))
    return receipts


async def add_erasure(
    tx: AsyncConnection,
    tenant: str,
    receipt_id: UUID,
    kind: str,
    at: datetime,
    actor: str,
    name: str | None,
    counts: dict[str, int],
) -> None:
    """Store the receipt of an erasure."""
    await tx.execute(
        insert(erasure).values(
            tenant=tenant, id=receipt_id, kind=kind, at=at, actor=actor, scope=name, counts=counts
        )
    )


async def purge_expired(tx: AsyncConnection, now: datetime, *, limit: int) -> int:
    """Erase expired scopes of any tenant, except those locked by others; return how many.

    The gateway's bindings that have expired go too.
    """
    query = (
        select(scope.c.tenant, scope.c.id)
        .where(scope.c.state == SCOPE_ACTIVE, scope.c.expires <= now)
        .order_by(scope.c.expires)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    names = [(row.tenant, row.id) for row in await tx.execute(query)]
    if names:
        await remove_contents(tx, names)
        await _mark_erased(tx, names, now)
    await tx.execute(gateway_binding.delete().where(gateway_binding.c.expires <= now))
    return len(names)


async def rewrap_scopes(
    tx: AsyncConnection, active: int, rewrap: Callable[[int, bytes], tuple[int, bytes]], *, limit: int
) -> int:
    """Wrap data keys of older versions again, except those locked by others; return how many."""
    query = (
        select(scope.c.tenant, scope.c.id, scope.c.kek_version, scope.c.dek_wrapped)
        .where(scope.c.kek_version != active)
        .order_by(scope.c.kek_version, scope.c.tenant, scope.c.id)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = (await tx.execute(query)).all()
    changes = []
    for row in rows:
        version, wrapped = rewrap(row.kek_version, row.dek_wrapped)
        changes.append({"of": row.tenant, "name": row.id, "version": version, "wrapped": wrapped})
    if changes:
        await tx.execute(
            update(scope)
            .where(scope.c.tenant == bindparam("of"), scope.c.id == bindparam("name"))
            .values(kek_version=bindparam("version"), dek_wrapped=bindparam("wrapped")),
            changes,
        )
    return len(rows)


async def find_places(
    tx: AsyncConnection, tenant: str, lookups: Sequence[tuple[str, str, bytes]]
) -> list[EntryPlace]:
    """Return the entries that have one of ``lookups`` (scope, label, look-up)."""
    wanted = [(tenant, *lookup) for lookup in lookups]
    rows = await rows_matching(tx, ORDINALS, LOOKUP_NAMES, wanted)
    return [EntryPlace(name, label, ordinal) for _, name, label, _, ordinal in rows]


async def find_highest_ordinal(
    tx: AsyncConnection, *, after: tuple[str, str] | None, limit: int
) -> tuple[int, tuple[str, str] | None]:
    """Return the highest counter of the next ``limit`` scopes of any tenant, and the last scope (None: no more)."""
    query = select(scope.c.tenant, scope.c.id, scope.c.counters).order_by(scope.c.tenant, scope.c.id)
    if after is not None:
        query = query.where(tuple_(scope.c.tenant, scope.c.id) > after)
    rows = (await tx.execute(query.limit(limit))).all()
    highest = max((count for row in rows for count in row.counters.values()), default=0)
    return highest, (rows[-1].tenant, rows[-1].id) if rows else None


async def advance_restore_epoch(tx: AsyncConnection, highest: int, above: int = 0) -> int:
    """Begin and return a new epoch, whose ordinals are above all that a lost commit may have used.

    ``highest`` is the highest counter still stored, and ``above`` the last epoch known outside; ``lift_scopes``
    applies the epoch to existing scopes.
    """
    stored = await tx.execute(select(installation.c.value).where(installation.c.name == "restore_epoch"))
    epoch = max(int(stored.scalar_one_or_none() or 0), highest // EPOCH_STRIDE, above) + 1
    # Lost ordinals may be higher than the highest stored counter, so leave ample room above it.
    epoch += 1 if epoch * EPOCH_STRIDE - highest < _LEAST_ROOM else 0
    await tx.execute(installation.delete().where(installation.c.name == "restore_epoch"))
    await tx.execute(insert(installation).values(name="restore_epoch", value=epoch))
    return epoch


async def lift_scopes(
    tx: AsyncConnection, epoch: int, *, after: tuple[str, str] | None, last: tuple[str, str]
) -> None:
    """Set ``epoch`` as the start of numbering for the scopes after ``after``, up to ``last``."""
    name = tuple_(scope.c.tenant, scope.c.id)
    done = update(scope).where(name <= last).values(restore_epoch=epoch)
    await tx.execute(done if after is None else done.where(name > after))


def live_scope(now: datetime) -> tuple[Any, ...]:
    """Return the conditions under which the entries of a scope may be read."""
    return (scope.c.state == SCOPE_ACTIVE, or_(scope.c.expires.is_(None), scope.c.expires > now))


async def _counted(tx: AsyncConnection, tenant: str, query: Select[Any]) -> list[StoredScope]:
    rows = (await tx.execute(query)).all()
    counts = await _counts(tx, tenant, [row.id for row in rows])
    return [
        StoredScope(row.id, row.created, row.expires, row.state, counts.get(row.id, {}), row.owner)
        for row in rows
    ]


async def _counts(tx: AsyncConnection, tenant: str, names: Sequence[str]) -> dict[str, dict[str, int]]:
    query = (
        select(entry.c.scope, entry.c.type, func.count())
        .where(entry.c.tenant == tenant, entry.c.scope.in_(names))
        .group_by(entry.c.scope, entry.c.type)
    )
    counts: dict[str, dict[str, int]] = {}
    for name, label, count in await tx.execute(query):
        counts.setdefault(name, {})[label] = count
    return counts


async def _mark_erased(tx: AsyncConnection, names: Sequence[tuple[str, str]], now: datetime) -> None:
    await tx.execute(
        update(scope)
        .where(tuple_(scope.c.tenant, scope.c.id).in_(names))
        .values(state=SCOPE_ERASED, dek_wrapped=None, kek_version=None, expires=None, erased=now)
    )
