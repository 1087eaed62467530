"""Work that goes on beside the requests of one connection and ends with it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger("sluice.upstream")


class Tasks:
    """Tasks that nobody waits for; what one of them raises costs nothing but that task."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start ``work``."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def aclose(self) -> None:
        """Cancel what runs and wait for it."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Messages of exceptions may hold content: only the kind is logged.
            log.warning("work beside a connection failed: %s", type(error).__name__)
