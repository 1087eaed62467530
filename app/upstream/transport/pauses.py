"""Growing pauses before a stream is opened again."""

import asyncio
import time
from typing import Final

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
_STEADY_S: Final = 10.0
"""After a stream of this length, the pauses start again with the shortest."""


class Pauses:
    """Waits between the attempts to open one stream."""

    def __init__(self) -> None:
        self._next_s = FIRST_S
        self._begun_at: float | None = None

    def begun(self) -> None:
        """Note that the stream is open."""
        self._begun_at = time.monotonic()

    async def wait(self, advised_s: float | None = None) -> None:
        """Wait before the next attempt; a server's advised pause is followed within our bounds."""
        if self._begun_at is not None and time.monotonic() - self._begun_at >= _STEADY_S:
            self._next_s = FIRST_S
        self._begun_at = None
        pause_s = self._next_s if advised_s is None else max(advised_s, FIRST_S)
        await asyncio.sleep(min(pause_s, LONGEST_S))
        self._next_s = min(self._next_s * 2, LONGEST_S)
