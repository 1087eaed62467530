"""A model provider on loopback that answers as a test says, byte by byte."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Scripted:
    """A server that reads one request after the other and lets ``answer`` write what it likes."""

    answer: Callable[["Scripted", asyncio.StreamWriter], Awaitable[None]]
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {
                    name.lower(): value
                    for name, _, value in (line.partition(": ") for line in head[1:] if line)
                }
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append((head[0], headers, body))
                answering = asyncio.ensure_future(self.answer(self, writer))
                leaving = asyncio.ensure_future(reader.read(1))
                await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    self.ended.set()
                    answering.cancel()
                    return
                leaving.cancel()
                await asyncio.gather(leaving, return_exceptions=True)
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.ended.set()
        finally:
            writer.close()


@asynccontextmanager
async def scripted(answer: Any) -> AsyncIterator[Scripted]:
    script = Scripted(answer)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.port = server.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        script.go.set()
        server.close()


async def plain(script: Scripted, writer: asyncio.StreamWriter) -> None:
    body = b'{"ok": true}'
    writer.write(
        b"HTTP/1.1 201 Created\r\nX-Request-ID: r-1\r\nSet-Cookie: a=b\r\nContent-Length: %d\r\n\r\n"
        % len(body)
    )
    writer.write(body)


def responding(head: str, *parts: bytes, close: bool = False) -> Any:
    async def answer(_script: Scripted, writer: asyncio.StreamWriter) -> None:
        writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        for part in parts:
            writer.write(part)
        await writer.drain()
        if close:
            writer.close()

    return answer


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def listing(document: Any) -> Any:
    """Return an answer with a list of models."""
    body = json.dumps(document).encode()
    return responding(f"HTTP/1.1 200 OK\nContent-Length: {len(body)}", body)


@contextmanager
def in_background(answer: Any) -> Iterator[Scripted]:
    """Serve from a thread with a loop of its own, for tests whose callers are other processes."""
    ready, script = threading.Event(), Scripted(answer)

    async def serve() -> None:
        done.append(asyncio.get_running_loop())
        server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
        script.port = server.sockets[0].getsockname()[1]
        ready.set()
        async with server:
            await script.go.wait()

    done: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ready.wait(10)
    try:
        yield script
    finally:
        done[0].call_soon_threadsafe(script.go.set)
        thread.join()
