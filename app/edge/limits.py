"""What the edge demands of a request before anything else looks at it: host, origin, type, size, time, JSON."""

import asyncio
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive

from app.core.errors import (
    DeadlineExceededError,
    ForbiddenError,
    InvalidRequestError,
    ServiceError,
    TooLargeError,
)
from app.core.strictjson import loads

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

PROBES: Final = frozenset({"/livez", "/readyz"})
"""Probes come under the address of the pod or host and tell nothing, so any Host may ask."""

_DECLARED: Final = "sluice_route_limits"
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_THREAD_FROM_BYTES: Final = 1024 * 1024
_LINGER_S: Final = 2.0
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^";\s]+)"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """What the edge lets in; a name without a port allows any port.

    ``stream_idle_s`` bounds the pause between two pieces of a streamed body, ``body_timeout_s`` the whole of any
    other body.
    """

    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    allowed_origins: tuple[str, ...] = ("http://127.0.0.1", "http://localhost", "http://[::1]")
    max_body_bytes: int = 8 * 1024 * 1024
    max_depth: int = 64
    body_timeout_s: float = 15
    stream_idle_s: float = 60


@dataclass(frozen=True, slots=True)
class RouteLimits:
    """What a route takes beside, or instead of, the one JSON value that the edge reads for every other route.

    A body of a type in ``streamed`` passes through piece by piece, counted and timed; ``json``: the route takes JSON as
    well, which the edge reads.
    """

    streamed: frozenset[str]
    json: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredLimits:
    """What the routes of an application declared, by the patterns of their paths."""

    by_path: tuple[tuple[re.Pattern[str], RouteLimits], ...] = ()

    @classmethod
    def of(cls, routes: Iterable[BaseRoute]) -> "DeclaredLimits":
        """Return what the endpoints of ``routes`` declare with ``takes``."""
        declared = (
            (route.path_regex, vars(route.endpoint).get(_DECLARED))
            for route in routes
            if isinstance(route, Route) and hasattr(route.endpoint, "__dict__")
        )
        return cls(tuple((pattern, limits) for pattern, limits in declared if limits is not None))

    def streamed_types(self, path: str, headers: "Headers") -> frozenset[str] | None:
        """Return the types of a body that passes through piece by piece; None where the edge reads it, as JSON."""
        for pattern, limits in self.by_path:
            if pattern.match(path) and (not limits.json or headers.media_type in limits.streamed):
                return limits.streamed
        return None


def takes(limits: RouteLimits) -> Callable[[Endpoint], Endpoint]:
    """Declare the limits of a route at its endpoint; stands below the decorator that makes the route."""

    def declare(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)[_DECLARED] = limits
        return endpoint

    return declare


class Refused(Exception):  # noqa: N818 - a signal from here to the guard, which answers it
    """The request goes no further; ``status`` is the exact HTTP status where the code's own is too coarse."""

    def __init__(self, error: ServiceError, status: int | None = None, *, linger: bool = False) -> None:
        super().__init__(error.code)
        self.error = error
        self.status = status
        self.linger = linger


class ClientGoneError(Exception):
    """The client closed the connection before its request was complete."""


class Headers:
    """The few headers that the edge looks at; one that must be single and is repeated counts as wrong."""

    _SINGLE = frozenset({b"host", b"content-type", b"content-length", b"content-encoding", b"origin"})

    def __init__(self, raw: list[tuple[bytes, bytes]]) -> None:
        self._values: dict[bytes, str] = {}
        for name, value in raw:
            if name in self._SINGLE and name in self._values:
                raise Refused(InvalidRequestError(f"The header {name.decode()} must not be repeated."))
            self._values[name] = value.decode("latin-1")

    def get(self, name: bytes) -> str:
        """Return the value of ``name`` (lower case), or an empty string."""
        return self._values.get(name, "")

    @property
    def media_type(self) -> str:
        """Return the content type in lower case, without its parameters."""
        return self.get(b"content-type").partition(";")[0].strip().lower()

    @property
    def content_length(self) -> int:
        """Return the announced length, 0 where none is announced."""
        length = self.get(b"content-length")
        if not length:
            return 0
        if not (length.isascii() and length.isdigit()):
            raise Refused(InvalidRequestError("The header content-length is not a number."))
        return int(length[:20])

    @property
    def announces_body(self) -> bool:
        """Return whether the client says that a body follows."""
        return self.content_length > 0 or bool(self.get(b"transfer-encoding"))


