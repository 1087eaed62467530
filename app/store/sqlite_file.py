"""Notice that the file of an open SQLite database was deleted or replaced: what is written to it then is lost."""

import os
from pathlib import Path

_NAME_ONLY = getattr(os, "O_PATH", None)


class SQLiteFile:
    """The file that a process opened, by device and number, and whether its path still names that file.

    The file must exist. It is never opened a second time for reading: closing that would drop every lock that this
    process's connections have on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        # A deleted file's number may be given to its successor, unless somebody still holds the deleted one.
        # Such a descriptor names the file without opening it, so that closing it drops no lock (Linux only;
        # elsewhere the connections of the pool hold the file).
        self._held = os.open(path, _NAME_ONLY | os.O_CLOEXEC) if _NAME_ONLY is not None else None
        self._identity = self._found()

    @property
    def whole(self) -> bool:
        """Return whether the path still names the file that was opened."""
        return self._identity is not None and self._found() == self._identity

    def close(self) -> None:
        """Let the file go."""
        descriptor, self._held = self._held, None
        if descriptor is not None:
            os.close(descriptor)

    def _found(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self._path)  # noqa: PTH116 - for each write; a Path takes twice as long
        except OSError:
            return None
        return status.st_dev, status.st_ino
