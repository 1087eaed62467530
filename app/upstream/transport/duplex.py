"""Requests over one stream in each direction (stdio, legacy SSE): messages are sorted by their own fields."""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Final, Protocol

from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from app.core.errors import ServiceError
from app.upstream.transport.event_stream import HEAD_BYTES, Oversize
from app.upstream.transport.faults import Faults
from app.upstream.transport.wire import LOG, PROGRESS, Message, is_answer

_MAX_UNREAD: Final = 256
"""Most notifications that wait for a slow client; further ones are dropped, answers never."""

_NUMBER: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')


class MessageChannel(Protocol):
    """Carries whole messages in both directions."""

    async def write(self, body: bytes) -> None:
        """Send one message; raises UpstreamUnavailableError."""

    def read(self) -> AsyncIterator[bytes | Oversize]:
        """Yield messages until the other side is gone."""


class DuplexWire:
    """Sorts the messages of one channel by request; ``stray`` receives what belongs to no request."""

    def __init__(self, channel: MessageChannel, faults: Faults, maximum: int) -> None:
        self.closed = asyncio.Event()
        self.stray: Callable[[Message], None] = lambda _: None
        self._channel = channel
        self._faults = faults
        self._maximum = maximum
        self._open: dict[int, _Inbox] = {}

    def agreed(self, version: str, *, modern: bool) -> None:
        """Do nothing: both revisions look alike here."""

    async def messages(
        self,
        number: int,
        body: bytes,
        headers: Mapping[str, str],  # noqa: ARG002 - a channel has none
        *,
        streaming: bool = False,
    ) -> AsyncGenerator[Message, None]:
        """Send a request and yield the messages that belong to it, its answer last."""
        inbox = self._open[number] = _Inbox(streaming=streaming)
        try:
            await self._channel.write(body)
            while not self.closed.is_set() or inbox.filled:
                message = await inbox.next()
                yield message
                if is_answer(message, number):
                    return
            raise self._faults.gone()
        finally:
            del self._open[number]

    async def send(self, body: bytes, headers: Mapping[str, str]) -> None:  # noqa: ARG002 - a channel has none
        """Send a message that has no answer."""
        await self._channel.write(body)

    async def read(self) -> None:
        """Read until the other side is gone, then fail the requests that are still open."""
        try:
            async for item in self._channel.read():
                if isinstance(item, Oversize):
                    self._fail(item.head, self._faults.too_large(self._maximum))
                    continue
                try:
                    message = await self._faults.parsed(item)
                except ServiceError as error:
                    # Servers also print other text to standard output; only a broken answer names a request.
                    self._fail(item[:HEAD_BYTES] + item[-HEAD_BYTES:], error)
                else:
                    self._sort(message)
        finally:
            self.close()

    def close(self) -> None:
        """End the connection, and fail all open requests."""
        self.closed.set()
        for inbox in self._open.values():
            inbox.fail(self._faults.gone())

    def _fail(self, text: bytes, error: ServiceError) -> None:
        named = _NUMBER.search(text)
        inbox = self._open.get(int(named[1])) if named else None
        if inbox is not None:
            inbox.fail(error)

    def _sort(self, message: Message) -> None:
        number, method, params = message.get("id"), message.get("method"), message.get("params")
        if method is None:
            if isinstance(number, int) and number in self._open:
                self._open[number].answer(message)
        elif method == PROGRESS:
            self._note(params.get("progressToken") if isinstance(params, dict) else None, message)
        elif number is not None or method == LOG:
            # Nothing names the request that this belongs to; where only one is open, it is that one.
            waiting = [inbox for inbox in self._open.values() if not inbox.streaming]
            if len(waiting) == 1:
                waiting[0].note(message)
            elif number is not None:
                self.stray(message)
        elif (stream := _stream_of(params)) is not None:
            self._note(stream, message)
        else:
            self.stray(message)

    def _note(self, number: object, message: Message) -> None:
        """Queue a notification for the request that it names; some servers send the number as a string."""
        text = str(number)
        inbox = self._open.get(int(text)) if text.isdecimal() and len(text) < _DIGITS else None
        if inbox is not None:
            inbox.note(message)


_DIGITS: Final = 19


def _stream_of(params: object) -> object:
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION_ID_META_KEY) if isinstance(meta, dict) else None


class _Inbox:
    """Messages that arrived for one request and are not read yet."""

    def __init__(self, *, streaming: bool) -> None:
        self.streaming = streaming
        self._messages: deque[Message | ServiceError] = deque()
        self._filled = asyncio.Event()

    @property
    def filled(self) -> bool:
        return bool(self._messages)

    def note(self, message: Message) -> None:
        """Queue a notification or question, unless too many wait."""
        if len(self._messages) < _MAX_UNREAD:
            self.answer(message)

    def answer(self, message: Message) -> None:
        """Queue the answer."""
        self._messages.append(message)
        self._filled.set()

    def fail(self, error: ServiceError) -> None:
        """Queue an error instead of the answer."""
        self._messages.append(error)
        self._filled.set()

    async def next(self) -> Message:
        """Return the oldest message, or wait for one; raises a queued error."""
        while not self._messages:
            self._filled.clear()
            await self._filled.wait()
        message = self._messages.popleft()
        if isinstance(message, ServiceError):
            raise message
        return message
