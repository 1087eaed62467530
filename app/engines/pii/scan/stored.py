"""Compiled patterns on disk, and what was derived from them: making takes seconds, reading milliseconds.

They lie in the user's cache folder (``CACHE_DIRECTORY`` of systemd, else ``XDG_CACHE_HOME``, else ``~/.cache``) under a
name that says what they were made of. A file that somebody else could have written is not read; where nothing can be
written, each start compiles.
"""

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

_FILES = 4
"""So many files of a kind are kept, those used last."""

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
            # What is used counts as new: the oldest are thrown away.
            with contextlib.suppress(OSError):
                os.utime(path)
            return file.read()
    except OSError:
        return None


def keep(digest: bytes, content: bytes, kind: str = DATABASE) -> None:
    """Store ``content`` under ``digest`` if that is possible; readers see all of it or nothing."""
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
        stored = sorted(folder.glob(f"patterns-*.{kind}"), key=lambda one: -one.stat().st_mtime)
        for old in stored[_FILES:]:
            old.unlink(missing_ok=True)


def _name(digest: bytes, kind: str) -> str:
    return f"patterns-{digest.hex()[:32]}.{kind}"


def _foreign(facts: os.stat_result) -> bool:
    """Return whether another user owns it or could change it."""
    if not hasattr(os, "geteuid"):
        return False
    return facts.st_uid != os.geteuid() or bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _folder() -> Path | None:
    given = os.environ.get("CACHE_DIRECTORY", "").split(os.pathsep)[0]
    if given:
        return Path(given)
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(given) if given else Path.home() / ".cache") / "sluice"
    except RuntimeError:
        return None
