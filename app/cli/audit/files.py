"""Checkpoints and public keys that the commands of the audit log get as arguments."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli.terminal import USAGE, fail

if TYPE_CHECKING:
    from app.core.transparency.notes import VerifierKey


def public_keys(texts: Sequence[str]) -> "list[VerifierKey]":
    """Return the keys that texts name, or end the command."""
    from app.core.transparency.notes import NoteError, VerifierKey

    try:
        return [VerifierKey.parse(text) for text in texts]
    except NoteError as error:
        fail(f"--key is no public key of a log: {error}", USAGE)


def size_of(file: Path) -> int:
    """Return the size of the newest checkpoint in a file, or end the command."""
    from app.core.transparency.notes import Checkpoint, Note, NoteError

    try:
        return Checkpoint.parse(Note.parse(checkpoints_of(file)[-1]).text).size
    except (NoteError, IndexError):
        fail(f"{file} holds no checkpoint, as sluice audit checkpoint prints one.", USAGE)


def checkpoints_of(file: Path) -> list[str]:
    """Return the checkpoints in a file, of an anchor or a single one, or end the command."""
    from app.engines.anchors.file import checkpoints_in

    try:
        return checkpoints_in(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        fail(f"The anchor {file} cannot be read: {reason}.", USAGE)
