"""The archive that a setting or an option names by an address."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from app.engines.archive.folder import ArchiveFolder
from app.engines.archive.parquet import ParquetArchive

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def archive_at(address: str) -> ParquetArchive:
    """Return the archive at an address; raise ValueError, which says what an address looks like.

    A folder (``/folder`` or ``file:///folder``), or ``s3://bucket/folder``, for which ModuleNotFoundError says that the
    package ``obstore`` is missing.
    """
    if not _SCHEME.match(address):
        if address.strip():
            return ParquetArchive(ArchiveFolder(Path(address)))
        raise ValueError("an empty text is no archive: name a folder or s3://bucket/folder")
    shown = address.partition("://")[0][:16] + "://…"
    try:
        parts = urlsplit(address)
    except ValueError:
        raise ValueError(f"{shown} is no address") from None
    if parts.scheme == "file" and not parts.netloc and len(parts.path) > 1:
        return ParquetArchive(ArchiveFolder(Path(unquote(parts.path))))
    plain = "@" not in parts.netloc and not parts.query and not parts.fragment
    # The place is named on record: credentials come from the environment.
    if parts.scheme == "s3" and parts.hostname and plain:
        from app.engines.archive.bucket import ArchiveBucket  # noqa: PLC0415 - not needed for a folder

        return ParquetArchive(ArchiveBucket(address))
    raise ValueError(f"{shown} is no archive: a folder, file:///folder or s3://bucket/folder")
