"""A plain HTTP client of /mcp for tests, the same calls on both revisions, seeing everything that comes back."""

import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from app.protocol.server import Mcp
from tests.protocol.mcp_harness import serving

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
REVISIONS = [HANDSHAKE, MODERN]
PREFIX = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{PREFIX}protocolVersion": MODERN,
    f"{PREFIX}clientInfo": {"name": "tests", "version": "1"},
    f"{PREFIX}clientCapabilities": {},
}
ACCEPT = "application/json, text/event-stream"


@dataclass
class Reply:
    """One HTTP answer: the final message and the notifications before it."""

    status: int
    headers: Any
    text: str
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def message(self) -> dict[str, Any]:
        return self.messages[-1]

    @property
    def result(self) -> Any:
        assert "result" in self.message, self.message
        return self.message["result"]

    @property
    def error(self) -> Any:
        return self.message["error"]

    @property
    def notifications(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if "id" not in message]

    @classmethod
    def of(cls, response: httpx2.Response) -> "Reply":
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            lines = [line[5:] for line in response.text.splitlines() if line.startswith("data:")]
            messages = [json.loads(line) for line in lines if line.strip()]
        else:
            messages = (
                [json.loads(response.text)] if kind.startswith("application/json") and response.text else []
            )
        return cls(response.status_code, response.headers, response.text, messages)


class Wire:
    """Calls methods on one revision; ``session`` is the handshake session's id."""

    def __init__(self, url: str, http: httpx2.AsyncClient, revision: str) -> None:
        self.url = url
        self.http = http
        self.revision = revision
        self.session: str | None = None
        self._ids = itertools.count(1)

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    def headers(self, method: str) -> dict[str, str]:
        headers = {"mcp-protocol-version": self.revision}
        if self.modern:
            headers["mcp-method"] = method
        elif self.session:
            headers["mcp-session-id"] = self.session
        return headers

    def body(self, method: str, params: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {**(ENVELOPE if self.modern else {}), **(meta or {})}
        params = {**params, **({"_meta": meta} if meta else {})}
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}

    async def call(
        self,
        method: str,
        meta: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        **params: Any,
    ) -> Reply:
        body = self.body(method, params, meta)
        return await self.post(body, {**self.headers(method), **(headers or {})})

    async def notify(self, method: str, **params: Any) -> Reply:
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        return await self.post(body, self.headers(method))

    async def post(self, body: Any, headers: dict[str, str] | None = None) -> Reply:
        return Reply.of(await self.http.post(self.url, json=body, headers=headers or {}))

    async def open(self, capabilities: dict[str, Any] | None = None, version: str = HANDSHAKE) -> Reply:
        """Do the handshake; the revision without one needs nothing."""
        body = {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": version,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "tests", "version": "1"},
            },
        }
        reply = await self.post(body)
        self.session = reply.headers.get("mcp-session-id")
        await self.notify("notifications/initialized")
        return reply

    async def invoke(self, *items: Any, name: str = "timestamp_injector", **options: Any) -> Reply:
        return await self.call("middleware/invoke", name=name, context=list(items), **options)


@contextlib.asynccontextmanager
async def client(url: str, revision: str, key: str | None = "alice") -> AsyncIterator[Wire]:
    """Yield a client of ``url``, after the handshake where there is one."""
    headers = {"accept": ACCEPT} | ({"authorization": f"Bearer {key}"} if key else {})
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        wire = Wire(url, http, revision)
        if not wire.modern and key:
            await wire.open()
        yield wire


@contextlib.asynccontextmanager
async def connected(mcp: Mcp, revision: str, key: str | None = "alice") -> AsyncIterator[Wire]:
    """Serve ``mcp`` and yield a client of it."""
    async with serving(mcp) as url, client(url, revision, key) as wire:
        yield wire
