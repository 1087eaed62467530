"""A raw MCP server over HTTP, handshake revision, that answers right or wrong as the called tool's name says.

In a test::

    with misbehaving() as server:                # a thread with an event loop of its own
        settings = MCPServerSettings(url=server.url)
        ...                                      # tools/call "hang", "drip", "huge", "garbage", "redirect", …
    with misbehaving(on={"initialize": hang}) as server:       # any method may misbehave, by its name
        ...
    with misbehaving(on={"tools/call:mine": sends(b"...")}) as server:

``server.requests`` holds the JSON bodies that came and ``server.heads`` the heads, ``server.hung_up`` counts answers
that the client did not read to the end. A behaviour is ``async def (exchange) -> None`` and may do anything with
``exchange.writer``; ``exchange.answer(result)`` is the right answer.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

SESSION = "session-1"
VERBATIM = (
    '{"content":[{"type":"text","text":"h\\u00e9","unknown":[1,{"a":null}]}],"futureField":{"x":1.50},'
    '"structuredContent":{"big":123456789012345678901234567890},"isError":false}'
)
"""A result with members that no revision knows and an integer of thirty digits."""


@dataclass
class Exchange:
    """One request and the way back."""

    body: dict[str, Any]
    writer: asyncio.StreamWriter
    server: "Misbehaving"

    async def send(
        self,
        status: int,
        body: bytes,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        lines = {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}
        self.head(status, lines)
        self.writer.write(body)
        await self.writer.drain()

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"HTTP/1.1 {status} X\r\n{text}\r\n".encode())

    async def answer(self, result: Any, **headers: str) -> None:
        message = {"jsonrpc": "2.0", "id": self.body.get("id"), "result": result}
        await self.send(200, json.dumps(message).encode(), headers=headers)

    async def error(self, code: int, words: str, status: int = 200) -> None:
        message = {"jsonrpc": "2.0", "id": self.body.get("id"), "error": {"code": code, "message": words}}
        await self.send(status, json.dumps(message).encode())

    async def raw_result(self, result: str) -> None:
        await self.send(200, f'{{"jsonrpc":"2.0","id":{self.body["id"]},"result":{result}}}'.encode())


Behaviour = Callable[[Exchange], Awaitable[None]]


@dataclass
class Misbehaving:
    on: dict[str, Behaviour]
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    hung_up: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def methods(self) -> list[str]:
        return [str(body.get("method")) for body in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                content = await reader.readexactly(int(fields.get("content-length", 0)))
                body = json.loads(content) if content else {"method": head.split(" ")[0]}
                self.heads.append(head)
                self.requests.append(body)
                await self.behaviour(body)(Exchange(body, writer, self))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def behaviour(self, body: dict[str, Any]) -> Behaviour:
        method = str(body.get("method"))
        name = str((body.get("params") or {}).get("name"))
        keys = (f"{method}:{name}", method, name)
        return next((self.on[key] for key in keys if key in self.on), method_not_found)


@contextmanager
def misbehaving(*, on: Mapping[str, Behaviour] | None = None, port: int = 0) -> Iterator[Misbehaving]:
    """Serve on loopback in a thread; ``on`` overrides behaviours by ``method``, ``method:name`` or tool name."""
    state = Misbehaving({**PROTOCOL, **TOOLS, **(on or {})})
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    starting = asyncio.start_server(state.serve, "127.0.0.1", port, reuse_address=True)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
    state.port = server.sockets[0].getsockname()[1]

    async def stop() -> None:
        server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        yield state
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def sends(raw: bytes) -> Behaviour:
    """Return a behaviour that writes these bytes, a head included, and closes."""

    async def behave(exchange: Exchange) -> None:
        exchange.writer.write(raw)
        await exchange.writer.drain()
        raise ConnectionError

    return behave


def sends_body(body: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> Behaviour:
    """Return a behaviour that answers with this body."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(status, body, kind, {k.replace("_", "-"): v for k, v in headers.items()})

    return behave


