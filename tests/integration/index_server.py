"""A server of an index that speaks the real wire format and misbehaves where told to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from app.core.strictjson import loads

Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """What arrived: ``body`` is a list where it was newline-delimited."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


@dataclass
class IndexServer:
    """Subclasses answer; ``fault`` is what happens instead, to requests for whose path ``hits`` is true."""

    fault: Fault | None = None
    hits: Callable[[str], bool] = lambda _path: True
    url: str = ""
    seen: list[Seen] = field(default_factory=list)

    async def answer(self, seen: Seen) -> tuple[int, Any]:
        """Return a status and what is sent as JSON."""
        raise AssertionError(seen.path)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body: Any = None
        if request.content_type == "application/x-ndjson":
            assert raw.endswith(b"\n"), "a bulk request ends with a newline"
            body = [loads(line) for line in raw.splitlines()]
        elif raw:
            body = loads(raw)
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.method, request.path, dict(request.query), headers, body))
        if self.fault is not None and self.hits(request.path):
            return await self.fault(request)
        status, said = await self.answer(self.seen[-1])
        return web.json_response(said, status=status)


@asynccontextmanager
async def serving(server: IndexServer) -> AsyncIterator[None]:
    """Serve on a free loopback port."""
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield
    finally:
        await runner.cleanup()


def saying(body: bytes, status: int = 200, **headers: str) -> Fault:
    """Answer with these bytes."""

    async def say(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type="application/json", headers=headers)

    return say


async def hanging(_request: web.Request) -> web.StreamResponse:
    """Say nothing for longer than anybody waits."""
    await asyncio.sleep(60)
    return web.Response()


async def cutting(request: web.Request) -> web.StreamResponse:
    """Cut the connection in the middle of an answer."""
    response = web.StreamResponse(headers={"content-type": "application/json", "content-length": "1000"})
    await response.prepare(request)
    await response.write(b'{"took":')
    assert request.transport is not None
    request.transport.abort()
    return response


async def flooding(request: web.Request) -> web.StreamResponse:
    """Send spaces without end."""
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" " * 0x40000)
