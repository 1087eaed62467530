"""Open a connection over streamable HTTP, and read the messages that the server sends without a request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Final

from app.core.background import BackgroundTasks
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import ServiceError
from app.upstream.transport.dialing import open_session
from app.upstream.transport.faults import Faults
from app.upstream.transport.http import EVENTS, NOT_FOUND, OK, WIRE_ERRORS, HTTPWire, content_type
from app.upstream.transport.listening import suspect_lists
from app.upstream.transport.live import FIRST_STREAM_S, LiveLink
from app.upstream.transport.options import LinkOptions, ServerLink
from app.upstream.transport.pauses import Pauses
from app.upstream.transport.wire import Message

_SERVER_FAULTS: Final = range(500, 600)


@asynccontextmanager
async def open_http(
    name: str, settings: MCPServerSettings, options: LinkOptions
) -> AsyncIterator[ServerLink]:
    """Connect over streamable HTTP, in either revision."""
    faults, tasks = Faults(name), BackgroundTasks()
    url = settings.url or ""
    headers = settings.headers
    if options.authorization is not None:
        headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    async with open_session(url, options, headers) as session:
        wire = HTTPWire(url, session, faults, options.max_result_bytes, tasks, options.authorization)
        link = LiveLink(wire, faults, options, tasks, cancels_by_frame=False)
        try:
            await link.agree()
            if not link.modern:
                await _hear_session(link, wire, tasks)
            yield link
        finally:
            await tasks.close()
            await wire.end()
            wire.closed.set()


async def _hear_session(link: LiveLink, wire: HTTPWire, tasks: BackgroundTasks) -> None:
    """Start reading the messages that the server sends without a request, if it has a stream for them."""
    opened = asyncio.Event()

    def missed() -> None:
        suspect_lists(link.capabilities, link.notify_owner)

    tasks.start(_follow(wire, link.stray, missed, opened))
    try:
        async with asyncio.timeout(FIRST_STREAM_S):
            await opened.wait()
    except TimeoutError:
        # The lists are read now: what changes until the stream opens is missed, and `_follow` reports it.
        opened.set()


async def _follow(
    wire: HTTPWire, hear: Callable[[Message], None], missed: Callable[[], None], opened: asyncio.Event
) -> None:
    """Read the session's stream and open it again when it ends; a server without one is left alone."""
    pauses = Pauses()
    last_event: str | None = None
    advised_s: float | None = None
    while not wire.closed.is_set():
        try:
            response = await wire.stream(last_event)
            try:
                if response.status in OK and content_type(response) == EVENTS:
                    pauses.begun()
                    if opened.is_set() and last_event is None:
                        missed()
                    opened.set()
                    async with aclosing(wire.events(response, endless=True)) as events:
                        async for message, event_id, retry_s in events:
                            last_event, advised_s = event_id or last_event, retry_s or advised_s
                            if message is not None:
                                hear(message)
                elif response.status not in _SERVER_FAULTS:
                    if response.status == NOT_FOUND and wire.session_id is not None:
                        wire.closed.set()
                    return
            finally:
                response.release()
        except WIRE_ERRORS:
            pass
        except ServiceError:
            # Do not resume at an event that cannot be read.
            last_event = None
        finally:
            opened.set()
        await pauses.wait(advised_s)
