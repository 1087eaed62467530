"""Anchors: places out of reach of the database's owner that keep the signed checkpoints of the audit log."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from app.core.transparency.notes import Checkpoint, Note, Signature


class AnchorError(Exception):
    """An anchor did not take a checkpoint; the message says what to mend and holds no content."""


class KeepsAnotherError(AnchorError):
    """An anchor keeps a checkpoint of another size than the one that was continued: ``size``."""

    def __init__(self, size: int) -> None:
        super().__init__(f"It keeps a checkpoint of {size} entries.")
        self.size = size


class Submission(NamedTuple):
    """A checkpoint to keep, and the proof that it continues the one of ``since`` entries (0: none before)."""

    checkpoint: Checkpoint
    note: Note
    since: int
    proof: Sequence[bytes]


class Anchor(Protocol):
    """One place; its methods raise AnchorError."""

    @property
    def name(self) -> str:
        """Return how metrics and log lines name it: never a secret."""
        ...

    async def newest(self) -> Checkpoint | None:
        """Return the newest checkpoint that it keeps; None where it keeps none, or cannot be asked."""
        ...

    async def keep(self, submission: Submission) -> Sequence[Signature]:
        """Keep a checkpoint; return the cosignatures that it gave for it. Raise KeepsAnotherError to be asked anew."""
        ...
