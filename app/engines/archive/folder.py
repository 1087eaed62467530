"""A folder of an archive: each file appears whole under its name, or not at all, and none is replaced."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from app.core.archive import ArchiveError


@dataclass(frozen=True, slots=True)
class ArchiveFolder:
    """Keeps files in a folder for each tenant."""

    path: Path

    @property
    def name(self) -> str:
        """Return the folder's name, without where it lies."""
        return f"folder {self.path.name}"

    def names(self, tenant: str) -> Sequence[str]:
        """Return the names of a tenant's files; what is being written has none yet."""
        try:
            return sorted(path.name for path in (self.path / tenant).glob("[!.]*.parquet"))
        except OSError as error:
            raise ArchiveError(f"The archive's folder cannot be read: {error.strerror}.") from None

    def open(self, tenant: str, name: str) -> BinaryIO:
        """Open a file for reading; raises OSError."""
        return (self.path / tenant / name).open("rb")

    def keep(self, tenant: str, name: str, file: Path) -> None:
        """Store a copy of ``file`` under a name that is free."""
        folder = self.path / tenant
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder, prefix=f".{name}.", suffix=".part") as unfinished:
                with file.open("rb") as source:
                    shutil.copyfileobj(source, unfinished)
                unfinished.flush()
                os.fsync(unfinished.fileno())
                # A link, unlike a rename, replaces nothing.
                (folder / name).hardlink_to(unfinished.name)
            _sync(folder)
        except FileExistsError:
            raise ArchiveError(f"The archive has {tenant}/{name} already, and replaces nothing.") from None
        except OSError as error:
            raise ArchiveError(f"The archive's folder cannot be written: {error.strerror}.") from None


def _sync(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
