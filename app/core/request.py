"""Facts about one request that every surface knows, besides its caller and its content."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from app.core.client_features import NO_FEATURES, ClientFeatures

# Long, and with a letter: what enters logs and records as an id must not be somebody's number or name.
_CLIENT_REQUEST_ID: Final = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_-]{16,64}")
CLIENT_REQUEST_ID_RULE: Final = "16 to 64 letters, digits, _ or -, at least one of them a letter"


def is_client_request_id(text: str) -> bool:
    """Return whether a client's own request id is one that logs and records may hold."""
    return _CLIENT_REQUEST_ID.fullmatch(text) is not None


def _goes_on() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """Facts about one request, for records and time limits.

    ``request_id`` is our own, ``client_request_id`` what the caller sent, which only records repeat.
    ``address`` is the peer's IP address as text, None if there is none (the command line). ``deadline`` is a time of
    the event loop's clock (``loop.time()``), in seconds; ``math.inf`` means no limit. ``features`` are what the client
    can be asked for; servers may list more to it then. ``is_cut`` says whether the service itself ends the request
    before it is done, because its credential counts no more.
    """

    request_id: str
    traceparent: str | None
    address: str | None
    deadline: float
    client_request_id: str | None = None
    features: ClientFeatures = NO_FEATURES
    is_cut: Callable[[], bool] = field(default=_goes_on, repr=False, compare=False)
