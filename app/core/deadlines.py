"""The deadline of the work in progress, which engines read to leave time for their fallback."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float | None] = ContextVar("until", default=None)


@asynccontextmanager
async def time_limit(until: float) -> AsyncIterator[None]:
    """Cancel the block at ``until`` (event loop time, seconds) with TimeoutError, and set the deadline for callees."""
    token = _DEADLINE.set(until)
    try:
        async with asyncio.timeout_at(until):
            yield
    finally:
        _DEADLINE.reset(token)


def remaining_s() -> float | None:
    """Return the seconds left for the work in progress; None if nothing limits it."""
    until = _DEADLINE.get()
    return None if until is None else until - asyncio.get_running_loop().time()
