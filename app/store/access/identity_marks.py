"""Queries on marks of identities: who has ended when, and what worked once and must not work again."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.access.tables import identity_mark
from app.store.insertion import insert_absent

ENDED: Final = "ended"
SPENT: Final = "spent"


async def add_spent(tx: AsyncConnection, digest: str, at: float, ends: datetime) -> bool:
    """Note what works once; return False and change nothing where it was noted before."""
    values = {"kind": SPENT, "digest": digest, "at": at, "ends": ends}
    return await insert_absent(tx, identity_mark, values)


async def set_ended(tx: AsyncConnection, digest: str, at: float, ends: datetime) -> None:
    """Note that what was issued to an identity until ``at`` counts no more; a later moment stays."""
    values = {"kind": ENDED, "digest": digest, "at": at, "ends": ends}
    if await insert_absent(tx, identity_mark, values):
        return
    noted = (identity_mark.c.kind == ENDED) & (identity_mark.c.digest == digest)
    await tx.execute(update(identity_mark).where(noted, identity_mark.c.at < at).values(at=at, ends=ends))


async def ended_at(tx: AsyncConnection, digests: Collection[str]) -> float | None:
    """Return the latest moment at which one of these identities ended, None where none did."""
    noted = (identity_mark.c.kind == ENDED) & identity_mark.c.digest.in_(list(digests))
    latest: float | None = (await tx.execute(select(func.max(identity_mark.c.at)).where(noted))).scalar_one()
    return latest


async def remove_old_marks(tx: AsyncConnection, moment: datetime) -> int:
    """Delete the marks of what nobody could present any more; return how many."""
    done = await tx.execute(delete(identity_mark).where(identity_mark.c.ends <= moment))
    return done.rowcount
