"""A bucket of S3: an object of JSON Lines for each batch, whose names sort in the order of delivery.

Region, endpoint and credentials come from the environment, as for the tools of AWS; they need PutObject.
"""

import asyncio
from datetime import timedelta
from typing import Final

import obstore
from obstore.exceptions import BaseError

from app.core.contracts.sinks import SinkBatch, SinkError
from app.engines.buckets import bucket_at

_TIME_LIMIT: Final = timedelta(seconds=15)
_DIGITS: Final = 12


class BucketSink:
    """Stores objects under ``s3://bucket/prefix``; a batch that comes again replaces its object."""

    def __init__(self, location: str) -> None:
        """Take a location such as ``s3://bucket/folder``."""
        self.name = f"bucket {location}"
        self._store = bucket_at(location, _TIME_LIMIT)

    async def deliver(self, batch: SinkBatch) -> int:
        """Store an object with a line for each event."""
        name = f"events-{batch.entry:0{_DIGITS}d}-{batch.position:0{_DIGITS}d}.jsonl"
        lines = b"".join(event.line + b"\n" for event in batch.events)
        try:
            await asyncio.to_thread(obstore.put, self._store, name, lines)
        except (BaseError, OSError) as error:
            raise SinkError(
                f"The bucket does not take it ({type(error).__name__}): check AWS_REGION, AWS_ENDPOINT_URL and the "
                "credentials, which need PutObject."
            ) from None
        return 0
