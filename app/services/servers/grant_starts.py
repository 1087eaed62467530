"""The way of a person to an authorization server and back: begun once, come back once, confirmed by the same person."""

import hashlib
import re
import secrets
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit, urlunsplit

from app.core.access import Caller
from app.core.addresses import scheme_of
from app.core.catalog.server_auth import ServerAuth
from app.core.errors import NotFoundError, UpstreamUnavailableError
from app.core.grants import ClientIdentity, GrantedToken, GrantFailedError, GrantSource, ProtectedServer
from app.core.strictjson import dumps, loads
from app.engines.cipher import RecordKeys, SealBrokenError
from app.services.access.sessions import SESSION_ID, Session, SessionService

GRANT_CALLBACK: Final = "/console/server-grants/callback"
"""Where authorization servers send people back to."""

LIFETIME: Final = timedelta(minutes=10)
_STARTED: Final = "user grant start"
_RETURNED: Final = "user grant return"
_STATE: Final = re.compile(rf"([a-z0-9-]{{1,63}})\.([a-z0-9-]{{1,64}})\.({SESSION_ID.pattern})")
_SERVER, _SEALED, _UNTIL = "server", "sealed", "until"


class GrantStart(NamedTuple):
    """Where a person goes to grant something, and until when (seconds since 1970) the way back is open."""

    url: str
    until: float


class ConfirmedGrant(NamedTuple):
    """What a person granted, for which server at which place, and at which authorization server."""

    server: str
    issuer: str
    place: str
    token: GrantedToken


