"""Connections for one client each: ended ones are not lent again, and an ended session opens none."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import DeadlineExceededError, UpstreamUnavailableError
from app.core.upstream import Hooks
from app.services.forward.client_connection import drop_notification, refuse_request
from app.services.forward.client_connections import SessionConnections
from app.services.forward.connection_pool import ConnectionPool

OWNER = ("acme", "key1")


class Link:
    """An open connection that answers with its own number; ``lost`` is set when the server goes away."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lost = asyncio.Event()

    async def request(self, method: str, *_arguments: Any, **_options: Any) -> dict[str, Any]:
        if method == "hang":
            await asyncio.Event().wait()
        return {"number": self.number}

    async def wait_closed(self) -> None:
        await self.lost.wait()


class Server:
    """A connection to a server that opens a numbered link each time."""

    name = "files"
    settings = SimpleNamespace(timeout_s=5.0)

    def __init__(self) -> None:
        self.links: list[Link] = []

    @asynccontextmanager
    async def dedicated(self, _capabilities: Mapping[str, Any], **_callbacks: Any) -> AsyncIterator[Link]:
        self.links.append(Link(len(self.links)))
        yield self.links[-1]


async def call(pool: ConnectionPool, server: Server, *, lost: bool = False) -> int:
    async with pool.taken(OWNER, server, {}) as link:
        answer = await link.request("tools/call", {}, Hooks(), 5)
        if lost:
            server.links[-1].lost.set()
            async with asyncio.timeout(5):
                while not link.ended:
                    await asyncio.sleep(0)
        return int(answer["number"])


async def test_a_connection_serves_the_next_call_unless_it_ended_meanwhile() -> None:
    pool, server = ConnectionPool(), Server()
    assert [await call(pool, server), await call(pool, server)] == [0, 0]
    assert await call(pool, server, lost=True) == 0
    assert [await call(pool, server), await call(pool, server)] == [1, 1]
    await pool.close()
    assert await call(pool, server) == 2, "a closed pool lends no connection that it closed"
    await pool.close()


async def test_an_ended_session_opens_no_connection() -> None:
    server = Server()
    connections = SimpleNamespace(connection=lambda _tenant, _name: server)
    session = SessionConnections(connections, "acme", {}, refuse_request, drop_notification)
    assert await session.request("files", "tools/call", {}, hooks=Hooks()) == {"number": 0}
    await session.close()
    with pytest.raises(UpstreamUnavailableError, match="session has ended"):
        await session.request("files", "tools/call", {}, hooks=Hooks())
    assert len(server.links) == 1


async def test_a_call_that_takes_too_long_names_its_server() -> None:
    pool = ConnectionPool()
    with pytest.raises(DeadlineExceededError) as late:
        async with pool.taken(OWNER, Server(), {}) as link:
            await link.request("hang", {}, Hooks(), 0.01)
    assert late.value.details == {"server": "files"}
    await pool.close()
