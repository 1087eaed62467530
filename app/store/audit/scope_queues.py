"""Queue writes to a locked scope in a lane of their own, so that writes to other scopes do not wait."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from app.store.vault.numbering import Place

T = TypeVar("T")

_LANES_AT_ONCE = 3
"""How many lanes store at the same time: each takes a connection, which requests need as well."""


@dataclass(slots=True)
class ScopeLanes(Generic[T]):
    """The lanes in use; ``store`` stores at most ``most`` works of one scope and never raises.

    ``count`` is how many works wait in all lanes.
    """

    store: Callable[[list[T]], Awaitable[None]]
    most: int
    count: int = 0
    _waiting: dict[Place, deque[T]] = field(default_factory=dict)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LANES_AT_ONCE))

    def __contains__(self, place: object) -> bool:
        return place in self._waiting

    def add(self, place: Place, work: T) -> None:
        """Put a work at the end of its scope's lane, which begins where there is none."""
        self.count += 1
        if place in self._waiting:
            self._waiting[place].append(work)
            return
        self._waiting[place] = deque([work])
        task = asyncio.create_task(self._run(place), name="group-writer-lane")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Return when every lane is empty."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, place: Place) -> None:
        waiting = self._waiting[place]
        try:
            while waiting:
                async with self._turns:
                    works = [waiting.popleft() for _ in range(min(len(waiting), self.most))]
                    self.count -= len(works)
                    await self.store(works)
        finally:
            del self._waiting[place]
