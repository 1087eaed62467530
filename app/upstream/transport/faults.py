"""Errors about a server in our own words: the server's text stays out of messages and logs."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from traceback import clear_frames
from typing import Any, Final

import aiohttp

from app.core.errors import (
    DeadlineExceededError,
    ForbiddenError,
    InvalidRequestError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.offload import off_loop
from app.core.strictjson import loads

_CREDENTIALS: Final = frozenset({401, 403})
_REDIRECTS: Final = range(300, 400)


class Faults:
    """Makes the errors about one server."""

    def __init__(self, server: str) -> None:
        self._server = server

    def gone(self) -> UpstreamUnavailableError:
        """Return the error of a request on a connection that has ended."""
        return self._unavailable("is not connected; try again later")

    def broken(self, what: str = "gave an answer that is not valid MCP") -> UpstreamUnavailableError:
        """Return the error for an answer that cannot be read."""
        return self._unavailable(what)

    def unreachable(self, error: BaseException) -> UpstreamUnavailableError:
        """Return the error for a connection that failed; it depends on the kind of failure alone."""
        return self._unavailable(reason_of(error))

    def refused(self, status: int) -> UpstreamUnavailableError:
        """Return the error for an HTTP status that carries no answer."""
        if status in _CREDENTIALS:
            what = f"refuses the credentials in its headers (HTTP {status})"
        elif status in _REDIRECTS:
            what = f"redirects elsewhere (HTTP {status}); give its final address as url"
        else:
            what = f"answered with HTTP status {status}"
        return self._unavailable(what, status=status)

    def of_users(self) -> ForbiddenError:
        """Return the error for a call without a user's token to a server that takes those alone."""
        return ForbiddenError(
            f"Server {self._server!r} is called with the token of a user alone.",
            details={"server": self._server},
        )

    def late(self, timeout_s: float) -> DeadlineExceededError:
        """Return the error for an answer that did not end in time."""
        return DeadlineExceededError(
            f"Server {self._server!r} did not answer within {timeout_s:g} seconds.",
            details={"server": self._server},
        )

    def too_large(self, maximum: int) -> TooLargeError:
        """Return the error for an answer above the limit, whose rest is not read."""
        return TooLargeError(
            f"An answer of server {self._server!r} is larger than {maximum} bytes, "
            "the limit of SLUICE_UPSTREAMS__MAX_RESULT_BYTES.",
            details={"server": self._server, "limit": "max_result_bytes", "maximum": maximum},
        )

    @asynccontextmanager
    async def in_time(self, timeout_s: float) -> AsyncIterator[None]:
        """Raise DeadlineExceededError where the body takes longer than ``timeout_s``."""
        try:
            async with asyncio.timeout(timeout_s):
                yield
        except TimeoutError:
            raise self.late(timeout_s) from None

    async def parsed(self, body: bytes) -> dict[str, Any]:
        """Return ``body`` parsed as one JSON object, off the event loop where it is long."""
        message, too_deep = await off_loop(len(body), _read, body)
        if isinstance(message, dict):
            return message
        # Raise outside the handler and drop the locals first: a chained error or a traceback would keep the body
        # alive until the next garbage collection.
        del body, message
        if too_deep is not None:
            raise TooLargeError(
                f"An answer of server {self._server!r} nests too deep.",
                details={"server": self._server, **too_deep},
            )
        raise self.broken()

    def _unavailable(self, what: str, **details: Any) -> UpstreamUnavailableError:
        return UpstreamUnavailableError(
            f"Server {self._server!r} {what}.", details={"server": self._server, **details}
        )


_REASONS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "cannot be reached: its host name is not known"),
    (aiohttp.ClientConnectorCertificateError, "cannot be trusted: its certificate is not valid"),
    (aiohttp.ClientSSLError, "cannot be reached: it does not speak TLS"),
    (TimeoutError, "cannot be reached: the connection takes too long"),
    (aiohttp.ClientConnectorError, "cannot be reached: the connection is refused"),
    (aiohttp.ClientResponseError, "gave an answer that is not valid HTTP"),
    (aiohttp.ClientPayloadError, "broke off its answer"),
)
"""The first entry that matches applies, so more special kinds come first."""


def reason_of(error: BaseException) -> str:
    """Return in our words why a connection or an answer failed."""
    return next((what for kind, what in _REASONS if isinstance(error, kind)), "closed the connection")


def _read(body: bytes) -> tuple[Any, Mapping[str, Any] | None]:
    """Return the parsed ``body`` and None, or None and, where it nests too deep, the details of that."""
    try:
        return loads(body), None
    except (InvalidRequestError, TooLargeError) as error:
        # The inner error quotes the body, and its frames keep the body alive.
        clear_frames(error.__traceback__)
        error.__context__ = None
        return None, error.details if isinstance(error, TooLargeError) else None
