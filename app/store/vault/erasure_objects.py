"""Note erasures in a bucket of S3, an object each, so that any host can repeat them on a restored database.

Objects cannot be appended to; one for each erasure is written once and never again, which fits object lock.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final
from uuid import UUID

import obstore
from obstore.exceptions import BaseError

from app.store.vault.mark_files import MarkUnreadableError
from app.store.vault.mark_objects import store_at

_AT_ONCE: Final = 16


class ErasureBucket:
    """The erasures that all hosts with this location have noted: ``erasures-HISTORY/ID.json``."""

    def __init__(self, location: str) -> None:
        """Take a location such as ``s3://bucket/folder``."""
        self.place = location
        self._store = store_at(location)

    def append(self, history: str | None, erasure: UUID, line: bytes) -> None:
        """Store an object, or raise OSError."""
        try:
            obstore.put(self._store, _name(history, erasure), line)
        except BaseError as error:
            # The words of the error may name credentials.
            raise OSError(type(error).__name__) from None

    def list_ids(self, history: str) -> set[UUID]:
        """Return the ids of what was noted of the database whose history is ``history``."""
        with self._explained():
            paths = [
                entry["path"]
                for batch in obstore.list(self._store, prefix=_folder(history))
                for entry in batch
            ]
        ids = (_id_in(path) for path in paths)
        return {each for each in ids if each is not None}

    def read(self, history: str, erasures: Iterable[UUID]) -> list[bytes]:
        """Return the lines of these erasures."""
        with self._explained(), ThreadPoolExecutor(_AT_ONCE) as threads:
            return list(threads.map(lambda erasure: self._get(_name(history, erasure)), erasures))

    def _get(self, name: str) -> bytes:
        return bytes(obstore.get(self._store, name).bytes())

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise MarkUnreadableError(
                f"The erasures in {self.place} cannot be read ({type(error).__name__}): check the bucket, AWS_REGION, "
                "AWS_ENDPOINT_URL and the credentials, which need GetObject, PutObject and ListBucket."
            ) from None


def _folder(history: str | None) -> str:
    return f"erasures-{history}"


def _name(history: str | None, erasure: UUID) -> str:
    return f"{_folder(history)}/{erasure}.json"


def _id_in(path: str) -> UUID | None:
    """Return the erasure that an object is of; None: it is something else."""
    try:
        return UUID(path.rpartition("/")[2].removesuffix(".json"))
    except ValueError:
        return None
