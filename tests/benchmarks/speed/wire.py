"""A loopback client that costs little: prepared bytes out, one answer in, over connections that stay open."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.benchmarks.speed.processes import Measured

MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(
    server: Measured, path: str, body: Any, headers: dict[str, str] | None = None, method: str = "POST"
) -> bytes:
    """Return the bytes of one request."""
    data = b"" if body is None else json.dumps(body).encode()
    every = {
        "Host": f"127.0.0.1:{server.port}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Content-Length": str(len(data)),
        **({"Authorization": f"Bearer {server.key}"} if server.key else {}),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data


def rest(server: Measured, name: str, context: list[Any], **arguments: Any) -> bytes:
    """Return an invocation over REST."""
    return request(server, f"/api/v1/middleware/{name}/invoke", {"arguments": arguments, "context": context})


def modern(server: Measured, name: str, context: list[Any], **arguments: Any) -> bytes:
    """Return an invocation over MCP in the revision without a handshake."""
    params = {"name": name, "arguments": arguments, "context": context, "_meta": ENVELOPE}
    body = {"jsonrpc": "2.0", "id": 1, "method": "middleware/invoke", "params": params}
    return request(
        server,
        "/mcp",
        body,
        {"MCP-Protocol-Version": MODERN, "Mcp-Method": "middleware/invoke", "Mcp-Name": name},
    )


def handshaken(server: Measured, session: str, name: str, context: list[Any], **arguments: Any) -> bytes:
    """Return an invocation over MCP in a session."""
    params = {"name": name, "arguments": arguments, "context": context}
    body = {"jsonrpc": "2.0", "id": 1, "method": "middleware/invoke", "params": params}
    return request(server, "/mcp", body, {"MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": session})


class Connection:
    """One open connection; ``send`` returns the answer's headers and body."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, server: Measured) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", server.port, limit=2**24))

    async def send(self, data: bytes) -> tuple[dict[str, str], bytes]:
        self._writer.write(data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        if status.split()[1] not in {"200", "201", "202"} or b'"error"' in body[:40]:
            raise RuntimeError(f"{status}: {body[:300]!r}")
        return headers, body

    def close(self) -> None:
        self._writer.close()


async def exchange(server: Measured, data: bytes) -> tuple[dict[str, str], bytes]:
    """Send one request over a connection of its own."""
    connection = await Connection.open(server)
    try:
        return await connection.send(data)
    finally:
        connection.close()


async def drive(server: Measured, requests: Sequence[bytes], clients: int) -> list[float]:
    """Send all requests over ``clients`` connections; return the seconds that each took."""
    waiting: Iterator[bytes] = iter(requests)
    took: list[float] = []

    async def client() -> None:
        connection = await Connection.open(server)
        for data in waiting:
            begin = time.perf_counter()
            await connection.send(data)
            took.append(time.perf_counter() - begin)
        connection.close()

    await asyncio.gather(*(client() for _ in range(clients)))
    return took


async def lift_limits(server: Measured) -> None:
    """Let the bench's tenant send as fast as it can."""
    limits = {"requests_per_second": 1e6, "burst": 10**6, "in_flight": 1000}
    await store_policy(server, {"limits": limits})


async def store_policy(server: Measured, policy: Mapping[str, Any]) -> None:
    """Replace the policy of the bench's tenant, whichever version it has."""
    _, stored = await exchange(server, request(server, "/api/v1/policies", None, method="GET"))
    path = f"/api/v1/policies?expected_version={json.loads(stored)['version']}"
    await exchange(server, request(server, path, policy, method="PUT"))


async def open_session(server: Measured) -> str:
    """Do the handshake and return the session's id."""
    params = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    headers, _ = await exchange(
        server, request(server, "/mcp", {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    )
    session = headers["mcp-session-id"]
    done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await exchange(
        server, request(server, "/mcp", done, {"MCP-Protocol-Version": HANDSHAKE, "Mcp-Session-Id": session})
    )
    return session
