"""Requests whose client may leave before they are answered."""

import asyncio
from types import TracebackType
from typing import Any, Final

from starlette.types import Receive

_UNWATCHED_S: Final = 0.05
"""So long a request is not watched for the client that leaves: most are answered before."""


class UntilDisconnect:
    """Cancels the body when the client closes the connection, or by ``cancel``; use it once, in the task it cancels.

    ``left`` and ``cancelled`` say afterwards which of the two it was.
    """

    __slots__ = ("_receive", "_task", "_timer", "_watcher", "cancelled", "left")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._watcher: asyncio.Task[None] | None = None
        self.left = self.cancelled = False

    def __enter__(self) -> None:
        task: asyncio.Task[Any] | None = asyncio.current_task()
        assert task is not None  # noqa: S101 - requests are served in tasks
        self._task = task
        self._timer: asyncio.TimerHandle | None = task.get_loop().call_later(_UNWATCHED_S, self._begin)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.stop()
        if not (self.left or self.cancelled):
            return False
        # Another one's cancellation goes on beside ours.
        return self._task.uncancel() == 0 and kind is asyncio.CancelledError

    def stop(self) -> None:
        """Watch no longer: after the last bytes of an answer every client has gone, as far as the server says."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    def cancel(self) -> None:
        """End the body, once."""
        if not (self.left or self.cancelled):
            self.cancelled = True
            self._task.cancel()

    def _begin(self) -> None:
        self._timer = None
        self._watcher = self._task.get_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self.cancelled:
            self.left = True
            self._task.cancel()
