"""Streams of every door over real HTTP, each read to its end by a plain socket: who is let go, and when."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
from aiohttp import web

from tests.protocol.mcp_wire import ACCEPT, ENVELOPE, HANDSHAKE, MODERN
from tests.upstreams.scripted import slow

LIVE = "/console/overview/live?mark=0"
CHAT = {"model": "gpt-5-mini", "stream": True, "messages": [{"role": "user", "content": "Count."}]}
RESTORE = "/api/v1/middleware/pii_restoration/stream"
PLAIN = {"accept": ACCEPT, "content-type": "application/json"}


async def counting(request: web.Request, _value: Any) -> web.StreamResponse:
    """Answer a streamed chat with numbers, as long as somebody reads."""
    answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await answer.prepare(request)
    number = 0
    while True:
        number += 1
        choice = {"index": 0, "delta": {"content": f" {number}"}, "finish_reason": None}
        chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
        await answer.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await asyncio.sleep(0.05)


async def works(context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Tell of progress, as a tool of the scripted server, and then work for a minute."""
    await context.session.report_progress(1.0, 60.0, "began")
    return await slow(context, arguments)


@dataclass
class Opened:
    """One answer that is read as it comes; ``ended`` is when it was over, by the monotonic clock."""

    seen: bytearray = field(default_factory=bytearray)
    ended: float | None = None
    reading: "asyncio.Task[None] | None" = None
    writer: asyncio.StreamWriter | None = None

    @property
    def status(self) -> int:
        return int(self.seen.split(b" ", 2)[1]) if self.seen.count(b" ") > 1 else 0

    @property
    def is_whole(self) -> bool:
        """Return whether the answer ended as HTTP says, and was not cut."""
        return self.seen.endswith(b"0\r\n\r\n")

    async def until(self, wanted: bytes, seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while wanted not in self.seen:
            assert self.ended is None and time.monotonic() < until, bytes(self.seen)
            await asyncio.sleep(0.01)

    async def over(self, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while self.ended is None:
                await asyncio.sleep(0.01)

    def close(self) -> None:
        assert self.reading is not None and self.writer is not None
        self.reading.cancel()
        self.writer.close()

    async def send(self, record: Any) -> None:
        """Send one more record of a body in chunks."""
        assert self.writer is not None
        line = json.dumps(record).encode() + b"\n"
        self.writer.write(b"%x\r\n%s\r\n" % (len(line), line))
        await self.writer.drain()


async def opened(
    url: str, method: str, path: str, headers: Mapping[str, str], body: Any = None, *, chunked: bool = False
) -> Opened:
    """Send a request over a connection of its own, and read on until the answer has ended."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    content = b"" if body is None else json.dumps(body).encode()
    sent = {"host": place.netloc, **headers}
    sent |= {"transfer-encoding": "chunked"} if chunked else {"content-length": str(len(content))}
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content)
    await writer.drain()
    answer = Opened(writer=writer)

    async def read() -> None:
        while not answer.is_whole and (piece := await reader.read(65536)):
            answer.seen += piece
        answer.ended = time.monotonic()

    answer.reading = asyncio.create_task(read())
    return answer


class Doors:
    """Opens a stream at each door of the service at ``url``, for one token or session of the console."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def chat(self, token: str) -> Opened:
        headers = {**_bearer(token), "content-type": "application/json"}
        answer = await opened(self.url, "POST", "/openai/v1/chat/completions", headers, CHAT)
        await answer.until(b'" 3"', 120)  # the first one loads the detector
        return answer

    async def restoring(self, token: str) -> Opened:
        headers = {**_bearer(token), "content-type": "application/x-ndjson"}
        answer = await opened(self.url, "POST", RESTORE, headers, chunked=True)
        await answer.send({"arguments": {"redactions": {"PERSON_1": "Jane Smith"}}})
        await answer.send({"text": "Dear [PERSON_1], "})
        await answer.until(b"Jane Smith")
        return answer

    async def session(self, token: str) -> Opened:
        """Open the stream of a session of the handshake revision."""
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, timeout=30) as http:
            begun = await http.post("/mcp", json=message, headers={**PLAIN, **_bearer(token)})
        headers = {**_bearer(token), "accept": "text/event-stream", "mcp-protocol-version": HANDSHAKE}
        headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        answer = await opened(self.url, "GET", "/mcp", headers)
        await answer.until(b": open")
        return answer

    async def listening(self, token: str) -> Opened:
        """Open a subscription of the modern revision."""
        answer = await self._asked(
            token, "subscriptions/listen", {"notifications": {"groupsListChanged": True}}
        )
        await answer.until(b"acknowledged")
        return answer

    async def working(self, token: str) -> Opened:
        """Call a tool that takes a minute, and follow its progress."""
        params = {"name": "alpha__works", "arguments": {}}
        answer = await self._asked(token, "tools/call", params, {"progressToken": "p"})
        await answer.until(b"notifications/progress")
        return answer

    async def waiting(self, token: str) -> Opened:
        """Call the same tool without following it: the answer comes whole, or not at all."""
        return await self._asked(token, "tools/call", {"name": "alpha__slow", "arguments": {"seconds": 60}})

    async def live(self, session: str) -> Opened:
        """Follow a page of the console."""
        answer = await opened(self.url, "GET", LIVE, {"cookie": session, "accept": "text/event-stream"})
        await answer.until(b"retry:")
        return answer

    async def _asked(
        self, token: str, method: str, params: Mapping[str, Any], meta: Mapping[str, Any] | None = None
    ) -> Opened:
        headers = {**PLAIN, **_bearer(token), "mcp-protocol-version": MODERN, "mcp-method": method}
        if "name" in params:
            headers["mcp-name"] = params["name"]
        sent = {**params, "_meta": {**ENVELOPE, **(meta or {})}}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}
        return await opened(self.url, "POST", "/mcp", headers, body)


@asynccontextmanager
async def streams_of(doors: Doors, token: str, session: str | None) -> AsyncIterator[dict[str, Opened]]:
    """Open one stream at each door; all are closed at the end."""
    names = ("chat", "restoring", "session", "listening", "working", "waiting")
    found = dict(
        zip(names, await asyncio.gather(*(getattr(doors, name)(token) for name in names)), strict=True)
    )
    if session is not None:
        found["live"] = await doors.live(session)
    try:
        yield found
    finally:
        for answer in found.values():
            answer.close()


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
