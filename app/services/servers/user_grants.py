"""What people granted for servers that are called with their rights: begun, kept under seal, used, taken back."""

import logging
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.background import BackgroundTasks
from app.core.catalog.server_auth import ServerAuth
from app.core.catalog.servers import MCPServerSettings
from app.core.errors import ConflictError, ForbiddenError, NotFoundError, UpstreamUnavailableError
from app.core.events import Changed
from app.core.grants import ClientIdentity, GrantedToken, GrantFailedError
from app.core.request import RequestInfo
from app.core.strictjson import dumps, loads
from app.engines.cipher import SealBrokenError
from app.services.access.access import HOST
from app.services.access.identity.ends import IDENTITY_ENDED
from app.services.audit.audit import AuditService
from app.services.servers.grant_starts import GrantStart, GrantStarts
from app.services.servers.sealing import opened
from app.services.servers.token_cache import TokenKey
from app.services.servers.upstream_tokens import UpstreamTokens, binding_of, no_user, place_of
from app.store.access.provisioned import Part, find_entry
from app.store.access.user_grants import (
    StoredGrant,
    find_grant,
    list_grants,
    list_grants_of,
    put_grant,
    remove_grant,
    renew_grant,
)
from app.store.database import Database
from app.store.servers import SERVER_APPROVED, SERVERS

_MARGIN_S: Final = 30.0

log = logging.getLogger("sluice.upstreams")


