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


class WaitLimit:
    """Cancels the block at ``until`` (event loop time, seconds) with TimeoutError, as `asyncio.timeout_at` does.

    It is no coroutine and cannot be moved, which takes a fifth of the time: for what each request waits for.
    """

    __slots__ = ("_cancelling", "_over", "_task", "_timer", "_until")

    def __init__(self, until: float) -> None:
        self._until = until
        self._over = False

    @classmethod
    def after(cls, seconds: float) -> "WaitLimit":
        """Return a limit of ``seconds`` from now."""
        return cls(asyncio.get_running_loop().time() + seconds)

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - what waits is a task
        self._task, self._cancelling = task, task.cancelling()
        self._timer = task.get_loop().call_at(self._until, self._end)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        # Another one's cancellation goes on beside ours.
        if self._over and self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _end(self) -> None:
        self._over = True
        self._task.cancel()


def remaining_s() -> float | None:
    """Return the seconds left for the work in progress; None if nothing limits it."""
    until = _DEADLINE.get()
    return None if until is None else until - asyncio.get_running_loop().time()
