"""Tokens that authorization servers give for MCP servers behind this one: what is asked and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.core.catalog.server_auth import ServerAuth, ServerAuthProvider


class GrantFailedError(Exception):
    """An authorization server gave no token; the message holds nothing of what it said.

    ``code`` is its error where it is one of OAuth's own, such as ``invalid_grant``; None where it gave no answer that
    can be used.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class GrantedToken:
    """A token, for how many seconds it counts, and what came with it."""

    access_token: str = field(repr=False)
    lifetime_s: float
    refresh_token: str | None = field(default=None, repr=False)
    issued_type: str | None = None


@dataclass(frozen=True, slots=True)
class ProtectedServer:
    """A server as its metadata describes it: the resource that its tokens are for, and the scopes to ask for."""

    resource: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """As whom this service asks one authorization server, and with which credential."""

    issuer: str
    client_id: str
    method: str
    credential: str = field(default="", repr=False)
    algorithm: str = "RS256"
    token_uri: str | None = None

    @classmethod
    def of(cls, auth: ServerAuth, credentials: Mapping[str, str]) -> "ClientIdentity":
        """Return the identity that a server's settings name."""
        credential = credentials.get(auth.credential, "") if auth.credential is not None else ""
        return cls(
            auth.issuer, auth.client_id, auth.client_auth, credential, auth.signing_algorithm, auth.token_uri
        )

    @classmethod
    def at_provider(
        cls, provider: ServerAuthProvider, credentials: Mapping[str, str], name: str
    ) -> "ClientIdentity":
        """Return the identity at the users' identity provider; ``name`` is that of its credential."""
        return cls(
            provider.issuer,
            provider.client_id,
            provider.client_auth,
            credentials.get(name, ""),
            provider.signing_algorithm,
        )


class GrantSource(Protocol):
    """Asks authorization servers for tokens."""

    async def protected(self, url: str, issuer: str) -> ProtectedServer:
        """Return what the server at ``url`` says of its tokens, or raise GrantFailedError.

        It is an error where its metadata names other authorization servers than ``issuer``.
        """
        ...

    async def metadata(self, issuer: str) -> Mapping[str, Any]:
        """Return what an authorization server says of itself, or raise GrantFailedError."""
        ...

    async def revoked(self, client: ClientIdentity, token: str) -> None:
        """Take back a refresh token (RFC 7009), or raise GrantFailedError."""
        ...

    async def granted(self, client: ClientIdentity, form: Mapping[str, str]) -> GrantedToken:
        """Return the token for a grant (the form without the client's credentials), or raise GrantFailedError."""
        ...
