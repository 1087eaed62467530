"""Who gets the next free worker: large and small work in turn, each in the order of arrival."""

import asyncio
from collections import deque

from app.engines.pii.process import WorkerProcess


class Lanes:
    """Free workers, and those who wait for one.

    Work is *small* or *large*; where both wait, they take turns, and of several workers one is left to small work. So
    neither a long text nor a flood of short ones keeps the others waiting for its end.
    """

    def __init__(self, size: int) -> None:
        self._free: deque[WorkerProcess] = deque()
        self._waiting: dict[bool, deque[asyncio.Future[WorkerProcess]]] = {False: deque(), True: deque()}
        self._most_large = max(1, size - 1)
        self._with_large: set[WorkerProcess] = set()
        self._large_next = False

    async def take(self, *, large: bool) -> WorkerProcess:
        """Wait for a worker that runs; give it back with `put`, or report its end with `lost`."""
        place: asyncio.Future[WorkerProcess] = asyncio.get_running_loop().create_future()
        self._waiting[large].append(place)
        self._serve()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.put(place.result())
            else:
                place.cancel()
            raise

    def put(self, worker: WorkerProcess) -> None:
        """Give a new worker, or one back."""
        self._with_large.discard(worker)
        self._free.append(worker)
        self._serve()

    def lost(self, worker: WorkerProcess) -> None:
        """Forget a worker that ended."""
        self._with_large.discard(worker)
        self._serve()

    def _serve(self) -> None:
        while self._free and (large := self._turn()) is not None:
            worker = self._free.popleft()
            if not worker.running:
                continue
            self._waiting[large].popleft().set_result(worker)
            self._large_next = not large
            if large:
                self._with_large.add(worker)

    def _turn(self) -> bool | None:
        """Return whether large work is next; None where nobody waits who may have a worker."""
        for waiting in self._waiting.values():
            while waiting and waiting[0].done():
                waiting.popleft()
        small = bool(self._waiting[False])
        large = bool(self._waiting[True]) and len(self._with_large) < self._most_large
        if small and large:
            return self._large_next
        return large if small or large else None
