"""Connections to servers for one client each, so that a server's requests reach that client and no other."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.errors import ServiceError, UpstreamUnavailableError
from app.core.upstream import Hooks, UpstreamError
from app.services.forward.client_connection import Ask, ClientConnection, Notify, close_all
from app.services.forward.connection_pool import ConnectionPool
from app.services.servers.upstreams import UpstreamService
from app.upstream.connection import Connection

_CALLBACKS: Final = frozenset({"sampling", "elicitation", "roots"})
_WITHOUT_SESSIONS: Final = "2026-07-28"
"""The first revision in which servers ask through results, so that any connection serves."""


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

    def of_session(
        self, tenant: str, capabilities: Mapping[str, Any], ask: Ask, notify: Notify
    ) -> "SessionConnections":
        """Return the connections of a session: opened on first use, closed with the session."""
        return SessionConnections(self, tenant, callbacks_of(capabilities), ask, notify)

    def of_call(self, tenant: str, key_id: str, capabilities: Mapping[str, Any]) -> "CallConnections":
        """Return the connections for one call of the modern revision."""
        return CallConnections(self, tenant, key_id, callbacks_of(capabilities))

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
            link = self._links[server] = ClientConnection(server, self.ask, self.notify_client)
            link.start(connection, self.capabilities)
            if self.level is not None:
                await _set_level(link, self.level)
        return await link.request(method, params, hooks, timeout_s or connection.settings.timeout_s)

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
        links = list(self._links.values())
        self._links.clear()
        await close_all(links)


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


async def _set_level(link: ClientConnection, level: str) -> None:
    """Set the log level at a server; a server that refuses keeps its own."""
    with suppress(ServiceError, UpstreamError):
        opened = await link.opened()
        if not opened.modern and "logging" in opened.capabilities:
            await opened.request("logging/setLevel", {"level": level}, timeout_s=10)
