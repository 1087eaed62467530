"""Servers in memory for tests of connections: what they offer, how they fail, and what they were asked."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from app.core.catalog.servers import MCPServerSettings
from app.core.errors import DeadlineExceededError, UpstreamUnavailableError
from app.core.upstream import NO_HOOKS, UpstreamError
from app.upstream.connection import AggregatorOptions, Connection

SETTINGS = MCPServerSettings(command="in memory")


class MemoryLink:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.modern = server.modern and options.revision == "auto"
        self.protocol_version = "2026-07-28" if self.modern else "2025-11-25"
        self.capabilities = server.capabilities
        self.server_info = {"name": server.name, "version": "1"}
        self.instructions = None
        self.gone = asyncio.Event()
        self.listening = []

    async def request(self, method, params=None, *, hooks=NO_HOOKS, timeout_s):
        self.server.requests.append((method, params))
        if self.gone.is_set():
            raise UpstreamUnavailableError("The connection is gone.")
        answer = self.server.answers.get(method)
        working = asyncio.create_task(self._answered(answer, method, params or {}))
        gone = asyncio.create_task(self.gone.wait())
        try:
            await asyncio.wait({working, gone}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if gone.done():
                raise UpstreamUnavailableError("The connection is gone.")
            raise DeadlineExceededError("The server took too long.")
        finally:
            working.cancel()
            gone.cancel()

    async def _answered(self, answer, method, params):
        if answer is None:
            raise UpstreamError(-32601, "secret words of the server")
        result = answer(params) if callable(answer) else answer
        if asyncio.iscoroutine(result):
            result = await result
        if isinstance(result, Exception):
            raise result
        return result

    async def notify(self, method, params=None):
        self.server.requests.append((method, params))

    async def listen(self, uris):
        self.listening = sorted(uris)
        self.server.requests.append(("listen", self.listening))

    async def wait_closed(self):
        await self.gone.wait()


class MemoryServer:
    """Answers by method: a result, an error, or a function (also async) of the parameters that gives one."""

    def __init__(self, name="alpha", *, tools=("get", "set"), modern=False, **answers: Any):
        self.name, self.modern = name, modern
        self.capabilities = {"tools": {}}
        self.answers = {
            "tools/list": lambda _: {"tools": [tool(one) for one in self.tools]},
            "tools/call": lambda params: {"content": [{"type": "text", "text": params["name"]}]},
            "ping": {},
            "server/discover": {},
        } | {method.replace("__", "/"): answer for method, answer in answers.items()}
        self.tools = list(tools)
        self.up = True
        self.opening = None
        self.requests = []
        self.links = []
        self.opened = self.left = 0

    @asynccontextmanager
    async def open(self, _name, _settings, options):
        self.opened += 1
        if self.opening is not None:
            await self.opening()
        if not self.up:
            raise UpstreamUnavailableError(f"Server {self.name!r} refused the connection.")
        link = MemoryLink(self, options)
        self.links.append(link)
        try:
            yield link
        finally:
            link.gone.set()
            self.links.remove(link)
            self.left += 1

    def close(self, *, up=False):
        """Drop every connection, and refuse new ones."""
        self.up = up
        for link in self.links:
            link.gone.set()

    def announce(self, method="notifications/tools/list_changed", params=None):
        for link in self.links:
            link.options.on_notification(method, params or {})

    def asked(self, method):
        return sum(1 for name, _ in self.requests if name == method)


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def options(*servers, **more):
    """Return options whose connections lead to these servers by name."""
    known = {server.name: server for server in servers}
    return AggregatorOptions(
        **{"connect_timeout_s": 2, "opener": lambda name, *rest: known[name].open(name, *rest), **more}
    )


@asynccontextmanager
async def connected(server, **more):
    connection = Connection(server.name, SETTINGS, options(server, **more))
    connection.start()
    try:
        await connection.settled()
        yield connection
    finally:
        await connection.stop()


async def until(condition, seconds=10):
    """Wait until ``condition()`` holds; the bound only catches hangs."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
