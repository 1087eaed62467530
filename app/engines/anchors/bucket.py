"""A bucket of S3, one object for each checkpoint: with object lock, not even the owner of the account removes one.

Region, endpoint and credentials come from the environment, as for the tools of AWS; they need PutObject and GetObject.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from app.core.contracts.anchors import AnchorError, Submission
from app.core.transparency.notes import Checkpoint, Note, NoteError, Signature
from app.engines.buckets import bucket_at

_TIME_LIMIT: Final = timedelta(seconds=5)
_DIGITS: Final = 16
"""Digits of a size in an object's name, so that names sort as sizes do."""


class BucketAnchor:
    """Adds objects under ``s3://bucket/prefix``, and replaces none."""

    def __init__(self, location: str) -> None:
        """Take a location such as ``s3://bucket/folder``."""
        self.name = f"bucket {location}"
        self._store = bucket_at(location, _TIME_LIMIT)

    async def newest(self) -> Checkpoint | None:
        """Return None: listing all objects at each checkpoint would cost more and more."""
        return None

    async def keep(self, submission: Submission) -> Sequence[Signature]:
        """Store the checkpoint, unless one of its size is there: another one than this is refused."""
        await asyncio.to_thread(self._put, submission)
        return ()

    def _put(self, submission: Submission) -> None:
        log = hashlib.sha256(submission.checkpoint.origin.encode()).hexdigest()[:_DIGITS]
        name = f"{log}/{submission.checkpoint.size:0{_DIGITS}d}.txt"
        try:
            try:
                obstore.put(self._store, name, str(submission.note).encode(), mode="create")
            except AlreadyExistsError:
                stored = bytes(obstore.get(self._store, name).bytes())
                if _checkpoint_in(stored) != submission.checkpoint:
                    raise AnchorError(f"It keeps another checkpoint of that size in {name}.") from None
        except (BaseError, OSError) as error:
            raise AnchorError(
                f"The bucket does not take it ({type(error).__name__}): check AWS_REGION, AWS_ENDPOINT_URL and the "
                "credentials, which need PutObject and GetObject."
            ) from None


def _checkpoint_in(stored: bytes) -> Checkpoint | None:
    try:
        return Checkpoint.parse(Note.parse(stored.decode()).text)
    except (ValueError, NoteError):
        return None
