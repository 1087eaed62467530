"""Facts about one request that every surface knows, besides its caller and its content."""

from dataclasses import dataclass

from app.core.client_features import NO_FEATURES, ClientFeatures


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """Facts about one request, for records and time limits.

    ``request_id`` is our own, ``client_request_id`` what the caller sent, which only records repeat.
    ``address`` is the peer's IP address as text, None if there is none (the command line). ``deadline`` is a time of
    the event loop's clock (``loop.time()``), in seconds; ``math.inf`` means no limit. ``features`` are what the client
    can be asked for; servers may list more to it then.
    """

    request_id: str
    traceparent: str | None
    address: str | None
    deadline: float
    client_request_id: str | None = None
    features: ClientFeatures = NO_FEATURES
