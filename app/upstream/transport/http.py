"""Streamable HTTP: one POST per request, answered by JSON or by a stream of events, every byte counted."""

import asyncio
import io
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from mcp_types import METHOD_NOT_FOUND

from app.core.background import BackgroundTasks
from app.core.errors import ServiceError, TooLargeError, UpstreamUnavailableError
from app.core.upstream import Authorization
from app.upstream.transport.event_stream import Events, Oversize
from app.upstream.transport.faults import Faults
from app.upstream.transport.pauses import Pauses
from app.upstream.transport.wire import COURTESY_S, Message, is_answer

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
WIRE_ERRORS: Final = (aiohttp.ClientError, OSError)
OK: Final = range(200, 300)
NOT_FOUND: Final = 404
_UNAUTHORIZED: Final = 401

_SESSION: Final = "Mcp-Session-Id"
_POSTED: Final = {"Content-Type": JSON, "Accept": f"{JSON}, {EVENTS}"}
_RESUMPTIONS: Final = 3
_STREAM_FACTOR: Final = 4
"""A whole stream may be this many times as large as an answer, so that messages beside the answer are bounded, too."""

_DRAIN_S: Final = 1.0
_CLIENT_FAULTS: Final = range(400, 500)
_COPIED_BYTES: Final = 1_000_000
"""Above this size aiohttp expects a body as a file, which it writes in pieces."""


