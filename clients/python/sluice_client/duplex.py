"""Streaming restoration: one HTTP/1.1 request whose answer is read while its body is still being sent.

httpx2 sends the whole body before it reads the first byte of the answer, which would hold back every restored
word until the model has ended. So this one request speaks HTTP/1.1 itself (h11), over asyncio.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from urllib.parse import urlsplit

import h11
import httpx2

from sluice_client.errors import ClientTimeoutError, ProtocolError, SluiceError, UnreachableError, error_of
from sluice_client.rest import problem
from sluice_client.results import Json
from sluice_client.wire import Options, WireAnswer, encoded, short

PATH = "/api/v1/middleware/pii_restoration/stream"
LINES_TYPE = "application/x-ndjson"
OK_STATUS = 200
HEARTBEAT_S = 10.0
READ_BYTES = 65_536
LONGEST_LINE = 16 * 1024 * 1024


async def restored_stream(
    options: Options, chunks: AsyncIterable[str], arguments: Mapping[str, Json]
) -> AsyncGenerator[str, None]:
    """Send ``chunks`` and yield what is restored, as it settles."""
    connection = await _Connection.open(options)
    sender = asyncio.create_task(connection.send_all(chunks, arguments))
    try:
        async for piece in connection.pieces(sender):
            yield piece
        await sender
    finally:
        sender.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await sender
        await connection.close()


class _Connection:
    """One connection for one request; the sending task and the reading generator share it."""

    def __init__(self, options: Options, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._options = options
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=READ_BYTES)

    @classmethod
    async def open(cls, options: Options) -> "_Connection":
        url = urlsplit(options.url)
        secure: ssl.SSLContext | None = None
        if url.scheme == "https":
            secure = options.trust or httpx2.create_ssl_context()
        port = url.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(options.connect_timeout):
                reader, writer = await asyncio.open_connection(url.hostname, port, ssl=secure)
        except (OSError, TimeoutError):
            raise UnreachableError(f"No service answers at {options.url}.", sent=False) from None
        return cls(options, reader, writer)

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def send_all(self, chunks: AsyncIterable[str], arguments: Mapping[str, Json]) -> None:
        """Send the head, then one line per chunk, then the end."""
        url = urlsplit(self._options.url)
        headers = [
            ("Host", url.netloc.rpartition("@")[2]),
            ("Content-Type", LINES_TYPE),
            ("Accept", LINES_TYPE),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            *self._options.headers.items(),
        ]
        target = f"{url.path}{PATH}"
        await self._send(h11.Request(method="POST", target=target, headers=headers))
        await self._line({"arguments": arguments})
        source = aiter(chunks)
        waiting: asyncio.Task[str | None] | None = None
        try:
            while True:
                waiting = waiting or asyncio.create_task(_next(source))
                await asyncio.wait({waiting}, timeout=HEARTBEAT_S)
                # A source that thinks for long is no dead connection: an empty text says so.
                chunk = waiting.result() if waiting.done() else ""
                if waiting.done():
                    waiting = None
                if chunk is None:
                    break
                await self._line({"text": chunk})
        finally:
            if waiting is not None:
                waiting.cancel()
        await self._send(h11.EndOfMessage())

    async def _line(self, value: Json) -> None:
        await self._send(h11.Data(data=encoded(value) + b"\n"))

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def pieces(self, sender: "asyncio.Task[None]") -> AsyncGenerator[str, None]:
        """Yield the texts of the answer; raise its error."""
        answer: WireAnswer | None = None
        body = _Records()
        while True:
            event = await self._event(sender)
            if isinstance(event, h11.Response):
                headers = {name.decode().lower(): value.decode("latin-1") for name, value in event.headers}
                answer = WireAnswer(event.status_code, headers, b"")
            elif isinstance(event, h11.Data) and answer is not None:
                if answer.status == OK_STATUS:
                    for piece in body.take(event.data):
                        yield piece
                else:
                    answer = WireAnswer(answer.status, answer.headers, answer.body + event.data)
            elif isinstance(event, h11.EndOfMessage) and answer is not None:
                error = problem(answer)
                if error is not None:
                    raise error
                if body.done:
                    return
                raise _lost()
            elif isinstance(event, h11.ConnectionClosed):
                raise _lost()

    async def _event(self, sender: "asyncio.Task[None]") -> object:
        """Return the next event of the answer; a fault of the sender counts once nothing more arrives."""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                raise ProtocolError("The answer is not HTTP: does Sluice listen at this address?") from None
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._received(sender))

    async def _received(self, sender: "asyncio.Task[None]") -> bytes:
        reading = asyncio.ensure_future(self._reader.read(READ_BYTES))
        try:
            while not reading.done():
                waiting = {reading} if sender.done() else {reading, sender}
                limit = self._options.timeout if sender.done() else None
                done, _ = await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    raise ClientTimeoutError(f"No answer came within {limit:g} s.", sent=True)
                _raise_fault(sender)
            return reading.result()
        except OSError:
            raise _lost() from None
        finally:
            reading.cancel()


async def _next(source: AsyncIterator[str]) -> str | None:
    return await anext(source, None)


def _raise_fault(sender: "asyncio.Task[None]") -> None:
    """Raise what the source of the chunks raised; a broken pipe waits for the service's own words."""
    if sender.done() and not sender.cancelled():
        fault = sender.exception()
        if fault is not None and not isinstance(fault, OSError | h11.LocalProtocolError):
            raise fault


class _Records:
    """The records of the answer, one a line; ``done`` once the service has said that all of them were sent."""

    def __init__(self) -> None:
        self.done = False
        self._rest = b""

    def take(self, data: bytes) -> list[str]:
        """Return the texts that ``data`` completes; raise the error that the service reports."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            raise ProtocolError("A line of the answer is too long.")
        return [text for line in lines if line and (text := self._text(line))]

    def _text(self, line: bytes) -> str:
        try:
            value = json.loads(line)
        except ValueError:
            raise ProtocolError("A line of the answer is not JSON.") from None
        error = value.get("error")
        if isinstance(error, Mapping):
            raise _stream_error(error)
        self.done = self.done or value.get("done") is True
        text = value.get("text", "")
        return text if isinstance(text, str) else ""


def _lost() -> UnreachableError:
    return UnreachableError("The connection was lost before the answer came.", sent=True)


def _stream_error(error: Mapping[str, Json]) -> SluiceError:
    return error_of(
        str(error.get("code") or "unknown"),
        short(error.get("detail") or error.get("message"), "The stream failed without an explanation."),
        request_id=error.get("request_id"),
    )
