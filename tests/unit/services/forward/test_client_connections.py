"""Connections for one client each: ended ones are not lent again, and an ended session opens none."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import DeadlineExceededError, OverloadedError, UpstreamUnavailableError
from app.core.upstream import Hooks
from app.services.forward.client_connection import drop_notification
from app.services.forward.client_connections import SessionConnections
from app.services.forward.connection_pool import ConnectionPool
from app.upstream.session_connections import refuse_request

OWNER = ("acme", "key1")


class Link:
    """An open connection that answers with its own number; ``lost`` is set when the server goes away."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lost = asyncio.Event()
        self.modern = False
        self.followed: list[str] = []
        self.on_notification: Any = None
        self.on_request: Any = None

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **_options: Any
    ) -> dict[str, Any]:
        if method == "hang":
            await asyncio.Event().wait()
        if method == "ask":
            await self.on_request("elicitation/create", {})
        if method == "resources/subscribe":
            self.followed.append(str((params or {})["uri"]))
        if method == "resources/unsubscribe":
            self.followed.remove(str((params or {})["uri"]))
        return {"number": self.number}

    async def wait_closed(self) -> None:
        await self.lost.wait()


class Server:
    """A connection to a server that opens a numbered link each time."""

    name = "files"
    settings = SimpleNamespace(timeout_s=5.0)
    askable = SimpleNamespace(suspect=lambda: None)

    def __init__(self) -> None:
        self.links: list[Link] = []

    @asynccontextmanager
    async def dedicated(self, _capabilities: Mapping[str, Any], **callbacks: Any) -> AsyncIterator[Link]:
        self.links.append(Link(len(self.links)))
        vars(self.links[-1]).update(callbacks)
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
    connections = SimpleNamespace(connection=lambda _tenant, _name: server, updated=print)
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


async def test_what_streams_follow_stays_on_one_connection_which_carries_calls_first() -> None:
    pool, server, told = ConnectionPool(idle_s=0.01, most_of_one=2), Server(), []

    def updated(name: str, params: Mapping[str, Any]) -> None:
        told.append((name, params["uri"]))

    async with pool.taken(OWNER, server, {}):
        await pool.follow(OWNER, server, {}, "memo://one", updated)
    await pool.follow(OWNER, server, {}, "memo://one", updated)
    assert [link.followed for link in server.links] == [[], ["memo://one"]], (
        "subscribed once for both streams"
    )
    assert await call(pool, server) == 1
    server.links[1].on_notification("notifications/resources/updated", {"uri": "memo://one"})
    assert told == [("files", "memo://one")]
    await asyncio.sleep(0.1)
    assert await call(pool, server) == 1, "it does not end by idling, unlike the other one"

    await pool.unfollow(OWNER, "files", {}, "memo://one")
    assert server.links[1].followed == ["memo://one"]
    await pool.unfollow(OWNER, "files", {}, "memo://one")
    await asyncio.sleep(0.1)
    assert await call(pool, server) == 2, "without followers it ends like any other"
    await pool.close()


async def test_a_connection_that_is_followed_is_replaced_once_its_client_was_asked_or_its_server_is_gone() -> (
    None
):
    pool, server = ConnectionPool(reopen_s=0.01), Server()
    await pool.follow(OWNER, server, {}, "memo://one", print)
    async with pool.taken(OWNER, server, {}) as link:
        await link.request("ask", {}, Hooks(ask=answer), 5)
    await until(lambda: [link.followed for link in server.links[1:]] == [["memo://one"]])
    server.links[1].lost.set()
    await until(lambda: [link.followed for link in server.links[2:]] == [["memo://one"]])
    await pool.close()
    await asyncio.sleep(0.05)
    assert len(server.links) == 3, "a closed pool connects no more"


async def test_a_connection_that_is_followed_makes_no_room_for_calls() -> None:
    pool, server = ConnectionPool(most_of_one=1), Server()
    await pool.follow(OWNER, server, {}, "memo://one", print)
    with pytest.raises(OverloadedError):
        async with pool.taken(OWNER, server, {"sampling": {}}):
            pass
    await pool.close()


async def answer(_method: str, _params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {}


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)
