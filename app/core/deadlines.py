"""Until when the work in progress has an answer to give; engines read it to keep time for their fallback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_UNTIL: ContextVar[float | None] = ContextVar("until", default=None)


@asynccontextmanager
async def time_limit(until: float) -> AsyncIterator[None]:
    """Cancel the block at ``until``, a time of the event loop's clock, and tell what it calls; then TimeoutError."""
    token = _UNTIL.set(until)
    try:
        async with asyncio.timeout_at(until):
            yield
    finally:
        _UNTIL.reset(token)


def remaining_s() -> float | None:
    """Return the seconds left to the work in progress; None where nothing limits it."""
    until = _UNTIL.get()
    return None if until is None else until - asyncio.get_running_loop().time()
