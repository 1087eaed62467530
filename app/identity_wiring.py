"""Build what knows callers by the tokens of issuers, from the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.core.access import DEFAULT_TENANT, Caller, Role
from app.edge.protected_resources import ProtectedResources
from app.engines.tokens import JoseReader
from app.services.access.credentials import Authenticator
from app.services.access.identity.end_users import EndUsers
from app.services.access.identity.sign_ins import IdentitySignIns
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.sessions import SessionService
from app.services.access.token_callers import TokenCallers
from app.services.access.token_states import TokenState
from app.services.audit.audit import AuditService
from app.services.forward.user_connections import UserConnections
from app.services.servers.grant_starts import GRANT_CALLBACK, GrantStarts
from app.services.servers.upstream_tokens import UpstreamTokens
from app.services.servers.upstreams import UpstreamService
from app.services.servers.user_grants import UserGrants
from app.settings import Settings
from app.store.changes import Changes
from app.store.database import Database
from app.upstream.grants import GrantClient
from app.upstream.issuers import IssuerClient


@asynccontextmanager
async def authenticator(
    settings: Settings, database: Database, audit: AuditService, changes: Changes
) -> AsyncIterator[Authenticator]:
    """Say who asks, by keys and by tokens of the settings' issuers, while the body runs."""
    anonymous = None if settings.auth.required else Caller(DEFAULT_TENANT, "anonymous", frozenset(Role))
    end_users = EndUsers(settings.auth.bounds())
    for memory in (end_users.groups, end_users.tenants, end_users.users):
        memory.follow(changes.heard)
    if not settings.auth.issuers:
        yield Authenticator(database, audit, anonymous, end_users=end_users)
        return
    client = _client(settings)
    reader = JoseReader()
    issuers = {entry.issuer: IssuerKeys(entry.trusted(), client, reader) for entry in settings.auth.issuers}
    asked = {
        name: TokenState(keys.issuer, keys.issuer.introspection, client, reader)
        for name, keys in issuers.items()
        if keys.issuer.introspection is not None
    }
    callers = TokenCallers(issuers, asked, reader, database, audit, groups=end_users.groups)
    callers.memory.follow(changes.heard)
    callers.rules.follow(changes.heard)
    try:
        yield Authenticator(database, audit, anonymous, tokens=callers, end_users=end_users)
    finally:
        await callers.close()


def upstream_tokens(settings: Settings) -> UpstreamTokens:
    """Return what gets tokens for the servers behind this one."""
    return UpstreamTokens(GrantClient(_client(settings)))


def user_connections(
    settings: Settings, upstreams: UpstreamService, audit: AuditService, sessions: SessionService
) -> UserConnections:
    """Return what calls servers with the rights of users."""
    tokens = upstreams.tokens or upstream_tokens(settings)
    resources = protected_resources(settings)
    origin = resources.origin if resources is not None else None
    redirect_uri = f"{origin}{GRANT_CALLBACK}" if origin is not None else None
    starts = GrantStarts(tokens.source, sessions, audit.keys, redirect_uri)
    return UserConnections(upstreams, UserGrants(audit.database, audit, tokens, starts))


def protected_resources(settings: Settings) -> ProtectedResources | None:
    """Return what clients are told of tokens, None where no issuer is trusted."""
    if not settings.auth.issuers:
        return None
    trusted = [entry.trusted() for entry in settings.auth.issuers]
    return ProtectedResources(trusted, settings.auth.resource)


def sign_ins(
    settings: Settings, authenticator: Authenticator, sessions: SessionService
) -> IdentitySignIns | None:
    """Return what signs people in to the console with issuers, None where none is set up for it."""
    callers = authenticator.tokens
    if callers is None or not any(entry.console for entry in settings.auth.issuers):
        return None
    return IdentitySignIns(callers.issuers, _client(settings), callers, sessions, authenticator)


def _client(settings: Settings) -> IssuerClient:
    return IssuerClient(
        networks=settings.upstreams.allowed_networks, development=settings.environment == "development"
    )
