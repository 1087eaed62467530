"""Work that goes on beside the requests: tasks that nobody waits for, and one coroutine while a body runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

_AGAIN_S: Final = 5.0
"""Longer than the cleaning up of any task takes, which a second cancellation would break off."""

_log = logging.getLogger("sluice.background")


async def ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel the tasks and return when all have ended, whatever they raised.

    A task that goes on is cancelled again: code of libraries may lose a cancellation, as ``asyncio.wait_for`` of
    Python 3.11 does when what it waits for comes at the same moment, and a loop would then run forever.
    """
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        done, running = await asyncio.wait(running, timeout=_AGAIN_S)
        for task in done:
            if not task.cancelled():
                task.exception()  # mark it as retrieved: nobody else asks for it


class BackgroundTasks:
    """Tasks of one owner, which ends them with itself; what one of them raises is logged and ends that one alone."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, None], *, name: str | None = None) -> asyncio.Task[None]:
        """Run ``work``; the task is kept until it ends."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def wait(self) -> None:
        """Wait for the end of what runs now."""
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        """Cancel what runs and wait for its end."""
        await ended(*self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Messages of exceptions may hold content: only the kind is logged.
            _log.warning("a background task failed: %s", type(error).__name__)


@asynccontextmanager
async def meanwhile(work: Coroutine[Any, Any, None], *, name: str) -> AsyncIterator[None]:
    """Run ``work`` while the body runs, then cancel it; what it raised before that is raised at the end."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        await ended(task)
        if not task.cancelled():
            task.result()
