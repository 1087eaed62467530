"""A file of JSON Lines, for agents that follow files; whoever rotates it renames it."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from app.core.contracts.sinks import SinkBatch, SinkError

_BLOCK: Final = 64 * 1024
_OWNER_ONLY: Final = 0o600


@dataclass(frozen=True, slots=True)
class FileSink:
    """Appends a line for each event; a line that a crash cut off is taken back first, since it comes again whole."""

    path: Path

    @property
    def name(self) -> str:
        """Return the name of the file, without its folder."""
        return f"file {self.path.name}"

    async def deliver(self, batch: SinkBatch) -> int:
        """Append lines, and return once they are on the disk."""
        lines = b"".join(event.line + b"\n" for event in batch.events)
        try:
            await asyncio.to_thread(self._append, lines)
        except OSError as error:
            raise SinkError(f"The file cannot be written: {error.strerror}.") from None
        return 0

    def _append(self, lines: bytes) -> None:
        with os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY), "rb+") as file:
            end = _end_of_lines(file)
            if end < file.seek(0, os.SEEK_END):
                file.truncate(end)
            file.seek(end)
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())


def _end_of_lines(file: BinaryIO) -> int:
    """Return where the last line ends that has a newline."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