def check_origin(headers: Headers, path: str, limits: EdgeLimits) -> None:
    """Refuse foreign hosts and origins, which is how browsers are turned against local services."""
    if path not in PROBES and not _listed(headers.get(b"host").lower(), limits.allowed_hosts):
        raise Refused(
            InvalidRequestError("This Host is not served here; SLUICE_HTTP__ALLOWED_HOSTS lists the names."),
            HTTPStatus.MISDIRECTED_REQUEST,
        )
    origin = headers.get(b"origin").lower()
    if origin and not _listed(origin, limits.allowed_origins):
        raise Refused(
            ForbiddenError("This Origin may not call; SLUICE_HTTP__ALLOWED_ORIGINS lists those that may.")
        )


def check_type(headers: Headers, accepted: frozenset[str]) -> None:
    """Refuse encodings and media types that the route did not declare."""
    if headers.get(b"content-encoding").strip().lower() not in {"", "identity"}:
        raise Refused(
            InvalidRequestError("Send the body without a content encoding."),
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    charset = _CHARSET.search(headers.get(b"content-type"))
    if headers.media_type not in accepted or (charset and charset[1].lower() not in {"utf-8", "utf8"}):
        types = " or ".join(sorted(accepted))
        raise Refused(
            InvalidRequestError(f"Send {types} in UTF-8.", details={"accepted": sorted(accepted)}),
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )


async def read_json(receive: Receive, headers: Headers, limits: EdgeLimits) -> tuple[bytes, Any]:
    """Return the whole body and its JSON value; (b"", None) where there is no body."""
    if headers.content_length > limits.max_body_bytes:
        raise Refused(_too_large(limits), linger=not headers.get(b"expect"))
    accepted = frozenset({"application/json"})
    if headers.announces_body:
        check_type(headers, accepted)
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            body = await _whole(receive, limits)
    except TimeoutError:
        raise Refused(_too_slow(), HTTPStatus.REQUEST_TIMEOUT) from None
    if not body:
        return body, None
    check_type(headers, accepted)
    if len(body) > _THREAD_FROM_BYTES:
        return body, await asyncio.to_thread(loads, body, max_depth=limits.max_depth)
    return body, loads(body, max_depth=limits.max_depth)


def counted(receive: Receive, limits: EdgeLimits) -> Receive:
    """Return ``receive`` for a streamed body; it raises when the body grows too large or pauses too long."""
    total = 0

    async def next_piece() -> Message:
        nonlocal total
        try:
            async with asyncio.timeout(limits.stream_idle_s):
                message = await receive()
        except TimeoutError:
            raise _too_slow() from None
        total += len(message.get("body", b""))
        if total > limits.max_body_bytes:
            raise _too_large(limits)
        return message

    return next_piece


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives ``body`` once and then what the server has to say."""
    delivered = False

    async def again() -> Message:
        nonlocal delivered
        if delivered:
            return await receive()
        delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def linger(receive: Receive) -> None:
    """Take and drop what the client still sends, for a moment, so that it can read why it was refused."""
    try:
        async with asyncio.timeout(_LINGER_S):
            more = True
            while more:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
    except TimeoutError:
        return


def has_body(method: str) -> bool:
    """Return whether requests of ``method`` may carry a body that is looked at."""
    return method not in _BODILESS


async def _whole(receive: Receive, limits: EdgeLimits) -> bytes:
    chunks: list[bytes] = []
    total = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk = message.get("body", b"")
        total += len(chunk)
        if total > limits.max_body_bytes:
            raise Refused(_too_large(limits), linger=True)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _listed(value: str, allowed: tuple[str, ...]) -> bool:
    if not value:
        return False
    without_port = re.sub(r":\d{1,5}$", "", value)
    return any(name.lower() in (value, without_port) for name in allowed)


def _too_large(limits: EdgeLimits) -> TooLargeError:
    maximum = limits.max_body_bytes
    return TooLargeError(
        f"The body is larger than {maximum} bytes.", details={"limit": "body_bytes", "maximum": maximum}
    )


def _too_slow() -> DeadlineExceededError:
    return DeadlineExceededError("The body did not arrive in time.")
