"""The deadline of the work in progress, which engines read to leave time for their fallback."""

import asyncio
from contextvars import ContextVar, Token
from types import TracebackType

_DEADLINE: ContextVar[float | None] = ContextVar("until", default=None)


class TimeLimit:
    """Cancels the block at ``until`` (event loop time, seconds) with TimeoutError; callees see the deadline."""

    __slots__ = ("_timeout", "_token", "_until")

    def __init__(self, until: float) -> None:
        self._until = until
        self._timeout = asyncio.timeout_at(until)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()
        self._token: Token[float | None] = _DEADLINE.set(self._until)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _DEADLINE.reset(self._token)
        await self._timeout.__aexit__(kind, error, trace)


def remaining_s() -> float | None:
    """Return the seconds left for the work in progress; None if nothing limits it."""
    until = _DEADLINE.get()
    return None if until is None else until - asyncio.get_running_loop().time()
