"""Get tokens for servers behind this one, as the settings of each say."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from app.core.catalog.server_auth import ServerAuth
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import UpstreamUnavailableError
from app.core.grants import ClientIdentity, GrantedToken, GrantFailedError, GrantSource, ProtectedServer
from app.core.strictjson import dumps
from app.core.upstream import Authorization
from app.services.caching import ShortMemory
from app.services.servers.token_cache import TokenCache, TokenKey

_DESCRIBED_S: Final = 300.0
_MOST_SERVERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class UpstreamTokens:
    """Tokens for the servers of all tenants; none of them leaves this process but to the server that it is for."""

    source: GrantSource
    cache: TokenCache = field(default_factory=TokenCache)
    described: ShortMemory[tuple[str, str], ProtectedServer] = field(
        default_factory=lambda: ShortMemory(ttl_s=_DESCRIBED_S, size=_MOST_SERVERS)
    )

    def own(self, tenant: str, server: str, settings: MCPServerSettings) -> Authorization | None:
        """Return the tokens with which this service itself calls a server, None where it sends none."""
        return OwnTokens(self, tenant, server, settings, settings.auth) if settings.auth is not None else None

    async def protected(self, settings: MCPServerSettings, auth: ServerAuth) -> ProtectedServer:
        """Return the resource and the scopes that tokens for a server are asked for, or raise GrantFailedError."""
        if auth.resource is not None:
            return ProtectedServer(auth.resource, auth.scopes or ())
        url = settings.url or ""
        server = await self.described.get(
            (url, auth.issuer), lambda _place: self.source.protected(url, auth.issuer)
        )
        assert server is not None  # noqa: S101 - what cannot be described is raised
        return server if auth.scopes is None else ProtectedServer(server.resource, auth.scopes)


@dataclass(frozen=True, slots=True)
class OwnTokens:
    """The tokens of this service itself for one server, by client credentials."""

    tokens: UpstreamTokens
    tenant: str
    server: str
    settings: MCPServerSettings = field(repr=False)
    auth: ServerAuth

    async def token(self) -> str:
        """Return a token that counts now, or raise UpstreamUnavailableError."""
        try:
            return await self._got()
        except GrantFailedError as error:
            raise UpstreamUnavailableError(
                f"There is no token for server {self.server!r}. Of its authorization server: {error}.",
                details={"server": self.server, "issuer": self.auth.issuer},
            ) from None

    async def renewed(self, refused: str) -> str | None:
        """Return another token in place of a refused one, None where the same comes again."""
        try:
            protected = await self.tokens.protected(self.settings, self.auth)
        except GrantFailedError:
            return None
        self.tokens.cache.refuse(self._key(protected), refused)
        token = await self.token()
        return token if token != refused else None

    async def _got(self) -> str:
        protected = await self.tokens.protected(self.settings, self.auth)
        return await self.tokens.cache.get(self._key(protected), lambda: self._granted(protected))

    def _key(self, protected: ProtectedServer) -> TokenKey:
        return TokenKey(
            tenant=self.tenant,
            holder="",
            server=self.server,
            issuer=self.auth.issuer,
            audience=protected.resource,
            scopes=protected.scopes,
            binding=binding_of(self.auth, self.settings.credentials),
        )

    async def _granted(self, protected: ProtectedServer) -> GrantedToken:
        form = {"grant_type": "client_credentials", **asked_for(protected)}
        return await self.tokens.source.granted(ClientIdentity.of(self.auth, self.settings.credentials), form)


def asked_for(protected: ProtectedServer) -> dict[str, str]:
    """Return the members of a token request that say what the token is for (RFC 8707)."""
    scope = {"scope": " ".join(protected.scopes)} if protected.scopes else {}
    return {"resource": protected.resource, **scope}


def binding_of(auth: ServerAuth, credentials: Mapping[str, str]) -> str:
    """Return a digest of how tokens are asked for, so that none outlives a change of that."""
    asked = {"auth": auth.model_dump(mode="json"), "credentials": dict(credentials)}
    return hashlib.sha256(dumps(asked)).hexdigest()
