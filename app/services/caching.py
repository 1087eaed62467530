"""A small memory of what the database said a moment ago, safe against answers that were overtaken."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ShortMemory(Generic[K, V]):
    """Remembers values for ``ttl_s`` seconds, at most ``size`` of them; None is never remembered.

    Concurrent readers of one key share one load. ``forget`` also keeps a load that began before it from being
    remembered: it may have seen the state before the change.
    """

    def __init__(self, *, ttl_s: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._size = size
        self._clock = clock
        self._values: dict[K, tuple[float, V]] = {}
        self._loads: dict[K, asyncio.Task[V | None]] = {}
        self._forgotten = 0

    def peek(self, key: K) -> V | None:
        """Return what is remembered of ``key``, None where that is nothing or too old."""
        found = self._values.get(key)
        return found[1] if found is not None and found[0] > self._clock() else None

    async def get(self, key: K, load: Callable[[K], Awaitable[V | None]]) -> V | None:
        """Return the remembered value, or what ``load`` says."""
        found = self.peek(key)
        if found is not None:
            return found
        running = self._loads.get(key)
        if running is None:
            running = self._loads[key] = asyncio.create_task(self._load(key, load))
            running.add_done_callback(lambda task: self._ended(key, task))
        # One reader that gives up must not take the answer from the others.
        return await asyncio.shield(running)

    def forget(self, *keys: K) -> None:
        """Drop the values of ``keys``; loads under way answer their readers and are not kept."""
        self._overtake()
        for key in keys:
            self._values.pop(key, None)

    def forget_where(self, concerned: Callable[[V], bool]) -> None:
        """Drop the values that ``concerned`` names, as ``forget`` does."""
        self._overtake()
        for key in [key for key, (_, value) in self._values.items() if concerned(value)]:
            del self._values[key]

    def _overtake(self) -> None:
        self._forgotten += 1
        self._loads.clear()

    async def _load(self, key: K, load: Callable[[K], Awaitable[V | None]]) -> V | None:
        forgotten = self._forgotten
        value = await load(key)
        if value is not None and forgotten == self._forgotten:
            self._values.pop(key, None)
            while len(self._values) >= self._size:
                del self._values[next(iter(self._values))]
            self._values[key] = (self._clock() + self._ttl_s, value)
        return value

    def _ended(self, key: K, task: asyncio.Task[V | None]) -> None:
        if self._loads.get(key) is task:
            del self._loads[key]
        if not task.cancelled():
            task.exception()  # its readers have it; nobody left must not make it an unhandled one
