"""A server that speaks what engines elsewhere speak, byte by byte, and misbehaves where told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Serve = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    """What arrived."""

    line: str
    headers: dict[str, str]
    body: Any


@dataclass
class EngineServer:
    """One server; ``serve`` is what it does with the next request."""

    serve: Serve
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                line, *fields = head.strip().split("\r\n")
                headers = {
                    name.lower(): value.strip() for name, _, value in (f.partition(":") for f in fields)
                }
                body = await reader.readexactly(int(headers["content-length"]))
                self.requests.append(Request(line, headers, json.loads(body)))
                await self.serve(self.requests[-1], writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def engine_server(serve: Serve) -> AsyncIterator[EngineServer]:
    """Serve on a free loopback port."""
    server = EngineServer(serve)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in list(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)


def http(body: bytes, status: str = "200 OK", headers: str = "content-type: application/json") -> bytes:
    """Return a whole answer."""
    return f"HTTP/1.1 {status}\r\n{headers}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def answering(make: Callable[[Request], Any]) -> Serve:
    """Answer each request with the JSON that ``make`` makes of it."""

    async def serve(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(http(json.dumps(make(request)).encode()))

    return serve


def sending(data: bytes, *, cut: bool = False) -> Serve:
    """Answer each request with the same bytes; ``cut`` closes the connection after them."""

    async def serve(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if cut:
            await writer.drain()
            writer.close()

    return serve


async def hanging(_request: Request, _writer: asyncio.StreamWriter) -> None:
    """Say nothing for ever."""
    await asyncio.Event().wait()


async def dripping(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Send a right beginning, then a space now and then, so that no read ever times out."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{")
    while True:
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(b" ")


async def flooding(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Send spaces without end as fast as they are taken."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        await writer.drain()


async def resetting(_request: Request, writer: asyncio.StreamWriter) -> None:
    """Cut the connection without a word."""
    writer.transport.abort()


def chat(content: str) -> dict[str, Any]:
    """Return a chat completion that says ``content``."""
    return {
        "id": "c",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}],
    }
