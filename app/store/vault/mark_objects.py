"""Keep the high-water mark of a database in a bucket of S3, where all hosts read it and none can lower it.

Each write names the state that it replaces (``If-Match``, ``If-None-Match``), so that of two hosts one is refused and
looks again. Region, endpoint and credentials come from the environment, as for the tools of AWS.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from app.store.vault.mark_files import HighWater, MarkUnreadableError, height_of, mark_of

SCHEME: Final = "s3://"
_ATTEMPTS: Final = 20
_TIME_LIMIT: Final = timedelta(seconds=5)
_CONNECT_LIMIT: Final = timedelta(seconds=2)
_RETRIES: Final = 2


class MarkBucket:
    """The marks of the databases that all hosts with this location serve, one object each.

    Its calls wait for the network: call them in a thread.
    """

    shared = True

    def __init__(self, location: str) -> None:
        """Take a location such as ``s3://bucket/folder``."""
        self.place = location
        self._store = store_at(location)

    def find(self, line: str) -> HighWater | None:
        """Return the mark of the database whose history is ``line``."""
        with self._explained():
            return self._read(_name(line))[0]

    def find_at(self, address: str) -> HighWater | None:
        """Return the mark of the database that was last found at ``address``: the highest, if there are several."""
        with self._explained():
            names = [entry["path"] for batch in obstore.list(self._store) for entry in batch]
            marks = [self._read(name)[0] for name in sorted(names) if _is_mark(name)]
        return max((mark for mark in marks if mark and mark.address == address), key=height_of, default=None)

    def raise_to(self, mark: HighWater) -> HighWater | None:
        """Store ``mark`` and return None, or return the stored mark where it has this step or a later one."""
        name, body = _name(mark.line), json.dumps(asdict(mark)).encode()
        with self._explained():
            for _ in range(_ATTEMPTS):
                stored, tag = self._read(name)
                if stored is not None and stored.step >= mark.step:
                    return stored
                try:
                    obstore.put(self._store, name, body, mode="create" if tag is None else {"e_tag": tag})
                except (AlreadyExistsError, PreconditionError):
                    continue  # another host was faster: its mark may be the higher one
                return None
        raise MarkUnreadableError(f"The mark in {self.place} changes all the time: try again.")

    def _read(self, name: str) -> tuple[HighWater | None, str | None]:
        """Return a mark, and the tag of the state that was read."""
        try:
            answer = obstore.get(self._store, name)
        except FileNotFoundError:
            return None, None
        return mark_of(bytes(answer.bytes()), f"{self.place.rstrip('/')}/{name}"), answer.meta["e_tag"]

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of the network and of S3 into one sentence without their words, which may name credentials."""
        try:
            yield
        except (BaseError, OSError) as error:
            raise MarkUnreadableError(
                f"The mark of the database in {self.place} cannot be read or written ({type(error).__name__}): check "
                "the bucket, AWS_REGION, AWS_ENDPOINT_URL and the credentials, which need GetObject, PutObject and "
                "ListBucket."
            ) from None


def store_at(location: str) -> S3Store:
    """Return the client of a location such as ``s3://bucket/folder``."""
    bucket, _, prefix = location.removeprefix(SCHEME).partition("/")
    return S3Store(
        bucket,
        prefix=prefix.strip("/") or None,
        # Object lock takes no object without a checksum.
        checksum_algorithm="SHA256",
        client_options={
            "timeout": _TIME_LIMIT,
            "connect_timeout": _CONNECT_LIMIT,
            # Options of the client given here replace those of the environment, this one among them.
            "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _TIME_LIMIT},
    )


def _name(line: str) -> str:
    return f"mark-{line}.json"


def _is_mark(name: str) -> bool:
    return "/" not in name and name.startswith("mark-") and name.endswith(".json")
