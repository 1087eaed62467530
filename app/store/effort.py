"""Limit how long statements of free form may take, and tell that from a database that does not answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

# A plan for tenants of average size is made after some runs and kept: for a large tenant it reads all of its rows.
_LIMITS = text(
    "SELECT set_config('statement_timeout', :limit, true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true)"
)
_AGAIN_S = 0.005
_ENDED = frozenset({"57014", "SQLITE_INTERRUPT"})


class TooMuchEffortError(Exception):
    """A statement took longer than it may; the transaction can only be rolled back."""


@asynccontextmanager
async def limited(tx: AsyncConnection, seconds: float) -> AsyncIterator[None]:
    """Cancel a statement of the block that takes longer than ``seconds``; on SQLite, all of them together.

    Raises ``TooMuchEffortError`` then. ``seconds`` must be below the time-out of the database's statements. Until the
    transaction ends, PostgreSQL plans each statement for its parameters.
    """
    try:
        if tx.dialect.name == "postgresql":
            await tx.execute(_LIMITS, {"limit": f"{seconds * 1000:.0f}ms"})
            yield
            return
        driver: Any = (await tx.get_raw_connection()).driver_connection
        interruption = asyncio.create_task(_interrupt(driver, seconds))
        try:
            yield
        finally:
            interruption.cancel()
    except DBAPIError as error:
        names = (getattr(error.orig, name, None) for name in ("sqlstate", "sqlite_errorname"))
        if _ENDED.isdisjoint(names):
            raise
        raise TooMuchEffortError from None


async def _interrupt(driver: Any, seconds: float) -> None:
    """Interrupt what SQLite runs after ``seconds``, and again, since between two statements nothing is interrupted."""
    await asyncio.sleep(seconds)
    while True:
        await driver.interrupt()
        await asyncio.sleep(_AGAIN_S)
