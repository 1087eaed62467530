"""A short-lived cache of database reads that never keeps a value read before a change."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ShortMemory(Generic[K, V]):
    """Caches values for ``ttl_s`` seconds, at most ``size`` of them; None is never cached.

    A memory that follows the announcements of changes keeps its values while all are heard.

    Concurrent readers of one key share one load. A load that began before a ``forget`` is not cached: it may have
    seen the state before the change.
    """

    def __init__(self, *, ttl_s: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._ttl_s = ttl_s
        self._size = size
        self._clock = clock
        self._values: dict[K, tuple[float, V]] = {}
        self._loads: dict[K, asyncio.Task[V | None]] = {}
        self._forgotten = 0
        self._is_told: Callable[[], bool] = lambda: False

    def follow(self, is_told: Callable[[], bool]) -> None:
        """Keep values, however old, while ``is_told`` says that a ``forget`` comes with every change."""
        self._is_told = is_told

    def peek(self, key: K) -> V | None:
        """Return the cached value of ``key``, None if there is none or it is too old."""
        entry = self._values.get(key)
        if entry is None or not (entry[0] > self._clock() or self._is_told()):
            return None
        return entry[1]

    async def get(self, key: K, load: Callable[[K], Awaitable[V | None]]) -> V | None:
        """Return the cached value, or the result of ``load``."""
        value = self.peek(key)
        if value is not None:
            return value
        running = self._loads.get(key)
        if running is None:
            running = self._loads[key] = asyncio.create_task(self._load(key, load))
            running.add_done_callback(lambda task: self._on_loaded(key, task))
        # A reader that is cancelled must not cancel the load for the others.
        return await asyncio.shield(running)

    def forget(self, *keys: K) -> None:
        """Drop the values of ``keys``; loads under way still answer their readers but are not cached."""
        self._invalidate_loads()
        for key in keys:
            self._values.pop(key, None)

    def forget_where(self, concerned: Callable[[V], bool]) -> None:
        """Drop the values for which ``concerned`` returns true, as ``forget`` does."""
        self._invalidate_loads()
        for key in [key for key, (_, value) in self._values.items() if concerned(value)]:
            del self._values[key]

    def _invalidate_loads(self) -> None:
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

    def _on_loaded(self, key: K, task: asyncio.Task[V | None]) -> None:
        if self._loads.get(key) is task:
            del self._loads[key]
        if not task.cancelled():
            task.exception()  # its readers got it; without readers it must not be reported as unhandled
