"""Connections to servers that are called with the tokens of users: each is of one user alone."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.access import Caller
from app.core.errors import NotFoundError, UpstreamUnavailableError
from app.core.upstream import Authorization, Hooks, OwnLinks
from app.services.forward.client_connections import callbacks_of
from app.services.forward.connection_pool import ConnectionPool
from app.services.forward.grant_asking import ask, confirm, for_server
from app.services.servers.upstreams import UpstreamService
from app.services.servers.user_grants import GrantMissingError, UserGrants
from app.upstream.connection import Connection


@dataclass(eq=False, slots=True)
class UserConnections:
    """Opens connections with users' tokens; one carries one call at a time, and then calls of the same token alone."""

    upstreams: UpstreamService
    grants: UserGrants
    pool: ConnectionPool = field(default_factory=ConnectionPool)

    async def links(self, caller: Caller, server: str, params: Mapping[str, Any], hooks: Hooks) -> OwnLinks:
        """Return the caller's own connections to a server, once there is a token for it.

        Raises ForbiddenError for a caller without a token of its own, and where its issuer gives none for the server;
        AskedFirstError or ConflictError where the caller has to grant something first.
        """
        connection = self.upstreams.connection(caller.tenant, server)
        if connection is None or self.upstreams.tokens is None:
            raise UpstreamUnavailableError(
                f"Server {server!r} is not served now.", details={"server": server}
            )
        auth = connection.settings.auth
        authorization: Authorization
        if auth is not None and auth.mode == "user_grant":
            authorization = self.grants.of_user(caller, server, connection.settings)
            try:
                await confirm(self.grants, caller, params)
                await authorization.token()
            except (GrantMissingError, NotFoundError):
                raise await ask(self.grants, caller, server, hooks) from None
        else:
            authorization = self.upstreams.tokens.of_user(caller, server, connection.settings)
            await authorization.token()
        return _UserLinks(self.pool, (caller.tenant, caller.key_id), connection, authorization)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.pool.close()
        await self.grants.tasks.close()


@dataclass(frozen=True, slots=True)
class _UserLinks:
    """The connections of one call; the ``OwnLinks`` of its hooks."""

    pool: ConnectionPool
    owner: tuple[str, str]
    connection: Connection
    authorization: Authorization = field(repr=False)

    async def request(
        self,
        _server: str,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        hooks: Hooks,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result, over a connection that nobody else's calls go over."""
        capabilities = callbacks_of(hooks.capabilities)
        limit_s = timeout_s or self.connection.settings.timeout_s
        async with self.pool.taken(self.owner, self.connection, capabilities, self.authorization) as link:
            return await link.request(method, for_server(params), hooks, limit_s)
