"""The client of a bucket of S3 in which the record is kept: its checkpoints, or its events."""

import os
from datetime import timedelta
from typing import Final

from obstore.store import S3Store

_RETRIES: Final = 2


def bucket_at(location: str, time_limit: timedelta) -> S3Store:
    """Return the client of a location such as ``s3://bucket/folder``.

    Region, endpoint and credentials come from the environment, as for the tools of AWS.
    """
    bucket, _, prefix = location.removeprefix("s3://").partition("/")
    return S3Store(
        bucket,
        prefix=prefix.strip("/") or None,
        # Object lock takes no object without a checksum.
        checksum_algorithm="SHA256",
        client_options={
            "timeout": time_limit,
            "connect_timeout": time_limit,
            "allow_http": os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true",
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": time_limit},
    )
