"""One process at a time: a lock by name that ends with its connection."""

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
    """Yield True while no other process holds the lock ``name``, else False at once.

    SQLite serves one process, so it is always True there. No transaction stays open meanwhile.
    """
    if database.embedded:
        yield True
        return
    number = {"number": int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)}
    async with database.connection() as connection:
        taken = await connection.execute(text("SELECT pg_try_advisory_lock(:number)"), number)
        held = bool(taken.scalar_one())
        await connection.commit()
        try:
            yield held
        finally:
            if held:
                try:
                    await connection.execute(text("SELECT pg_advisory_unlock(:number)"), number)
                    await connection.commit()
                except (SQLAlchemyError, OSError) as error:
                    # The lock must not go back into the pool: it ends with the connection.
                    log.warning("a lock was given up with its connection: %s", type(error).__name__)
                    await connection.invalidate()
