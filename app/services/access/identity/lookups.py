"""Lookups of callers in the database: a few at once, so that a flood of them cannot take every connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from app.core.errors import StoreUnavailableError

_MAX_LOOKUPS: Final = 4
_WAIT_S: Final = 1.0


def few_lookups() -> asyncio.Semaphore:
    """Return what a kind of lookups takes turns with."""
    return asyncio.Semaphore(_MAX_LOOKUPS)


@asynccontextmanager
async def turn(lookups: asyncio.Semaphore) -> AsyncIterator[None]:
    """Hold a turn during the body; raises StoreUnavailableError where there is none within a second.

    If the database does not answer, a lookup must not queue behind all the others.
    """
    try:
        async with asyncio.timeout(_WAIT_S):
            await lookups.acquire()
    except TimeoutError:
        raise StoreUnavailableError("The database is busy.", retry_after_s=1.0) from None
    try:
        yield
    finally:
        lookups.release()
