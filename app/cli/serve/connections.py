"""HTTP connections that close when a client does not finish its head in time, and send whole answers at once."""

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

LARGEST_HEAD: Final = 64 * 1024
_LENGTH: Final = b"content-length"
_FRAMING: Final = frozenset({b"connection", b"transfer-encoding"})
"""Headers that say something of the connection, which the server itself reads."""
_NAME_BYTES: Final = b"abcdefghijklmnopqrstuvwxyz0123456789-_"
_VALUE_BYTES: Final = b"\t" + bytes(code for code in range(0x20, 0x100) if code != 0x7F)  # noqa: PLR2004 - DEL


class Signal(asyncio.Event):
    """An `asyncio.Event` that takes room for who waits once somebody does: the queue of that one has 64 places."""

    def __init__(self) -> None:
        # Not the base's own, which makes the queue.
        self._is_set = False
        self._waiting: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        """Return whether nobody waits any longer."""
        return self._is_set

    def set(self) -> None:
        """Let all go on that wait."""
        self._is_set = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Let those wait that come from now on."""
        self._is_set = False

    async def wait(self) -> Literal[True]:
        """Return once it is set."""
        if not self._is_set:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting = (*self._waiting, waiter)
            try:
                await waiter
            finally:
                self._waiting = tuple(other for other in self._waiting if other is not waiter)
        return True


class Flow(FlowControl):
    """uvicorn's control of the flow of a connection, with a small event."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._is_writable_event = Signal()
        self._is_writable_event.set()


class PipelinedRequests:
    """The requests of a connection that wait for the answer before them: a queue, made once there is one."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        self._queue: deque[tuple[RequestResponseCycle, Any]] | None = None

    def __bool__(self) -> bool:
        return bool(self._queue)

    def appendleft(self, waiting: tuple[RequestResponseCycle, Any]) -> None:
        """Let a request wait."""
        if self._queue is None:
            self._queue = deque()
        self._queue.appendleft(waiting)

    def pop(self) -> tuple[RequestResponseCycle, Any]:
        """Return the request that has waited longest, of those that are there."""
        assert self._queue is not None  # noqa: S101 - who asks has looked whether one waits
        return self._queue.pop()


class TimedConnection(HttpToolsProtocol):
    """uvicorn's protocol with a time and a size limit on the head of each request.

    uvicorn itself waits without limit for an unfinished head: a few hundred sockets that send one byte a minute
    would block the service. ``header_timeout_s`` is set by ``protocol_with``.
    """

    # With these among its other attributes it would have too many for Python to keep their names once for all.
    __slots__ = ("_head_awaited", "_head_bytes", "_head_timer")

    header_timeout_s: float = 10.0

    def __init__(self, config: Config, server_state: Any, app_state: Any, _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.pipeline = PipelinedRequests()  # type: ignore[assignment]
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._head_awaited = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer: a new connection must send a request."""
        super().connection_made(transport)
        self.flow = Flow(transport)
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

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Serve a request; its answer goes out in one piece where it can."""
        signal = Signal()
        if cycle.message_event.is_set():  # its body came while it waited for the answer before it
            signal.set()
        cycle.message_event = signal
        super()._start_asgi_task(cycle, partial(_served, app, cycle))

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


class WholeAnswer:
    """Sends head and body of a whole answer at once: the server sends them apart, each by a call of the system.

    ``cycle`` is the server's side of one request. It sends all that is no whole answer, or has anything unusual.
    """

    __slots__ = ("_cycle", "_start")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Take one message of the application: a head whose body has a known length waits for its body."""
        start, cycle = self._start, self._cycle
        if start is None:
            if message["type"] == "http.response.start" and _has_length(message):
                self._start = message
                return
        else:
            self._start = None
            piece = _piece(cycle, start, message)
            if piece is not None:
                cycle.waiting_for_100_continue = False
                cycle.response_started = cycle.response_complete = True
                cycle.transport.write(piece)
                cycle.message_event.set()
                cycle.on_response()
                return
            await cycle.send(start)  # type: ignore[arg-type]
        await cycle.send(message)  # type: ignore[arg-type]


def _served(
    app: ASGIApp, cycle: RequestResponseCycle, scope: Scope, receive: Receive, _send: Send
) -> Coroutine[Any, Any, None]:
    served: Coroutine[Any, Any, None] = app(scope, receive, WholeAnswer(cycle).send)  # type: ignore[assignment]
    return served


def _has_length(start: Message) -> bool:
    return any(name == _LENGTH for name, _ in start.get("headers", ()))


def _piece(cycle: RequestResponseCycle, start: Message, message: Message) -> bytes | None:
    """Return the bytes of a whole answer, None where the server is to judge and send it by itself."""
    body: bytes = message.get("body", b"")
    if (
        message["type"] != "http.response.body"
        or message.get("more_body", False)
        or cycle.response_started
        or cycle.disconnected
        or cycle.flow.write_paused
        or not cycle.keep_alive
        or cycle.access_log
        or cycle.scope["method"] == "HEAD"
    ):
        return None
    names, values = zip(*cycle.default_headers, *start["headers"], strict=True)
    if (
        names.count(_LENGTH) != 1
        or not _FRAMING.isdisjoint(names)
        or b"".join(names).translate(None, _NAME_BYTES)
        or b"".join(values).translate(None, _VALUE_BYTES)
        or values[names.index(_LENGTH)] != b"%d" % len(body)
    ):
        return None
    lines = b"\r\n".join(map(b": ".join, zip(names, values, strict=True)))
    return b"%b%b\r\n\r\n%b" % (STATUS_LINE[start["status"]], lines, body)


def protocol_with(header_timeout_s: float) -> type[TimedConnection]:
    """Return the protocol class with its time limit."""
    return type("SluiceConnection", (TimedConnection,), {"header_timeout_s": header_timeout_s})
