"""Connections to servers that belong to one client, so that what a server asks reaches that client and no other."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from app.core.errors import DeadlineExceededError, OverloadedError, ServiceError, UpstreamUnavailableError
from app.core.strictjson import dumps
from app.core.upstream import Hooks, UpstreamError
from app.services.upstreams import UpstreamService
from app.upstream.connection import Connection
from app.upstream.options import Link

_CALLBACKS: Final = frozenset({"sampling", "elicitation", "roots"})
_TOLD: Final = frozenset(
    {"notifications/message", "notifications/progress", "notifications/elicitation/complete"}
)
_METHOD_NOT_FOUND: Final = -32601
_WITHOUT_SESSIONS: Final = "2026-07-28"
"""The first revision in which servers ask by results, for which any connection will do."""

_MOST_POOLED = 256
_IDLE_S = 60.0
_LONGEST_ASKING_S = 3600.0
"""What the time of a call may be extended by while its client is being asked."""


log = logging.getLogger("sluice.upstreams")

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
Tell = Callable[[str, Mapping[str, Any]], Awaitable[None]]


async def nobody(_method: str, _params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse: there is no client behind this."""
    raise UpstreamError(_METHOD_NOT_FOUND, "There is no client that could be asked this.")


async def unheard(_method: str, _params: Mapping[str, Any]) -> None:
    """Drop what belongs to no request: there is no stream for it."""


