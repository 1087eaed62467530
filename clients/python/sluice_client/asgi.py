"""An ASGI middleware: the application behind it sees handles, its callers see originals."""

import asyncio
import codecs
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, MutableMapping
from typing import Any

from sluice_client.asynchronous import AsyncSluice
from sluice_client.errors import SluiceError

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"
LARGEST_BODY = 16 * 1024 * 1024
FAILED = b'{"error": "The text could not be redacted, so nothing was done."}'


class SluiceMiddleware:
    """Redacts the JSON bodies of requests to ``paths`` and restores the answers, JSON or plain text.

    ``scope_of`` names the conversation of a request (an ASGI scope); it must not be a name that a caller may choose
    freely, else one caller reads another's originals. Plain text is restored while it arrives; JSON whole, with
    its texts in safe positions. An answer of any other type keeps its handles. A body of another type than JSON is
    refused (415), and where redaction fails the application is not called (502).
    """

    def __init__(
        self, app: App, *, sluice: AsyncSluice, paths: Collection[str], scope_of: Callable[[Scope], str]
    ) -> None:
        self._app = app
        self._sluice = sluice
        self._paths = paths
        self._scope_of = scope_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; what is not for ``paths`` passes untouched."""
        if scope["type"] != "http" or scope["path"] not in self._paths:
            await self._app(scope, receive, send)
            return
        body = await _body(receive)
        if body is None:
            await _refuse(send, 413)
            return
        name = self._scope_of(scope)
        if body:
            if _type(scope["headers"]) != JSON_TYPE:
                await _refuse(send, 415)
                return
            try:
                body = await self._redacted(body, name)
            except ValueError:
                await _refuse(send, 400)
                return
            except SluiceError:
                await _refuse(send, 502)
                return
        headers = [(key, value) for key, value in scope["headers"] if key != b"content-length"]
        inner = {**scope, "headers": [*headers, (b"content-length", str(len(body)).encode())]}
        answer = _Answer(self._sluice, name, send)
        try:
            await self._app(inner, _once(body, receive), answer.take)
        finally:
            await answer.end()

    async def _redacted(self, body: bytes, name: str) -> bytes:
        call = {"type": "tool_use", "id": "request", "name": "request", "input": {"body": json.loads(body)}}
        safe = await self._sluice.redact([call], scope=name)
        return json.dumps(safe.content[0]["input"]["body"], ensure_ascii=False).encode()


class _Answer:
    """The application's answer on its way: JSON is collected, plain text streams, anything else passes."""

    def __init__(self, sluice: AsyncSluice, name: str, send: Send) -> None:
        self._sluice = sluice
        self._name = name
        self._send = send
        self._start: Message = {}
        self._kind = ""
        self._parts: list[bytes] = []
        self._text: _Text | None = None

    async def take(self, message: Message) -> None:
        """Take a message of the application."""
        if message["type"] == "http.response.start":
            self._start, self._kind = message, _type(message.get("headers") or [])
            if self._kind not in {JSON_TYPE, TEXT_TYPE}:
                await self._send(message)
        elif message["type"] != "http.response.body" or self._kind not in {JSON_TYPE, TEXT_TYPE}:
            await self._send(message)
        elif self._kind == TEXT_TYPE:
            if self._text is None:
                await self._send(_without_length(self._start))
                self._text = _Text(self._sluice, self._name, self._send)
            await self._text.take(message)
        else:
            self._parts.append(message.get("body", b""))
            if not message.get("more_body"):
                await self._whole(b"".join(self._parts))

    async def _whole(self, body: bytes) -> None:
        if body:
            value = json.loads(body)
            texts = list(_texts(value))
            restored = iter((await self._sluice.restore(texts, scope=self._name)).content)
            body = json.dumps(_with(value, restored), ensure_ascii=False).encode()
        start = _without_length(self._start)
        start["headers"] = [*start["headers"], (b"content-length", str(len(body)).encode())]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": body})

    async def end(self) -> None:
        """End what the application left open."""
        if self._text is not None:
            await self._text.end()


class _Text:
    """A plain text, restored while it arrives."""

    def __init__(self, sluice: AsyncSluice, name: str, send: Send) -> None:
        self._send = send
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue(256)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._restored = sluice.restore_stream(self._fed(), scope=name)
        self._task = asyncio.create_task(self._pump())

    async def take(self, message: Message) -> None:
        """Take a piece; with the last one, wait until all of it was sent."""
        last = not message.get("more_body")
        await self._pieces.put(self._decoder.decode(message.get("body", b""), last))
        if last:
            await self._pieces.put(None)
            await self._task

    async def end(self) -> None:
        """End the restoration, whether or not the application ended its text."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await self._task
        await self._restored.aclose()

    async def _fed(self) -> AsyncGenerator[str, None]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def _pump(self) -> None:
        async for piece in self._restored:
            await self._send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body; None where it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _once(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _type(headers: Any) -> str:
    kinds = [value.decode("latin-1") for name, value in headers if name.lower() == b"content-type"]
    return kinds[0].partition(";")[0].strip().lower() if kinds else ""


def _without_length(start: Message) -> Message:
    headers = [
        (name, value) for name, value in start.get("headers") or [] if name.lower() != b"content-length"
    ]
    return {**start, "headers": headers}


async def _refuse(send: Send, status: int) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(FAILED)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": FAILED})


def _texts(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, in order; names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)


def _with(value: Any, texts: Iterator[Any]) -> Any:
    """Return ``value`` with its strings replaced by ``texts``, in order."""
    if isinstance(value, str):
        return next(texts)
    if isinstance(value, dict):
        return {name: _with(member, texts) for name, member in value.items()}
    if isinstance(value, list):
        return [_with(member, texts) for member in value]
    return value
