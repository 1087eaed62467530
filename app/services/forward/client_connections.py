"""Connections to servers for one client each, so that a server's requests reach that client and no other."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from app.core.background import BackgroundTasks
from app.core.client_features import ClientFeatures, client_features
from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.upstream import Hooks, UpstreamError
from app.services.forward.client_connection import Ask, ClientConnection, Notify, close_all
from app.services.forward.connection_pool import ConnectionPool, digest_of
from app.services.servers.upstreams import UpstreamService
from app.upstream.connection import Connection

_CALLBACKS: Final = frozenset({"sampling", "elicitation", "roots"})
_WITHOUT_SESSIONS: Final = "2026-07-28"
"""The first revision in which servers ask through results, so that any connection serves."""

_REOPEN_S: Final = 1.0
_UNFOLLOW_S: Final = 10.0

UpdateListener = Callable[[str, str, Mapping[str, Any], Hashable], None]
"""Called with (tenant, server, params, source) of an update that a server reported on a client's own connection."""


def callbacks_of(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capabilities of a client that let servers send it requests."""
    return {name: value for name, value in capabilities.items() if name in _CALLBACKS}


@dataclass(eq=False, slots=True)
class ClientConnections:
    """Opens connections for clients that can answer requests; servers of the modern revision need none.

    A client with a session has one connection to each server. A client of the modern revision has no session:
    for it, connections are kept by caller, server and capabilities, and each carries one call at a time, so that a
    server's request clearly belongs to that call.
    """

    upstreams: UpstreamService
    pool: ConnectionPool = field(default_factory=ConnectionPool)
    _listeners: list[UpdateListener] = field(default_factory=list)

    def subscribe_updates(self, listener: UpdateListener) -> None:
        """Call ``listener`` with each update of a resource that a server reports on a client's own connection."""
        self._listeners.append(listener)

    def updated(self, tenant: str, source: Hashable, server: str, params: Mapping[str, Any]) -> None:
        """Pass on an update of a resource."""
        for listener in list(self._listeners):
            listener(tenant, server, params, source)

    def of_session(
        self, tenant: str, capabilities: Mapping[str, Any], ask: Ask, notify: Notify
    ) -> "SessionConnections":
        """Return the connections of a session: opened on first use, closed with the session."""
        return SessionConnections(self, tenant, callbacks_of(capabilities), ask, notify)

    def of_call(self, tenant: str, key_id: str, capabilities: Mapping[str, Any]) -> "CallConnections":
        """Return the connections for one call of the modern revision."""
        return CallConnections(self, tenant, key_id, callbacks_of(capabilities))

    def of_stream(self, tenant: str, key_id: str, capabilities: Mapping[str, Any]) -> "StreamConnections":
        """Return the connections for one stream of the modern revision, which follows resources."""
        return StreamConnections(self, tenant, key_id, callbacks_of(capabilities))

    def serves(self, tenant: str) -> bool:
        """Return whether a tenant has servers in this process; without servers, nothing asks its clients."""
        aggregator = self.upstreams.aggregator(tenant)
        return aggregator is not None and bool(aggregator.connections)

    def connection(self, tenant: str, server: str) -> Connection:
        """Return the tenant's shared connection to a server."""
        aggregator = self.upstreams.aggregator(tenant)
        connection: Connection | None = aggregator.connections.get(server) if aggregator is not None else None
        if connection is None:
            raise UpstreamUnavailableError(f"Server {server!r} is not served now.")
        return connection

    async def close(self) -> None:
        """Close the connections that no session owns."""
        await self.pool.close()


@dataclass(eq=False, slots=True)
class SessionConnections:
    """The connections of one session, one to each server that it uses; the ``OwnLinks`` of its hooks."""

    dedicated: ClientConnections
    tenant: str
    capabilities: Mapping[str, Any]
    ask: Ask
    notify_client: Notify
    level: str | None = None
    closed: bool = False
    _links: dict[str, ClientConnection] = field(default_factory=dict)
    _followed: dict[str, set[str]] = field(default_factory=dict)
    _reopening: BackgroundTasks = field(default_factory=BackgroundTasks)

    @property
    def source(self) -> Hashable:
        """Return what identifies the updates of this session."""
        return id(self)

    @property
    def features(self) -> ClientFeatures:
        """Return what the client can be asked for."""
        return client_features(self.capabilities)

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
        link = await self._connected(connection)
        return await link.request(method, params, hooks, timeout_s or connection.settings.timeout_s)

    async def follow(self, server: str, uri: str) -> bool:
        """Subscribe over the session's own connection, where the server knows what the session did."""
        connection = self.dedicated.connection(self.tenant, server)
        link = await self._connected(connection)
        await link.follow(uri, connection.settings.timeout_s)
        self._followed.setdefault(server, set()).add(uri)
        return True

    async def unfollow(self, server: str, uri: str) -> None:
        """End such a subscription."""
        self._followed.get(server, set()).discard(uri)
        link = self._links.get(server)
        if link is not None and not self.closed:
            await link.unfollow(uri, _UNFOLLOW_S)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification to every server that the session is connected to."""
        for link in list(self._links.values()):
            if not link.ended:
                await (await link.opened()).notify(method, params)

    async def set_level(self, level: str) -> None:
        """Set the client's log level at every server, also at those that are connected later."""
        self.level = level
        for link in list(self._links.values()):
            if not link.ended:
                await _set_level(link, level)

    async def close(self) -> None:
        """Close all connections of the session."""
        self.closed = True
        await self._reopening.close()
        links = list(self._links.values())
        self._links.clear()
        await close_all(links)

    async def _connected(self, connection: Connection) -> ClientConnection:
        """Return the session's connection to a server, a new one where it has none or lost it."""
        server = connection.name
        link = self._links.get(server)
        if link is not None and not link.ended:
            return link
        if self.closed:
            raise UpstreamUnavailableError("The session has ended.")
        updated = partial(self.dedicated.updated, self.tenant, self.source)
        link = self._links[server] = ClientConnection(server, self.ask, self.notify_client, updated)
        link.lost = partial(self._lost, server)
        link.start(connection, self.capabilities)
        if self.level is not None:
            await _set_level(link, self.level)
        for uri in sorted(self._followed.get(server, ())):
            with suppress(UpstreamError):
                await link.follow(uri, connection.settings.timeout_s)
        return link

    def _lost(self, server: str) -> None:
        if self._followed.get(server) and not self.closed:
            self._reopening.start(self._reopen(server))

    async def _reopen(self, server: str) -> None:
        """Connect again, so that updates go on; a further loss begins another such task."""
        await asyncio.sleep(_REOPEN_S)
        try:
            link = await self._connected(self.dedicated.connection(self.tenant, server))
            await link.opened()
        except (ServiceError, UpstreamError):
            # A connection that could not be opened was reported as lost, except where the server is not served now.
            if server not in self._links or not self._links[server].ended:
                self._lost(server)


@dataclass(frozen=True, slots=True)
class CallConnections:
    """The connections of one call of the modern revision; the ``OwnLinks`` of its hooks."""

    dedicated: ClientConnections
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
        """Return the server's raw result; older servers get a connection of this call's own, so that they can ask."""
        connection = self.dedicated.connection(self.tenant, server)
        await connection.settled()
        if (connection.status.protocol_version or "") >= _WITHOUT_SESSIONS:
            return await connection.request(method, params, hooks=hooks, timeout_s=timeout_s)
        owner = self.tenant, self.key_id
        async with self.dedicated.pool.taken(owner, connection, self.capabilities) as link:
            return await link.request(method, params, hooks, timeout_s or connection.settings.timeout_s)


@dataclass(frozen=True, slots=True)
class StreamConnections:
    """What one stream of the modern revision follows over connections that calls of the same client use."""

    dedicated: ClientConnections
    tenant: str
    key_id: str
    capabilities: Mapping[str, Any]

    @property
    def source(self) -> Hashable:
        """Return what identifies the updates for clients with this key and these capabilities."""
        return self.tenant, self.key_id, digest_of(self.capabilities)

    @property
    def features(self) -> ClientFeatures:
        """Return what the client can be asked for."""
        return client_features(self.capabilities)

    async def follow(self, server: str, uri: str) -> bool:
        """Subscribe where the calls of such clients go; a server without sessions is told on the shared connection."""
        connection = self.dedicated.connection(self.tenant, server)
        await connection.settled()
        if connection.modern:
            return False
        updated = partial(self.dedicated.updated, self.tenant, self.source)
        owner = self.tenant, self.key_id
        await self.dedicated.pool.follow(owner, connection, self.capabilities, uri, updated)
        return True

    async def unfollow(self, server: str, uri: str) -> None:
        """End such a subscription."""
        await self.dedicated.pool.unfollow((self.tenant, self.key_id), server, self.capabilities, uri)


async def _set_level(link: ClientConnection, level: str) -> None:
    """Set the log level at a server; a server that refuses keeps its own."""
    with suppress(ServiceError, UpstreamError):
        opened = await link.opened()
        if not opened.modern and "logging" in opened.capabilities:
            await opened.request("logging/setLevel", {"level": level}, timeout_s=10)