def callbacks_of(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a client's capabilities that lets servers ask it."""
    return {name: value for name, value in capabilities.items() if name in _CALLBACKS}


class _Call:
    """A request under way, whose time does not run while its client is being asked."""

    def __init__(self, hooks: Hooks, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._asking = 0
        self._left_s = 0.0
        self.ask: Ask | None = None
        if hooks.ask is not None:
            self.ask = self._pausing(hooks.ask)
        self.hooks = replace(hooks, ask=self.ask)

    def _pausing(self, ask: Ask) -> Ask:
        async def asked(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            loop = asyncio.get_running_loop()
            if not self._asking:
                self._left_s = (self._limit.when() or loop.time()) - loop.time()
                self._limit.reschedule(None)
            self._asking += 1
            try:
                return await ask(method, params)
            finally:
                self._asking -= 1
                if not self._asking and not self._limit.expired():
                    self._limit.reschedule(loop.time() + self._left_s)

        return asked


class OwnLink:
    """One connection of one client to one server; opened and closed by a task of its own.

    What the server says outside a request goes to the call that began last, as some transports do not say which
    one is meant, and where none runs to ``ask`` and ``tell``.
    """

    def __init__(self, server: str, ask: Ask, tell: Tell) -> None:
        self.server = server
        self._ask = ask
        self._tell = tell
        self._calls: list[_Call] = []
        self._stop = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()
        self._opened: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None
        self.expiry: asyncio.TimerHandle | None = None

    def start(self, connection: Connection, capabilities: Mapping[str, Any]) -> None:
        """Begin to connect."""
        self._task = asyncio.create_task(self._own(connection, capabilities), name=f"own link {self.server}")

    async def opened(self) -> Link:
        """Return the connection once it is there, or raise why it is not."""
        return await asyncio.shield(self._opened)

    @property
    def ended(self) -> bool:
        """Return whether it can no longer be used."""
        return self._task is None or self._task.done() or self._stop.is_set()

    async def request(
        self, method: str, params: Mapping[str, Any] | None, hooks: Hooks, timeout_s: float
    ) -> dict[str, Any]:
        """Return the server's raw result."""
        link = await self.opened()
        try:
            async with asyncio.timeout(timeout_s) as limit:
                call = _Call(hooks, limit)
                self._calls.append(call)
                try:
                    return await link.request(
                        method, params, hooks=call.hooks, timeout_s=timeout_s + _LONGEST_ASKING_S
                    )
                finally:
                    self._calls.remove(call)
        except TimeoutError:
            raise DeadlineExceededError(
                f"Server {self.server!r} did not answer within {timeout_s:g} seconds.",
                details={"server": self.server},
            ) from None

    async def close(self) -> None:
        """End it and wait until it has ended."""
        self._stop.set()
        if self.expiry is not None:
            self.expiry.cancel()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=5)
                self._task.cancel()

    async def _own(self, connection: Connection, capabilities: Mapping[str, Any]) -> None:
        try:
            async with connection.dedicated(
                capabilities, on_request=self._asked, on_notification=self._told
            ) as link:
                self._opened.set_result(link)
                ends = [asyncio.create_task(one) for one in (self._stop.wait(), link.wait_closed())]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for end in ends:
                        end.cancel()
        except Exception as error:  # noqa: BLE001 - goes to whoever waits for the link
            if not self._opened.done():
                self._opened.set_exception(error)
                self._opened.exception()  # nobody may be waiting any more
            else:
                log.info(
                    "a client's own connection to server %s ended: %s", self.server, type(error).__name__
                )
        finally:
            self._stop.set()
            if not self._opened.done():
                self._opened.cancel()

    async def _asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        for call in reversed(self._calls):
            if call.ask is not None:
                return await call.ask(method, params)
        return await self._ask(method, params)

    def _told(self, method: str, params: Mapping[str, Any]) -> None:
        if method not in _TOLD:
            return  # changes of lists and resources are heard on the connection that all share
        tell = (self._calls[-1].hooks.notify if self._calls else None) or self._tell
        task = asyncio.create_task(self._quietly(tell(method, params)))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _quietly(self, telling: Awaitable[None]) -> None:
        with suppress(ServiceError, UpstreamError):
            await telling


@dataclass(eq=False, slots=True)
class DedicatedLinks:
    """Opens connections for clients that can be asked; servers of the modern revision need none.

    A client with a session has one connection to each server. A client of the modern revision has none to rely on:
    for it, connections are kept by caller, server and capabilities, and each carries one call at a time, so that a
    server's question can be told to belong to that call.
    """

    upstreams: UpstreamService
    idle_s: float = _IDLE_S
    _idle: dict[tuple[str, str, str, str], list[OwnLink]] = field(default_factory=dict)
    _pooled: set[OwnLink] = field(default_factory=set)

    def of_session(
        self, tenant: str, capabilities: Mapping[str, Any], ask: Ask, tell: Tell
    ) -> "SessionLinks":
        """Return the connections of a session: opened when they are needed, closed with it."""
        return SessionLinks(self, tenant, callbacks_of(capabilities), ask, tell)

    def of_call(self, tenant: str, key_id: str, capabilities: Mapping[str, Any]) -> "CallLinks":
        """Return the connections for one call of the modern revision."""
        return CallLinks(self, tenant, key_id, callbacks_of(capabilities))

    def serves(self, tenant: str) -> bool:
        """Return whether a tenant has servers in this process: where it has none, nobody asks its clients."""
        aggregator = self.upstreams.aggregator(tenant)
        return aggregator is not None and bool(aggregator.connections)

    def connection(self, tenant: str, server: str) -> Connection:
        """Return the tenant's shared connection to a server."""
        aggregator = self.upstreams.aggregator(tenant)
        found: Connection | None = aggregator.connections.get(server) if aggregator is not None else None
        if found is None:
            raise UpstreamUnavailableError(f"Server {server!r} is not served now.")
        return found

    @asynccontextmanager
    async def taken(
        self, tenant: str, key_id: str, server: str, capabilities: Mapping[str, Any]
    ) -> AsyncIterator[OwnLink]:
        """Hold a connection alone while the body runs."""
        connection = self.connection(tenant, server)
        kind = hashlib.sha256(dumps(capabilities)).hexdigest()
        idle = self._idle.setdefault((tenant, key_id, server, kind), [])
        link = None
        while idle and link is None:
            link = idle.pop()
            if link.ended:
                link = None
        if link is None:
            if len(self._pooled) >= _MOST_POOLED:
                raise OverloadedError("No more connections to servers can be opened now.", retry_after_s=5.0)
            link = OwnLink(server, nobody, unheard)
            link.start(connection, capabilities)
        self._pooled.add(link)
        if link.expiry is not None:
            link.expiry.cancel()
        try:
            yield link
        except BaseException:
            # What the server still does for a call that failed or was given up must meet no other call.
            self._pooled.discard(link)
            await asyncio.shield(link.close())
            raise
        idle.append(link)
        link.expiry = asyncio.get_running_loop().call_later(self.idle_s, self._expire, idle, link)

    def _expire(self, idle: list[OwnLink], link: OwnLink) -> None:
        if link in idle:
            idle.remove(link)
            self._pooled.discard(link)
            task = asyncio.get_running_loop().create_task(link.close())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def close(self) -> None:
        """Close the connections that no session owns."""
        links = list(self._pooled)
        self._pooled.clear()
        self._idle.clear()
        await asyncio.gather(*(link.close() for link in links))


@dataclass(eq=False, slots=True)
class SessionLinks:
    """The connections of one session, one to each server that it uses; the ``OwnLinks`` of its hooks."""

    dedicated: DedicatedLinks
    tenant: str
    capabilities: Mapping[str, Any]
    ask: Ask
    tell: Tell
    level: str | None = None
    closed: bool = False
    _links: dict[str, OwnLink] = field(default_factory=dict)

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        hooks: Hooks,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result, over the session's own connection."""
        connection = self.dedicated.connection(self.tenant, server)
        link = self._links.get(server)
        if link is None or link.ended:
            if self.closed:
                raise UpstreamUnavailableError("The session has ended.")
            link = self._links[server] = OwnLink(server, self.ask, self.tell)
            link.start(connection, self.capabilities)
            if self.level is not None:
                await _level(link, self.level)
        return await link.request(method, params, hooks, timeout_s or connection.settings.timeout_s)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell every server that the session has a connection to."""
        for link in list(self._links.values()):
            if not link.ended:
                await (await link.opened()).notify(method, params)

    async def set_level(self, level: str) -> None:
        """Tell every server which logs the client wants, also those that are connected to later."""
        self.level = level
        for link in list(self._links.values()):
            if not link.ended:
                await _level(link, level)

    async def close(self) -> None:
        """Close all."""
        self.closed = True
        links = list(self._links.values())
        self._links.clear()
        await asyncio.gather(*(link.close() for link in links))


@dataclass(frozen=True, slots=True)
class CallLinks:
    """The connections of one call of the modern revision; the ``OwnLinks`` of its hooks."""

    dedicated: DedicatedLinks
    tenant: str
    key_id: str
    capabilities: Mapping[str, Any]

    async def request(
        self,
        server: str,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        hooks: Hooks,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result: over a connection of its own where only such a one can be asked over."""
        connection = self.dedicated.connection(self.tenant, server)
        await connection.settled()
        if (connection.status.protocol_version or "") >= _WITHOUT_SESSIONS:
            return await connection.request(method, params, hooks=hooks, timeout_s=timeout_s)
        async with self.dedicated.taken(self.tenant, self.key_id, server, self.capabilities) as link:
            return await link.request(method, params, hooks, timeout_s or connection.settings.timeout_s)


async def _level(link: OwnLink, level: str) -> None:
    """Ask for logs of a level; a server that refuses keeps its own."""
    with suppress(ServiceError, UpstreamError):
        opened = await link.opened()
        if not opened.modern and "logging" in opened.capabilities:
            await opened.request("logging/setLevel", {"level": level}, timeout_s=10)
