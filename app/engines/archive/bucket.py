"""A bucket of an archive: an object for each file, none is replaced.

Region, endpoint and credentials come from the environment, as for the tools of AWS; they need ListBucket, GetObject and
PutObject.
"""

from collections.abc import Sequence
from datetime import timedelta
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import ObjectStore

from app.core.archive import ArchiveError
from app.engines.buckets import bucket_at

_TIME_LIMIT: Final = timedelta(minutes=5)
"""For one request: a file has some tens of megabytes."""
_READ_BYTES: Final = 1024 * 1024
_SUFFIX: Final = ".parquet"


class ArchiveBucket:
    """Keeps objects under ``s3://bucket/folder``, in a folder for each tenant."""

    def __init__(self, location: str) -> None:
        """Take a location such as ``s3://bucket/folder``."""
        self.name = f"bucket {location}"
        self._store = bucket_at(location, _TIME_LIMIT)

    def names(self, tenant: str) -> Sequence[str]:
        """Return the names of a tenant's objects."""
        try:
            chunks = obstore.list(self._store, prefix=f"{tenant}/")
            paths = [str(item["path"]) for chunk in chunks for item in chunk]
        except (BaseError, OSError) as error:
            raise _refused(error) from None
        return sorted(path.rpartition("/")[2] for path in paths if path.endswith(_SUFFIX))

    def open(self, tenant: str, name: str) -> BinaryIO:
        """Open an object for reading; raises OSError."""
        path = f"{tenant}/{name}"
        try:
            size = obstore.head(self._store, path)["size"]
        except BaseError as error:
            raise OSError(str(type(error).__name__)) from None
        return cast("BinaryIO", BufferedReader(_StoredObject(self._store, path, size), _READ_BYTES))

    def keep(self, tenant: str, name: str, file: Path) -> None:
        """Store a file under a name that is free, in one request: it is there as a whole or not at all."""
        try:
            obstore.put(self._store, f"{tenant}/{name}", file, mode="create", use_multipart=False)
        except AlreadyExistsError:
            raise ArchiveError(f"The archive has {tenant}/{name} already, and replaces nothing.") from None
        except (BaseError, OSError) as error:
            raise _refused(error) from None


class _StoredObject(RawIOBase):
    """An object, read in ranges as they are asked for."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        self._store, self._path, self._size, self._at = store, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        self._at = offset + {SEEK_SET: 0, SEEK_CUR: self._at, SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        try:
            piece = bytes(obstore.get_range(self._store, self._path, start=self._at, end=end))
        except BaseError as error:
            raise OSError(str(type(error).__name__)) from None
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)


def _refused(error: Exception) -> ArchiveError:
    return ArchiveError(
        f"The archive's bucket does not answer as asked ({type(error).__name__}): check AWS_REGION, AWS_ENDPOINT_URL "
        "and the credentials, which need ListBucket, GetObject and PutObject."
    )