class HTTPWire:
    """One server at one address; in the handshake revision, with the session that it assigned."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        faults: Faults,
        maximum: int,
        tasks: BackgroundTasks,
        authorization: Authorization | None = None,
    ) -> None:
        self.closed = asyncio.Event()
        self.session_id: str | None = None
        self._version: str | None = None
        self._offered: str | None = None
        self._url = url
        self._session = session
        self._faults = faults
        self._maximum = maximum
        self._tasks = tasks
        self._authorization = authorization

    def agreed(self, version: str, *, modern: bool) -> None:
        """Keep what later requests must send: the session that came with the answer to ``initialize``."""
        if not modern:
            self._version, self.session_id = version, self._offered

    async def messages(
        self, number: int, body: bytes, headers: Mapping[str, str], *, streaming: bool = False
    ) -> AsyncGenerator[Message, None]:
        """Send a request and yield the messages that belong to it, its answer last."""
        response = await self._sent("POST", {**_POSTED, **headers}, body)
        if response.status in OK and content_type(response) == EVENTS:
            async with aclosing(self._streamed(response, number, endless=streaming)) as messages:
                async for message in messages:
                    yield message
            return
        try:
            if response.status not in OK:
                message = await self._refusal(response, number)
            elif content_type(response) == JSON:
                message = await self._faults.parsed(await self._content(response))
                if not is_answer(message, number):
                    raise self._faults.broken()
            else:
                raise self._faults.broken()
        except WIRE_ERRORS as error:
            raise self._faults.unreachable(error) from None
        finally:
            response.release()
        yield message

    async def send(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no answer."""
        response = await self._sent("POST", {**_POSTED, **headers}, body)
        response.release()
        if response.status == NOT_FOUND and self.session_id is not None:
            self.closed.set()
        if response.status not in OK:
            raise self._faults.refused(response.status)

    async def stream(self, last_event: str | None) -> aiohttp.ClientResponse:
        """Open the stream for unrequested messages, or resume one that broke; the caller releases it."""
        headers = (
            {"Accept": EVENTS} if last_event is None else {"Accept": EVENTS, "Last-Event-ID": last_event}
        )
        return await self._sent("GET", self._versioned(headers), None)

    async def events(
        self, response: aiohttp.ClientResponse, *, endless: bool
    ) -> AsyncGenerator[tuple[Message | None, str | None, float | None], None]:
        """Yield each event of a stream as message (None: it has no data), id and advised pause."""
        parser = Events(self._maximum)
        left = self._maximum * _STREAM_FACTOR
        async for chunk in response.content.iter_any():
            left -= len(chunk)
            if left < 0 and not endless:
                raise self._faults.too_large(self._maximum)
            for event in parser.feed(chunk):
                if isinstance(event, Oversize):
                    raise self._faults.too_large(self._maximum)
                if event.name == "message":
                    message = await self._faults.parsed(event.data) if event.data else None
                    yield message, event.id, event.retry_s

    async def end(self) -> None:
        """Tell the server that the session is over."""
        if self.session_id is None or self.closed.is_set():
            return
        try:
            async with asyncio.timeout(COURTESY_S):
                (await self._sent("DELETE", self._versioned({}), None)).release()
        except (TimeoutError, ServiceError):
            return

    def _versioned(self, headers: dict[str, str]) -> dict[str, str]:
        return headers if self._version is None else {"MCP-Protocol-Version": self._version, **headers}

    async def _sent(self, method: str, headers: dict[str, str], body: bytes | None) -> aiohttp.ClientResponse:
        """Send a request and return the response, of which only the head is read.

        A request whose token is refused was not worked on: it goes once more, with another token.
        """
        if self._authorization is None:
            return await self._sent_once(method, headers, body)
        token = await self._authorization.token()
        response = await self._sent_once(method, _bearing(headers, token), body)
        if response.status != _UNAUTHORIZED:
            return response
        response.release()
        other = await self._authorization.renewed(token)
        if other is None:
            raise self._faults.refused(_UNAUTHORIZED)
        return await self._sent_once(method, _bearing(headers, other), body)

    async def _sent_once(
        self, method: str, headers: dict[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        if self.session_id is not None:
            headers[_SESSION] = self.session_id
        try:
            response = await self._session.request(
                method, self._url, data=payload(body), headers=headers, allow_redirects=False
            )
        except WIRE_ERRORS as error:
            if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
                self.closed.set()
            raise self._faults.unreachable(error) from None
        except RuntimeError:
            # The session was closed by its owner in the meantime.
            raise self._faults.gone() from None
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            response.close()
            raise self._faults.broken("compresses its answers although it is asked not to")
        self._offered = response.headers.get(_SESSION)
        return response

    async def _content(self, response: aiohttp.ClientResponse) -> bytes:
        if (response.content_length or 0) > self._maximum:
            raise self._faults.too_large(self._maximum)
        parts: list[bytes] = []
        left = self._maximum
        while part := await response.content.readany():
            left -= len(part)
            if left < 0:
                # The error's traceback keeps this frame alive until the next garbage collection.
                parts.clear()
                raise self._faults.too_large(self._maximum)
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _refusal(self, response: aiohttp.ClientResponse, number: int) -> Message:
        """Return the JSON-RPC error that came with an HTTP error, or raise for the status alone."""
        try:
            message = await self._faults.parsed(await self._content(response))
        except (UpstreamUnavailableError, TooLargeError):
            message = {}
        error = message.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        mine = is_answer(message, number)
        if response.status == NOT_FOUND and self.session_id is not None and code != METHOD_NOT_FOUND:
            self.closed.set()
            raise self._faults.broken("has forgotten the session, which is opened again")
        # Some servers answer an unknown session with status 400 and an error that names no request.
        if code is not None and (mine or (response.status in _CLIENT_FAULTS and self.session_id is None)):
            return {**message, "id": number}
        raise self._faults.refused(response.status)

    async def _streamed(
        self, response: aiohttp.ClientResponse, number: int, *, endless: bool
    ) -> AsyncGenerator[Message, None]:
        """Yield the messages of a request's stream; resume a stream that breaks where the server allows that."""
        place = _Place()
        answered = False
        while not answered:
            try:
                async with aclosing(self.events(response, endless=endless)) as events:
                    async for message, event_id, retry_s in events:
                        place.reached(event_id, retry_s)
                        if message is not None:
                            answered = is_answer(message, number)
                            yield message
                        if answered:
                            break
            except WIRE_ERRORS as error:
                if place.last_event is None:
                    raise self._faults.unreachable(error) from None
            finally:
                self._leave(response, to_its_end=answered)
            if not answered:
                response = await self._resumed(place)

    async def _resumed(self, place: "_Place") -> aiohttp.ClientResponse:
        """Return a response with the rest of a stream that broke before the answer."""
        while self._version is not None and place.last_event is not None and place.attempts < _RESUMPTIONS:
            place.attempts += 1
            await place.pauses.wait(place.advised_s)
            response = await self.stream(place.last_event)
            if response.status in OK and content_type(response) == EVENTS:
                return response
            response.release()
        raise self._faults.broken("broke off its answer")

    def _leave(self, response: aiohttp.ClientResponse, *, to_its_end: bool) -> None:
        """Release a stream; read one that has been answered to its end, so that its connection can be reused."""
        if to_its_end and not response.content.at_eof():
            reading = self._tasks.start(_drained(response))
            # Use a callback: a task that is cancelled before it starts runs no `finally`.
            reading.add_done_callback(lambda _: response.release())
        else:
            response.release()


@dataclass(slots=True)
class _Place:
    """The position in a stream that was read so far."""

    last_event: str | None = None
    advised_s: float | None = None
    attempts: int = 0
    pauses: Pauses = field(default_factory=Pauses)

    def reached(self, event_id: str | None, retry_s: float | None) -> None:
        self.attempts = 0
        if event_id is not None:
            self.last_event = event_id or None
        if retry_s is not None:
            self.advised_s = retry_s


def _bearing(headers: Mapping[str, str], token: str) -> dict[str, str]:
    return {**headers, "Authorization": f"Bearer {token}"}


def payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """Return the body in the form that aiohttp expects for its size."""
    return body if body is None or len(body) <= _COPIED_BYTES else io.BytesIO(body)


def content_type(response: aiohttp.ClientResponse) -> str:
    """Return the media type of an answer, without parameters."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def _drained(response: aiohttp.ClientResponse) -> None:
    with suppress(*WIRE_ERRORS):
        async with asyncio.timeout(_DRAIN_S):
            while await response.content.readany():
                pass