@dataclass(frozen=True, slots=True)
class UserGrants:
    """The grants of people; only callers with a token of their own have some."""

    database: Database
    audit: AuditService
    tokens: UpstreamTokens
    starts: GrantStarts
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)

    def of_user(self, caller: Caller, server: str, settings: MCPServerSettings) -> "GrantTokens":
        """Return the tokens with which a server is called for the caller; ForbiddenError for no person."""
        if caller.presented is None:
            raise no_user(server)
        assert settings.auth is not None  # noqa: S101 - the caller has looked at its mode
        return GrantTokens(self, caller, server, settings, settings.auth)

    async def begin(self, caller: Caller, server: str, request: RequestInfo | None = None) -> GrantStart:
        """Return where the caller goes to grant what a server needs."""
        async with self.audit.refusals(caller, "grants.begin", request):
            _check_person(caller)
            settings, auth = await self._server(caller.tenant, server)
            try:
                protected = await self.tokens.protected(settings, auth)
                start = await self.starts.begin(caller, server, auth, protected, place_of(settings))
            except GrantFailedError as error:
                raise _failed(server, auth, error) from None
        await self._record(caller, "grants.begin", server, request)
        return start

    async def came_back(self, answer: Mapping[str, str]) -> tuple[str, str]:
        """Take what an authorization server sent somebody back with; return the server's name and the code to confirm.

        Raises NotFoundError for a way that is not open, UpstreamUnavailableError where nothing was granted.
        """
        server = ""
        try:
            back = await self.starts.came_back(answer)
            server = back.server
            settings, auth = await self._server(back.tenant, server)
            place = place_of(settings)
            return server, await self.starts.exchange(back, auth, settings.credentials, place)
        except GrantFailedError as error:
            raise UpstreamUnavailableError(
                f"Nothing was granted. Of the authorization server: {error}.",
                details={"server": server} if server else {},
            ) from None

    async def confirm(self, caller: Caller, code: str, request: RequestInfo | None = None) -> str:
        """Keep what the caller granted and return the server's name; NotFoundError for any other person's code."""
        async with self.audit.refusals(caller, "grants.confirm", request):
            _check_person(caller)
            confirmed = await self.starts.confirm(caller, code)
            moment = self.starts.sessions.now()
            grant = StoredGrant(
                *(caller.tenant, caller.key_id, confirmed.server, confirmed.issuer),
                *(b"", moment, moment, caller.mirrored),
            )
            grant = replace(grant, tokens=self._sealed(grant, confirmed.place, confirmed.token, moment))
            async with self.database.transaction(caller.tenant) as tx:
                if await SERVERS.find(tx, caller.tenant, confirmed.server) is None:
                    raise NotFoundError("There is no such server any more.")
                await put_grant(tx, grant)
                event = self.audit.new_event(
                    caller, "grants.confirm", OUTCOME_OK, request, details={"server": confirmed.server}
                )
                await self.audit.record_with(tx, event)
        self.tokens.cache.forget_holder(caller.tenant, caller.key_id)
        return confirmed.server

    async def list(
        self, caller: Caller, holder: str | None = None, request: RequestInfo | None = None
    ) -> Sequence[StoredGrant]:
        """Return the caller's grants; operators see everybody's, or those of one ``holder``."""
        async with self.audit.refusals(caller, "grants.list", request):
            caller.require(Role.INVOKER, Role.OPERATOR)
        if Role.OPERATOR not in caller.roles:
            holder = caller.key_id
        async with self.database.transaction(caller.tenant, write=False) as tx:
            return await list_grants(tx, caller.tenant, holder)

    async def revoke(
        self, caller: Caller, server: str, holder: str | None = None, request: RequestInfo | None = None
    ) -> None:
        """Take back a grant of the caller, or for operators of any ``holder``: here, and at its issuer if it can be."""
        async with self.audit.refusals(caller, "grants.revoke", request):
            caller.require(Role.INVOKER, Role.OPERATOR)
            if holder is not None and holder != caller.key_id:
                caller.require(Role.OPERATOR)
            owner = holder or caller.key_id
            async with self.database.transaction(caller.tenant) as tx:
                grant = await find_grant(tx, caller.tenant, owner, server)
                if grant is None or not await remove_grant(tx, caller.tenant, owner, server):
                    raise NotFoundError("There is no such grant.")
                event = self.audit.new_event(
                    caller, "grants.revoke", OUTCOME_OK, request, details={"server": server, "holder": owner}
                )
                await self.audit.record_with(tx, event)
        self.tokens.cache.forget_holder(caller.tenant, owner)
        await self._take_back(grant)

    def changed(self, changed: Changed) -> None:
        """Take back what a person granted whom the identity provider has removed."""
        if changed.kind == IDENTITY_ENDED and changed.tenant is not None and changed.name is not None:
            self.tasks.start(self._end_person(changed.tenant, changed.name))

    async def _end_person(self, tenant: str, person: str) -> None:
        """Take back the grants of whom the mirror has no longer; of several processes, one does so for each."""
        async with self.database.transaction(tenant, write=False) as tx:
            grants = await list_grants_of(tx, tenant, person)
            parts: tuple[Part, ...] = ("name", "external")
            named = [await find_entry(tx, tenant, "User", part, person) for part in parts if grants]
        entries = [entry for entry in named if entry is not None]
        if not entries or any(entry.active for entry in entries):
            return
        await self.audit.keys.ready(tenant)
        for grant in grants:
            async with self.database.transaction(tenant) as tx:
                if not await remove_grant(tx, tenant, grant.holder, grant.server):
                    continue
                details = {"server": grant.server, "holder": grant.holder}
                event = self.audit.new_event(
                    HOST, "grants.revoke", OUTCOME_OK, None, tenant=tenant, details=details
                )
                await self.audit.record_with(tx, event)
            self.tokens.cache.forget_holder(tenant, grant.holder)
            await self._take_back(grant)

    async def granted(self, caller: Caller, server: str, settings: MCPServerSettings) -> GrantedToken | None:
        """Return a token for a server from what the caller granted, None where that is nothing, or no longer.

        Raises GrantFailedError where the authorization server gives no answer.
        """
        auth = settings.auth
        grant = await self._find(caller.tenant, caller.key_id, server)
        if auth is None or grant is None or grant.issuer != auth.issuer:
            return None
        place = place_of(settings)
        token, left_s = self._open(grant, place)
        if token is None:
            return None
        if left_s > _MARGIN_S:
            return GrantedToken(token.access_token, left_s)
        if token.refresh_token is None:
            return None
        protected = await self.tokens.protected(settings, auth)
        form = {
            "grant_type": "refresh_token",
            "refresh_token": token.refresh_token,
            "resource": protected.resource,
        }
        try:
            fresh = await self.tokens.source.granted(ClientIdentity.of(auth, settings.credentials), form)
        except GrantFailedError as error:
            if error.code != "invalid_grant":
                raise
            return await self._after_refusal(grant, place)
        kept = replace(fresh, refresh_token=fresh.refresh_token or token.refresh_token)
        moment = max(self.starts.sessions.now(), grant.updated + timedelta(microseconds=1))
        sealed = self._sealed(grant, place, kept, moment)
        async with self.database.transaction(grant.tenant) as tx:
            if not await renew_grant(tx, grant, sealed, moment):
                log.info("a grant for server %s was renewed or taken back meanwhile", server)
        return fresh

    async def expire(self, caller: Caller, server: str, place: str, refused: str) -> None:
        """Let a token that its server refused be renewed, unless that has been done."""
        grant = await self._find(caller.tenant, caller.key_id, server)
        token, _ = self._open(grant, place) if grant is not None else (None, 0.0)
        if grant is None or token is None or token.access_token != refused:
            return
        moment = max(self.starts.sessions.now(), grant.updated + timedelta(microseconds=1))
        sealed = self._sealed(grant, place, replace(token, lifetime_s=0.0), moment)
        async with self.database.transaction(grant.tenant) as tx:
            await renew_grant(tx, grant, sealed, moment)

    async def _after_refusal(self, grant: StoredGrant, place: str) -> GrantedToken | None:
        """Return what another process has made of a refresh token that is spent; else the grant is over."""
        now = await self._find(grant.tenant, grant.holder, grant.server)
        if now is not None and now.updated != grant.updated:
            token, left_s = self._open(now, place)
            if token is not None and left_s > _MARGIN_S:
                return GrantedToken(token.access_token, left_s)
        elif now is not None:
            async with self.database.transaction(grant.tenant) as tx:
                await remove_grant(tx, grant.tenant, grant.holder, grant.server)
        return None

    async def _server(self, tenant: str, server: str) -> tuple[MCPServerSettings, ServerAuth]:
        async with self.database.transaction(tenant, write=False) as tx:
            stored = await SERVERS.find(tx, tenant, server)
        if stored is None or stored.state != SERVER_APPROVED:
            raise NotFoundError("There is no such server.")
        settings = opened(self.audit.keys, stored).settings
        if settings.auth is None or settings.auth.mode != "user_grant":
            raise ConflictError(f"Server {server!r} needs no grant of a person.", details={"server": server})
        return settings, settings.auth

    async def _take_back(self, grant: StoredGrant) -> None:
        """Tell the authorization server; a grant that is gone here is of no use, whether it answers or not."""
        token, _ = self._open(grant)
        if token is None or token.refresh_token is None:
            return
        try:
            settings, auth = await self._server(grant.tenant, grant.server)
            if auth.issuer == grant.issuer:
                client = ClientIdentity.of(auth, settings.credentials)
                await self.tokens.source.revoked(client, token.refresh_token)
        except (GrantFailedError, NotFoundError, ConflictError):
            log.warning("a grant for server %s could not be taken back at its issuer", grant.server)

    async def _find(self, tenant: str, holder: str, server: str) -> StoredGrant | None:
        async with self.database.transaction(tenant, write=False) as tx:
            return await find_grant(tx, tenant, holder, server)

    def _sealed(self, grant: StoredGrant, place: str, token: GrantedToken, moment: datetime) -> bytes:
        kept = {
            "place": place,
            "access": token.access_token,
            "refresh": token.refresh_token,
            "until": moment.timestamp() + token.lifetime_s,
        }
        return self.audit.keys.seal(grant.tenant, _purpose(grant.holder, grant.server), dumps(kept))

    def _open(self, grant: StoredGrant, place: str | None = None) -> tuple[GrantedToken | None, float]:
        """Return the tokens of a grant, and for how many seconds the first of them counts.

        With a ``place`` there are none where the person granted them for a server at another one.
        """
        try:
            kept: dict[str, Any] = loads(
                self.audit.keys.open(grant.tenant, _purpose(grant.holder, grant.server), grant.tokens)
            )
        except SealBrokenError:
            return None, 0.0
        if place is not None and kept.get("place") != place:
            return None, 0.0
        left_s = kept["until"] - self.starts.sessions.now().timestamp()
        return GrantedToken(kept["access"], max(left_s, 0.0), kept["refresh"]), left_s

    async def _record(self, caller: Caller, action: str, server: str, request: RequestInfo | None) -> None:
        details = {"server": server}
        await self.audit.record(self.audit.new_event(caller, action, OUTCOME_OK, request, details=details))


