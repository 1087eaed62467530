"""HTTP connections that close when a client does not finish its request line and headers in time."""

import asyncio
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD: Final = 64 * 1024


class TimedConnection(HttpToolsProtocol):
    """uvicorn's protocol with a time and a size limit on the head of each request.

    uvicorn itself waits without limit for an unfinished head: a few hundred sockets that send one byte a minute
    would block the service. ``header_timeout_s`` is set by ``protocol_with``.
    """

    header_timeout_s: float = 10.0

    def __init__(self, config: Config, server_state: Any, app_state: Any, _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._head_awaited = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer: a new connection must send a request."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._head_complete()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head that is not complete yet."""
        if self._head_awaited:
            self._head_bytes += len(data)
        super().data_received(data)
        if not self._head_awaited:
            return
        if self._head_timer is None:  # most heads come whole, and need none
            self._await_head()
        if self._head_bytes > LARGEST_HEAD:
            self._give_up()

    def on_message_begin(self) -> None:
        """Wait for the head of the next request on a kept-alive connection."""
        if not self._head_awaited:
            self._head_awaited, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop the timer; the body has a timer of its own."""
        self._head_complete()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.header_timeout_s, self._give_up)

    def _head_complete(self) -> None:
        self._head_awaited = False
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_complete()
        self.transport.close()


def protocol_with(header_timeout_s: float) -> type[TimedConnection]:
    """Return the protocol class with its time limit."""
    return type("SluiceConnection", (TimedConnection,), {"header_timeout_s": header_timeout_s})
