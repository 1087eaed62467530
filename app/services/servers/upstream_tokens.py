"""Get tokens for servers behind this one, as the settings of each say."""

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from app.core.access import Caller
from app.core.catalog.server_auth import ServerAuth
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import ForbiddenError, UpstreamUnavailableError
from app.core.grants import ClientIdentity, GrantedToken, GrantFailedError, GrantSource, ProtectedServer
from app.core.strictjson import dumps
from app.core.upstream import Authorization
from app.services.caching import ShortMemory
from app.services.servers.sealing import reached
from app.services.servers.token_cache import TokenCache, TokenKey

_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type"  # noqa: S105 - a name of RFC 8693
_ACCESS_TOKEN: Final = f"{_TOKEN_TYPE}:access_token"
_ID_JAG: Final = f"{_TOKEN_TYPE}:id-jag"
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name of RFC 8693
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_OF_CLIENT: Final = frozenset({"invalid_client", "unauthorized_client", "unsupported_grant_type"})
"""Refusals that concern this service, whoever calls."""

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
        """Return the tokens with which this service itself calls or lists a server, None where it sends none."""
        auth = settings.auth
        return (
            OwnTokens(self, tenant, server, settings, auth)
            if auth is not None and auth.lists_itself
            else None
        )

    def of_user(self, caller: Caller, server: str, settings: MCPServerSettings) -> "UserTokens":
        """Return the tokens with which a server is called for the caller.

        Raises ForbiddenError where the caller brought no token of its own, or one of an issuer that is not asked.
        """
        auth = settings.auth
        if auth is None or not auth.of_users:
            raise ForbiddenError(f"Server {server!r} takes no tokens of users.", details={"server": server})
        if caller.presented is None:
            raise no_user(server)
        issuer = auth.provider.issuer if auth.provider is not None else auth.issuer
        if caller.issuer != issuer:
            # To anybody else the token would be what opens this service.
            raise ForbiddenError(
                f"Server {server!r} is for users of another issuer than that of your token.",
                details={"server": server, "issuer": issuer},
            )
        return UserTokens(self, caller, caller.presented, server, settings, auth)

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

    @property
    def identity(self) -> Hashable:
        """Return what tells these tokens apart."""
        return self.tenant, self.server

    async def token(self) -> str:
        """Return a token that counts now, or raise UpstreamUnavailableError."""
        try:
            return await self._got()
        except GrantFailedError as error:
            raise _unavailable(self.server, self.auth.issuer, error) from None

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
            binding=binding_of(self.settings),
        )

    async def _granted(self, protected: ProtectedServer) -> GrantedToken:
        form = {"grant_type": "client_credentials", **asked_for(protected)}
        return await self.tokens.source.granted(ClientIdentity.of(self.auth, self.settings.credentials), form)


@dataclass(frozen=True, slots=True)
class UserTokens:
    """The tokens of one user for one server, given for the token that the user brought."""

    tokens: UpstreamTokens
    caller: Caller
    presented: str = field(repr=False)
    server: str
    settings: MCPServerSettings = field(repr=False)
    auth: ServerAuth

    @property
    def identity(self) -> Hashable:
        """Return what tells these tokens apart: whose they are, for what, and for which token they were given."""
        return self._key(ProtectedServer("", ()))

    async def token(self) -> str:
        """Return a token that counts now; raise ForbiddenError where the issuer refuses one, else Unavailable."""
        try:
            protected = await self.tokens.protected(self.settings, self.auth)
            return await self.tokens.cache.get(self._key(protected), lambda: self._granted(protected))
        except GrantFailedError as error:
            if error.code is None or error.code in _OF_CLIENT:
                raise _unavailable(self.server, self.auth.issuer, error) from None
            raise ForbiddenError(
                f"You get no token for server {self.server!r}. Of its authorization server: {error}.",
                details={"server": self.server, "issuer": self.auth.issuer, "error": error.code},
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

    def _key(self, protected: ProtectedServer) -> TokenKey:
        return TokenKey(
            tenant=self.caller.tenant,
            holder=self.caller.key_id,
            server=self.server,
            issuer=self.auth.issuer,
            audience=protected.resource,
            scopes=protected.scopes,
            binding=binding_of(self.settings),
            presented=hashlib.sha256(self.presented.encode()).digest(),
        )

    async def _granted(self, protected: ProtectedServer) -> GrantedToken:
        credentials, source = self.settings.credentials, self.tokens.source
        if self.auth.provider is None:
            audience = {"audience": self.auth.audience} if self.auth.audience is not None else {}
            client = ClientIdentity.of(self.auth, credentials)
            return await source.granted(client, {**self._exchange(_ACCESS_TOKEN, protected), **audience})
        provider = ClientIdentity.at_provider(
            self.auth.provider, credentials, self.auth.provider_credential or ""
        )
        asked = {**self._exchange(_ID_JAG, protected), "audience": self.auth.issuer}
        assertion = await source.granted(provider, asked)
        if assertion.issued_type != _ID_JAG:
            raise GrantFailedError("the identity provider gave another token than an assertion for it")
        form = {"grant_type": _JWT_BEARER, "assertion": assertion.access_token, **asked_for(protected)}
        return await source.granted(ClientIdentity.of(self.auth, credentials), form)

    def _exchange(self, wanted: str, protected: ProtectedServer) -> dict[str, str]:
        return {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": wanted,
            "subject_token": self.presented,
            "subject_token_type": f"{_TOKEN_TYPE}:{self.auth.subject_token_type}",
            **asked_for(protected),
        }


def no_user(server: str) -> ForbiddenError:
    """Return the error for callers who are no person with a token of their own."""
    return ForbiddenError(
        f"Server {server!r} is called with the token of a user alone: come with a token of your identity "
        "provider, not with an API key, and not for another user.",
        details={"server": server},
    )


def _unavailable(server: str, issuer: str, error: GrantFailedError) -> UpstreamUnavailableError:
    return UpstreamUnavailableError(
        f"There is no token for server {server!r}. Of its authorization server: {error}.",
        details={"server": server, "issuer": issuer},
    )


def asked_for(protected: ProtectedServer) -> dict[str, str]:
    """Return the members of a token request that say what the token is for (RFC 8707)."""
    scope = {"scope": " ".join(protected.scopes)} if protected.scopes else {}
    return {"resource": protected.resource, **scope}


def binding_of(settings: MCPServerSettings) -> str:
    """Return a digest of how tokens for a server are asked for and where they go: none outlives a change of that."""
    auth = settings.auth.model_dump(mode="json") if settings.auth is not None else None
    asked = {"url": settings.url, "auth": auth, "credentials": dict(settings.credentials)}
    return hashlib.sha256(dumps(asked)).hexdigest()


def place_of(settings: MCPServerSettings) -> str:
    """Return a digest of where a server is and who gives tokens for it: what a person granted is for that alone."""
    resource = settings.auth.resource if settings.auth is not None else None
    return hashlib.sha256(dumps({**reached(settings), "resource": resource})).hexdigest()