class GrantMissingError(ForbiddenError):
    """The caller has granted nothing for a server, or no longer."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"You have granted nothing for server {server!r}, or no longer.", details={"server": server}
        )


@dataclass(frozen=True, slots=True)
class GrantTokens:
    """The tokens of one user for one server, from what the user granted."""

    grants: UserGrants
    caller: Caller
    server: str
    settings: MCPServerSettings
    auth: ServerAuth

    @property
    def identity(self) -> Hashable:
        """Return what tells these tokens apart."""
        return self._key

    async def token(self) -> str:
        """Return a token that counts now, or raise GrantMissingError."""
        try:
            return await self.grants.tokens.cache.get(self._key, self._granted)
        except GrantFailedError as error:
            raise _failed(self.server, self.auth, error) from None

    async def renewed(self, refused: str) -> str | None:
        """Return another token in place of a refused one, None where there is none."""
        await self.grants.expire(self.caller, self.server, place_of(self.settings), refused)
        self.grants.tokens.cache.refuse(self._key, refused)
        try:
            token = await self.token()
        except GrantMissingError:
            return None
        return token if token != refused else None

    @property
    def _key(self) -> TokenKey:
        return TokenKey(
            tenant=self.caller.tenant,
            holder=self.caller.key_id,
            server=self.server,
            issuer=self.auth.issuer,
            audience=self.auth.resource or self.settings.url or "",
            scopes=("user_grant",),
            binding=binding_of(self.settings),
        )

    async def _granted(self) -> GrantedToken:
        token = await self.grants.granted(self.caller, self.server, self.settings)
        if token is None:
            raise GrantMissingError(self.server)
        return token


def _check_person(caller: Caller) -> None:
    caller.require(Role.INVOKER)
    if caller.presented is None:
        raise ConflictError(
            "A grant is of a person: come with a token of your identity provider, not with an API key, and not for "
            "another user."
        )


def _purpose(holder: str, server: str) -> bytes:
    return b"user-grant:" + dumps([holder, server])


def _failed(server: str, auth: ServerAuth, error: GrantFailedError) -> UpstreamUnavailableError:
    return UpstreamUnavailableError(
        f"Server {server!r} cannot be connected. Of its authorization server: {error}.",
        details={"server": server, "issuer": auth.issuer},
    )
