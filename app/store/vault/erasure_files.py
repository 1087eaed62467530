"""Note erasures outside the database, where no restore of it reaches them: a line of JSON each."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol
from uuid import UUID


class ErasurePlace(Protocol):
    """Where this host notes erasures. The calls wait for files or for the network: call them in a thread."""

    def append(self, history: str | None, erasure: UUID, line: bytes) -> None:
        """Store a line durably, or raise OSError; ``history`` names the database's (None: not known)."""


class SharedErasures(ErasurePlace, Protocol):
    """Where all hosts note erasures, and a start reads those that a restored database lacks."""

    def list_ids(self, history: str) -> set[UUID]:
        """Return the ids of what was noted of the database whose history is ``history``."""

    def read(self, history: str, erasures: Iterable[UUID]) -> list[bytes]:
        """Return the lines of these erasures."""


class ErasureFile:
    """A file that is only appended to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, history: str | None, erasure: UUID, line: bytes) -> None:  # noqa: ARG002 - the line says both
        """Store a line and return when it is on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        try:
            # A write that was cut off must not take this line with it.
            size = os.fstat(descriptor).st_size
            cut_off = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, b"\n" + line if cut_off else line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
