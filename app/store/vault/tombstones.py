"""Delete the tombstones of scopes that ended long ago, and keep what they were for: no ordinal is given twice.

A tenant's highest ordinals among them, by label, stay in one row, its *floor*: a new scope of any name counts on from
there. The floor is a tombstone without a name, so that it is restored, lifted and erased like any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.tables import SCOPE_ERASED, scope
from app.store.vault.allocation import get_restore_epoch
from app.store.vault.numbering import EPOCH_STRIDE, FLOOR, STABLE_ORDINALS

HIGHEST = STABLE_ORDINALS // 2
"""Tombstones with higher ordinals, counted from their epoch, stay: a floor may not reach the stable scope's."""


async def date_tombstones(tx: AsyncConnection, now: datetime, *, limit: int) -> int:
    """Note ``now`` as the end of scopes that an older release has ended; return how many."""
    query = select(scope.c.tenant, scope.c.id).where(
        scope.c.state == SCOPE_ERASED, scope.c.erased.is_(None), scope.c.id != FLOOR
    )
    rows = (await tx.execute(query.limit(limit).with_for_update(skip_locked=True))).all()
    await _date(tx, rows, now)
    return len(rows)


async def remove_tombstones(tx: AsyncConnection, before: datetime, now: datetime, *, limit: int) -> int:
    """Delete tombstones of scopes that ended by ``before``, except those locked by others; return how many it read.

    One whose ordinals are too high for a floor stays for as long again.
    """
    query = (
        select(scope.c.tenant, scope.c.id, scope.c.counters)
        .where(scope.c.state == SCOPE_ERASED, scope.c.erased <= before)
        .order_by(scope.c.erased)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = (await tx.execute(query)).all()
    epoch = await get_restore_epoch(tx)
    most = epoch * EPOCH_STRIDE + HIGHEST
    high = [row for row in rows if max(row.counters.values(), default=0) > most]
    low = [row for row in rows if row not in high]
    await _date(tx, high, now)
    for tenant in sorted({row.tenant for row in low}):
        await _raise_floor(tx, tenant, [row.counters for row in low if row.tenant == tenant], epoch, now)
    if low:
        await tx.execute(delete(scope).where(_places(low)))
    return len(rows)


async def _raise_floor(
    tx: AsyncConnection, tenant: str, counters: Iterable[Mapping[str, int]], epoch: int, now: datetime
) -> None:
    own = (scope.c.tenant == tenant) & (scope.c.id == FLOOR)
    stored = (await tx.execute(select(scope.c.counters).where(own).with_for_update())).scalar_one_or_none()
    floor = dict(stored or {})
    for label, ordinal in (pair for each in counters for pair in each.items()):
        floor[label] = max(ordinal, floor.get(label, 0))
    if stored is not None:
        await tx.execute(update(scope).where(own).values(counters=floor))
        return
    await tx.execute(
        insert(scope).values(
            tenant=tenant,
            id=FLOOR,
            created=now,
            state=SCOPE_ERASED,
            generation=1,
            counters=floor,
            restore_epoch=epoch,
        )
    )


async def _date(tx: AsyncConnection, rows: Sequence[Any], now: datetime) -> None:
    if rows:
        await tx.execute(update(scope).where(_places(rows)).values(erased=now))


def _places(rows: Sequence[Any]) -> Any:
    return tuple_(scope.c.tenant, scope.c.id).in_([(row.tenant, row.id) for row in rows])
