"""Who gets the next free worker: short and long work in turn, each in the order of arrival."""

import asyncio
from collections import deque
from enum import IntEnum

from app.engines.pii.processes.process import WorkerProcess


class Weight(IntEnum):
    """How long work keeps a worker: milliseconds, some tens of them, or as long as it takes."""

    SMALL = 0
    MEDIUM = 1
    LONG = 2


class Lanes:
    """Free workers, and those who wait for one.

    Work of different weight takes turns where it waits, and of several workers one is never left to long work. So
    neither a long text nor a flood of short ones keeps the others waiting for its end.
    """

    def __init__(self, size: int) -> None:
        self._free: deque[WorkerProcess] = deque()
        self._waiting: list[deque[asyncio.Future[WorkerProcess]]] = [deque() for _ in Weight]
        self._most_long = max(1, size - 1)
        self._with_long: set[WorkerProcess] = set()
        self._next = Weight.SMALL

    async def take(self, weight: Weight) -> WorkerProcess:
        """Wait for a worker that runs; give it back with `put`, or report its end with `lost`."""
        place: asyncio.Future[WorkerProcess] = asyncio.get_running_loop().create_future()
        self._waiting[weight].append(place)
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
        self._with_long.discard(worker)
        self._free.append(worker)
        self._serve()

    def lost(self, worker: WorkerProcess) -> None:
        """Forget a worker that ended."""
        self._with_long.discard(worker)
        self._serve()

    def _serve(self) -> None:
        while self._free and (weight := self._turn()) is not None:
            worker = self._free.popleft()
            if not worker.running:
                continue
            self._waiting[weight].popleft().set_result(worker)
            self._next = Weight((weight + 1) % len(Weight))
            if weight is Weight.LONG:
                self._with_long.add(worker)

    def _turn(self) -> Weight | None:
        """Return the work that is next; None where nobody waits who may have a worker."""
        for waiting in self._waiting:
            while waiting and waiting[0].done():
                waiting.popleft()
        for step in range(len(Weight)):
            weight = Weight((self._next + step) % len(Weight))
            held_back = weight is Weight.LONG and len(self._with_long) >= self._most_long
            if self._waiting[weight] and not held_back:
                return weight
        return None