def streams(*events: str, end: bool = True) -> Behaviour:
    """Return a behaviour that sends these SSE events, ``{id}`` being the request's id, and ends or stays silent."""

    async def behave(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        for event in events:
            exchange.writer.write(event.replace("{id}", json.dumps(exchange.body.get("id"))).encode())
            await exchange.writer.drain()
        if not end:
            await asyncio.sleep(3600)
        raise ConnectionError

    return behave


def after(pause_s: float, behaviour: Behaviour) -> Behaviour:
    """Return a behaviour that waits before it does the same as another."""

    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(pause_s)
        await behaviour(exchange)

    return behave


async def hang(exchange: Exchange) -> None:
    await asyncio.sleep(3600)


async def cut(exchange: Exchange) -> None:
    raise ConnectionError


async def drip(exchange: Exchange) -> None:
    """Answer one byte at a time, for ever."""
    exchange.head(200, {"Content-Type": "application/json", "Content-Length": "1000000"})
    with contextlib.suppress(ConnectionError):
        while True:
            exchange.writer.write(b" ")
            await exchange.writer.drain()
            await asyncio.sleep(0.05)
    exchange.server.hung_up += 1
    raise ConnectionError


async def huge(exchange: Exchange) -> None:
    """Answer a gigabyte without saying so before."""
    exchange.head(200, {"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
    chunk = b"x" * 65536
    try:
        for _ in range(16384):
            exchange.writer.write(b"10000\r\n" + chunk + b"\r\n")
            await exchange.writer.drain()
    except ConnectionError:
        exchange.server.hung_up += 1
        raise


async def huge_stream(exchange: Exchange) -> None:
    """Answer a gigabyte as one event."""
    exchange.head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
    exchange.writer.write(b"data: ")
    try:
        for _ in range(16384):
            exchange.writer.write(b"x" * 65536)
            await exchange.writer.drain()
    except ConnectionError:
        exchange.server.hung_up += 1
        raise


async def method_not_found(exchange: Exchange) -> None:
    if "id" not in exchange.body:
        await exchange.send(202 if "jsonrpc" in exchange.body else 405, b"")
    else:
        await exchange.error(-32601, "Method not found")


async def initialize(exchange: Exchange) -> None:
    await exchange.answer(
        {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}, "futureCapability": {"a": 1}},
            "serverInfo": {"name": "misbehaving", "version": "0", "futureMember": True},
        },
        **{"Mcp-Session-Id": SESSION},
    )


async def list_tools(exchange: Exchange) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}, "futureMember": [1]} for name in sorted(TOOLS)]
    await exchange.answer({"tools": tools})


async def verbatim(exchange: Exchange) -> None:
    await exchange.raw_result(VERBATIM)


async def wrong_id(exchange: Exchange) -> None:
    exchange.body["id"] = "another"
    await exchange.answer({"content": []})


async def many_headers(exchange: Exchange) -> None:
    await exchange.answer({"content": []}, **{f"X-{n}": "x" * 4000 for n in range(4000)})


async def many_short_headers(exchange: Exchange) -> None:
    await exchange.answer({"content": []}, **{f"X-{n}": "x" for n in range(100_000)})


PROTOCOL: dict[str, Behaviour] = {
    "initialize": initialize,
    "tools/list": list_tools,
    "DELETE": sends_body(b""),
}
TOOLS: dict[str, Behaviour] = {
    "verbatim": verbatim,
    "hang": hang,
    "cut": cut,
    "drip": drip,
    "huge": huge,
    "huge_stream": huge_stream,
    "wrong_id": wrong_id,
    "many_headers": many_headers,
    "many_short_headers": many_short_headers,
    "garbage": sends_body(b"\x00\xff not json {"),
    "no_http": sends(b"220 mail.example ESMTP\r\n\r\n"),
    "nan": sends_body(b'{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}'),
    "array": sends_body(b"[1,2]"),
    "text": sends_body(b"<html>hello</html>", "text/html"),
    "fault": sends_body(b"Traceback (most recent call last): secret", "text/plain", 500),
    "denied": sends_body(b"{}", status=401),
    "lost": sends_body(b"", status=404),
    "accepted": sends_body(b"", status=202),
    "redirect": sends_body(b"", status=307, Location="http://127.0.0.1:9/elsewhere"),
    "zipped": sends_body(b"\x1f\x8b\x08", Content_Encoding="gzip"),
    "silent_stream": streams(": hello\n\n", end=False),
    "broken_stream": streams("id: 7\ndata: {}\n\n", "data: {broken"),
}
