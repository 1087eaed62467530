"""A named lock for one process at a time, which ends with its connection."""

import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app.store.database import Database

log = logging.getLogger("sluice.store")


@asynccontextmanager
async def only_here(database: Database, name: str) -> AsyncIterator[bool]:
    """Take the lock ``name`` and yield True; yield False at once where another process has it.

    SQLite serves one process, so this is always True there. No transaction stays open meanwhile.
    """
    if database.embedded:
        yield True
        return
    number = {"number": int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)}
    async with database.session() as connection:
        taken = await connection.execute(text("SELECT pg_try_advisory_lock(:number)"), number)
        acquired = bool(taken.scalar_one())
        await connection.commit()
        try:
            yield acquired
        finally:
            if acquired:
                try:
                    await connection.execute(text("SELECT pg_advisory_unlock(:number)"), number)
                    await connection.commit()
                except (SQLAlchemyError, OSError) as error:
                    # A connection that still has the lock must not return to the pool; closing it ends the lock.
                    log.warning("a lock was released by closing its connection: %s", type(error).__name__)
                    await connection.invalidate()