@dataclass(frozen=True, slots=True)
class GrantStarts:
    """Begins and ends such ways. What is under way is kept sealed among the sessions, so that all replicas know it.

    A person who follows the link of somebody else would grant that other one something. So the way back ends on a page
    with a code, and what was granted is nobody's until the one who began it has brought the code.
    """

    source: GrantSource
    sessions: SessionService
    keys: RecordKeys
    redirect_uri: Callable[[], str | None]

    async def begin(
        self, caller: Caller, server: str, auth: ServerAuth, protected: ProtectedServer, place: str
    ) -> GrantStart:
        """Return where the caller goes for a server at a place; UpstreamUnavailableError where no way leads there."""
        redirect_uri = self.redirect_uri()
        if redirect_uri is None:
            raise UpstreamUnavailableError(
                "Nobody can come back from an authorization server: this service does not know its own address "
                "(SLUICE_AUTH__RESOURCE).",
                details={"server": server},
            )
        metadata = await self.source.metadata(auth.issuer)
        endpoint, methods = (
            metadata.get("authorization_endpoint"),
            metadata.get("code_challenge_methods_supported"),
        )
        schemes = {"https", urlsplit(auth.issuer).scheme}  # plain http is for an issuer on this machine
        if not isinstance(endpoint, str) or scheme_of(endpoint) not in schemes:
            raise GrantFailedError("its metadata has no authorization_endpoint")
        if not isinstance(methods, list) or "S256" not in methods:
            raise GrantFailedError("it does not say that it checks PKCE with S256")
        verifier = secrets.token_urlsafe(48)
        until = (self.sessions.now() + LIFETIME).timestamp()
        kept = {
            "verifier": verifier,
            "issuer": auth.issuer,
            "resource": protected.resource,
            "place": place,
            "names_itself": metadata.get("authorization_response_iss_parameter_supported") is True,
        }
        owner = _owner(caller.tenant, caller.key_id, _STARTED)
        session = await self.sessions.start(owner, _STARTED, self._sealed(owner, server, until, kept))
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {
            "response_type": "code",
            "client_id": auth.client_id,
            "redirect_uri": redirect_uri,
            "state": f"{caller.tenant}.{caller.key_id}.{session.id}",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": protected.resource,
            **({"scope": " ".join(_with_refresh(protected.scopes, metadata))} if protected.scopes else {}),
        }
        parts = urlsplit(endpoint)
        query = "&".join(part for part in (parts.query, urlencode(asked)) if part)
        return GrantStart(urlunsplit((parts.scheme, parts.netloc, parts.path, query, "")), until)

    async def came_back(self, answer: Mapping[str, str]) -> "WayBack":
        """Return what an authorization server sent somebody back with; NotFoundError for a state that is not open.

        A state counts once. Raises GrantFailedError where the answer is another server's, or says no.
        """
        match = _STATE.fullmatch(answer.get("state", ""))
        if match is None:
            raise _spent()
        owner = _owner(match[1], match[2], _STARTED)
        session, kept = await self._taken(owner, match[3])
        issuer = answer.get("iss")
        # RFC 9207: before anything of the answer is used, errors included.
        if (issuer is None and kept["names_itself"]) or (issuer is not None and issuer != kept["issuer"]):
            raise GrantFailedError("the answer is not of the authorization server that was asked")
        code = answer.get("code")
        if not code or "error" in answer:
            raise GrantFailedError("it did not grant this")
        server = str(session.preferences[_SERVER])
        return WayBack(
            *(match[1], match[2], server, kept["issuer"], kept["resource"], kept["place"]),
            *(code, kept["verifier"]),
        )

    async def exchange(
        self, back: "WayBack", auth: ServerAuth, credentials: Mapping[str, str], place: str
    ) -> str:
        """Get the tokens for a code, keep them sealed, and return the code with which the person confirms them.

        ``place`` is where the server is now: what somebody granted for another one is not got.
        """
        if (auth.issuer, place) != (back.issuer, back.place):
            raise _spent()
        form = {
            "grant_type": "authorization_code",
            "code": back.code,
            "redirect_uri": self.redirect_uri() or "",
            "code_verifier": back.verifier,
            "resource": back.resource,
        }
        token = await self.source.granted(ClientIdentity.of(auth, credentials), form)
        owner = _owner(back.tenant, back.holder, _RETURNED)
        until = (self.sessions.now() + LIFETIME).timestamp()
        kept = {
            "issuer": back.issuer,
            "place": back.place,
            "access": token.access_token,
            "refresh": token.refresh_token,
            "lifetime": token.lifetime_s,
        }
        session = await self.sessions.start(owner, _RETURNED, self._sealed(owner, back.server, until, kept))
        return session.id

    async def confirm(self, caller: Caller, code: str) -> ConfirmedGrant:
        """Return what the caller granted; NotFoundError for a code that is spent, over or another person's."""
        if SESSION_ID.fullmatch(code) is None:
            raise _spent()
        session, kept = await self._taken(_owner(caller.tenant, caller.key_id, _RETURNED), code)
        token = GrantedToken(kept["access"], kept["lifetime"], kept["refresh"])
        return ConfirmedGrant(str(session.preferences[_SERVER]), kept["issuer"], kept["place"], token)

    async def _taken(self, owner: Caller, session_id: str) -> tuple[Session, Mapping[str, Any]]:
        """Return a session that counts once, and what is sealed in it."""
        try:
            session = await self.sessions.resume(owner, session_id)
            await self.sessions.end(owner, session_id)  # of two at once, one finds nothing to end
        except NotFoundError:
            raise _spent() from None
        if self.sessions.now().timestamp() >= session.preferences[_UNTIL]:
            raise _spent()
        try:
            sealed = b64decode(session.preferences[_SEALED])
            kept: Mapping[str, Any] = loads(self.keys.open(owner.tenant, _purpose(owner), sealed))
        except SealBrokenError:
            raise _spent() from None
        return session, kept

    def _sealed(self, owner: Caller, server: str, until: float, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        sealed = self.keys.seal(owner.tenant, _purpose(owner), dumps(kept))
        return {_SERVER: server, _UNTIL: until, _SEALED: b64encode(sealed).decode()}


@dataclass(frozen=True, slots=True)
class WayBack:
    """Who comes back from which authorization server, for which server, with which code."""

    tenant: str
    holder: str
    server: str
    issuer: str
    resource: str
    place: str
    code: str = field(repr=False)
    verifier: str = field(repr=False)


def _owner(tenant: str, holder: str, kind: str) -> Caller:
    """Return whose such a session is: of no client of MCP and of no visitor of the console."""
    return Caller(tenant, f"{kind}:{holder}", frozenset())


def _purpose(owner: Caller) -> bytes:
    return owner.key_id.encode()


def _with_refresh(scopes: tuple[str, ...], metadata: Mapping[str, Any]) -> tuple[str, ...]:
    supported = metadata.get("scopes_supported")
    offline = isinstance(supported, list) and "offline_access" in supported
    return (*scopes, "offline_access") if offline and "offline_access" not in scopes else scopes


def _spent() -> NotFoundError:
    return NotFoundError("This way to a server is not open, or no longer: begin again.")
