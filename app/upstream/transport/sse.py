"""The legacy transport: one endless stream of events, whose first event names the address to post to."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp

from app.core.background import BackgroundTasks
from app.core.catalog.servers import MCPServerSettings
from app.upstream.transport.dialing import open_session
from app.upstream.transport.duplex import DuplexWire
from app.upstream.transport.event_stream import Events, Oversize, ServerSentEvent
from app.upstream.transport.faults import Faults
from app.upstream.transport.http import EVENTS, JSON, OK, WIRE_ERRORS, content_type, payload
from app.upstream.transport.live import LiveLink
from app.upstream.transport.options import LinkOptions, ServerLink

_PORTS: Final = {"http": 80, "https": 443}


@asynccontextmanager
async def open_sse(name: str, settings: MCPServerSettings, options: LinkOptions) -> AsyncIterator[ServerLink]:
    """Connect over the legacy transport, which only servers of the handshake revision speak."""
    faults, tasks = Faults(name), BackgroundTasks()
    url, maximum = settings.url or "", options.max_result_bytes
    plain = replace(options, revision="handshake")
    async with open_session(url, options, settings.headers) as session:
        channel = EventChannel(url, session, faults, maximum)
        try:
            async with faults.in_time(options.connect_timeout_s):
                await channel.open()
            wire = DuplexWire(channel, faults, maximum)
            link = LiveLink(wire, faults, plain, tasks, cancels_by_frame=True)
            wire.stray = link.stray
            tasks.start(wire.read())
            try:
                await link.agree()
                yield link
            finally:
                wire.close()
                await tasks.close()
        finally:
            await channel.close()


class EventChannel:
    """The channel of one event stream."""

    def __init__(self, url: str, session: aiohttp.ClientSession, faults: Faults, maximum: int) -> None:
        self._url = url
        self._session = session
        self._faults = faults
        self._maximum = maximum
        self._post_to = ""
        self._stream: aiohttp.ClientResponse | None = None
        self._events: AsyncGenerator[ServerSentEvent | Oversize, None] | None = None

    async def open(self) -> None:
        """Open the stream and read where to post; only the same origin is accepted, so that nothing goes elsewhere."""
        try:
            stream = await self._session.get(self._url, headers={"Accept": EVENTS}, allow_redirects=False)
            self._stream = stream
            if stream.status not in OK:
                raise self._faults.refused(stream.status)
            if content_type(stream) != EVENTS:
                raise self._faults.broken("is not a server of the legacy transport (type sse)")
            self._events = self._cut(stream)
            async for event in self._events:
                if isinstance(event, Oversize) or event.name != "endpoint":
                    break
                self._post_to = _same_origin(self._url, event.data.decode(errors="replace").strip())
                if self._post_to:
                    return
                break
        except WIRE_ERRORS as error:
            raise self._faults.unreachable(error) from None
        raise self._faults.broken("does not say where to post messages on its own address")

    async def write(self, body: bytes) -> None:
        """Post one message."""
        try:
            response = await self._session.post(
                self._post_to, data=payload(body), headers={"Content-Type": JSON}, allow_redirects=False
            )
        except WIRE_ERRORS as error:
            raise self._faults.unreachable(error) from None
        except RuntimeError:
            # The session was closed by its owner in the meantime.
            raise self._faults.gone() from None
        response.release()
        if response.status not in OK:
            raise self._faults.refused(response.status)

    async def read(self) -> AsyncIterator[bytes | Oversize]:
        """Yield messages until the stream ends."""
        if self._events is None:
            return
        try:
            async for event in self._events:
                if isinstance(event, Oversize):
                    yield event
                elif event.name == "message" and event.data:
                    yield event.data
        except WIRE_ERRORS:
            return

    async def close(self) -> None:
        """Close the stream."""
        if self._events is not None:
            await self._events.aclose()
        if self._stream is not None:
            self._stream.close()

    async def _cut(self, stream: aiohttp.ClientResponse) -> AsyncGenerator[ServerSentEvent | Oversize, None]:
        parser = Events(self._maximum)
        while chunk := await stream.content.readany():
            for event in parser.feed(chunk):
                yield event


def _same_origin(base: str, relative: str) -> str:
    """Return the absolute address of ``relative``, or "" where it is invalid or of another origin than ``base``."""
    try:
        address = urljoin(base, relative)
        return address if _origin(address) == _origin(base) else ""
    except ValueError:
        return ""


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
