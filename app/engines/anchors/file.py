"""A file that only grows: each checkpoint is a line of JSON, on storage that the database's owner cannot change."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from app.core.contracts.anchors import AnchorError, Submission
from app.core.transparency.notes import Checkpoint, Note, NoteError, Signature

_BEGINNING: Final = '{"at": "'
_TAIL_BYTES: Final = 64 * 1024
"""Far more than the longest line: 64 signatures of 100 bytes."""


@dataclass(frozen=True, slots=True)
class FileAnchor:
    """Appends to a file, and never writes anything else."""

    path: Path

    @property
    def name(self) -> str:
        """Return the name of the file, without its folder."""
        return f"file {self.path.name}"

    async def newest(self) -> Checkpoint | None:
        """Return the checkpoint of the last line."""
        return await asyncio.to_thread(self._newest)

    async def keep(self, submission: Submission) -> Sequence[Signature]:
        """Append a line, and return once it is on the disk."""
        await asyncio.to_thread(self._append, submission.note)
        return ()

    def _newest(self) -> Checkpoint | None:
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
                # A line that was cut off by a crash has no newline, and is no checkpoint.
                lines = file.read().split(b"\n")[:-1]
            return Checkpoint.parse(Note.parse(json.loads(lines[-1])["checkpoint"]).text) if lines else None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise AnchorError(f"The file cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, NoteError):
            raise AnchorError("The last line of the file is no checkpoint: move the file away.") from None

    def _append(self, note: Note) -> None:
        line = json.dumps({"at": datetime.now(UTC).isoformat(), "checkpoint": str(note)}, ensure_ascii=False)
        try:
            with self.path.open("ab") as file:
                # Ends the line that a crash may have cut off.
                begin = b"" if self._ends_a_line() else b"\n"
                file.write(begin + line.encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise AnchorError(f"The file cannot be written: {error.strerror}.") from None

    def _ends_a_line(self) -> bool:
        with self.path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"


def checkpoints_in(text: str) -> list[str]:
    """Return the checkpoints of a file that an anchor kept, or of one that holds a single checkpoint.

    A line that a crash or a full disk cut off was never confirmed, and what follows it stands on a line of its own.
    """
    if not text.startswith("{"):
        return [text]
    kept = []
    for line in text.splitlines():
        try:
            kept.append(str(json.loads(line)["checkpoint"]))
        except (ValueError, KeyError, TypeError):
            if not _is_cut_off(line):
                kept.append(line)  # named as unreadable when it is verified
    return [note for note in kept if note]


def _is_cut_off(line: str) -> bool:
    return _BEGINNING.startswith(line[: len(_BEGINNING)]) and not line.endswith("}")
