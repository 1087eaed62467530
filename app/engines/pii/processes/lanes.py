"""Decide which call gets the next free worker: short and long work in turn, each in order of arrival."""

import asyncio
from collections import deque
from enum import IntEnum

from app.engines.pii.processes.process import WorkerProcess


class Weight(IntEnum):
    """How long a question occupies a worker: milliseconds, tens of milliseconds, or without a bound."""

    SMALL = 0
    MEDIUM = 1
    LONG = 2


_TURNS = tuple(tuple(Weight((first + step) % len(Weight)) for step in range(len(Weight))) for first in Weight)
"""For each weight, the order in which work is looked for where that weight is next."""


class Lanes:
    """Free workers, and the calls that wait for one.

    Waiting work of different weights takes turns, and if there are several workers, one of them never gets long work.
    So neither a long text nor a flood of short ones blocks the others until it ends.
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
        """Add a new worker, or return one after use."""
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
            self._next = _TURNS[weight][1]
            if weight is Weight.LONG:
                self._with_long.add(worker)

    def _turn(self) -> Weight | None:
        """Return the weight of the work that is next; None if no waiting call may have a worker."""
        if not any(self._waiting):
            return None
        for waiting in self._waiting:
            while waiting and waiting[0].done():
                waiting.popleft()
        for weight in _TURNS[self._next]:
            is_blocked = weight is Weight.LONG and len(self._with_long) >= self._most_long
            if self._waiting[weight] and not is_blocked:
                return weight
        return None
