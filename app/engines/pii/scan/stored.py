"""Cache compiled patterns and derived probes on disk: creating them takes seconds, reading them milliseconds.

The files are in the user's cache folder (``CACHE_DIRECTORY`` of systemd, else ``XDG_CACHE_HOME``, else ``~/.cache``),
named by a digest of their sources. A file that another user could have written is not read. If the folder is not
writable, every start compiles.
"""

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

_FILES = 4
"""The number of files of a kind that are kept; those used last."""

DATABASE: Final = "hsdb"
"""The kind of a compiled database: the suffix of its file."""


def read(digest: bytes, kind: str = DATABASE) -> bytes | None:
    """Return what `keep` stored under ``digest``, or None."""
    folder = _folder()
    if folder is None:
        return None
    path = folder / _name(digest, kind)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode) or _foreign(facts):
                return None
            # A used file counts as new: the oldest files are deleted.
            with contextlib.suppress(OSError):
                os.utime(path)
            return file.read()
    except OSError:
        return None


def keep(digest: bytes, content: bytes, kind: str = DATABASE) -> None:
    """Store ``content`` under ``digest`` if possible; readers see all of it or nothing."""
    folder = _folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _foreign(folder.stat()):
            return
        descriptor, unfinished = tempfile.mkstemp(dir=folder, prefix="patterns-", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).replace(folder / _name(digest, kind))
        except OSError:
            Path(unfinished).unlink(missing_ok=True)
            raise
        stored = sorted(folder.glob(f"patterns-*.{kind}"), key=lambda path: -path.stat().st_mtime)
        for old in stored[_FILES:]:
            old.unlink(missing_ok=True)


def _name(digest: bytes, kind: str) -> str:
    return f"patterns-{digest.hex()[:32]}.{kind}"


def _foreign(facts: os.stat_result) -> bool:
    """Return whether another user owns the file or could change it."""
    if not hasattr(os, "geteuid"):
        return False
    return facts.st_uid != os.geteuid() or bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _folder() -> Path | None:
    folder = os.environ.get("CACHE_DIRECTORY", "").split(os.pathsep)[0]
    if folder:
        return Path(folder)
    folder = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(folder) if folder else Path.home() / ".cache") / "sluice"
    except RuntimeError:
        return None
