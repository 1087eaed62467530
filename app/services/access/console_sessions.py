"""Sessions of people in the console: worth at each request what the key or the identity that began them is worth."""

import hashlib
import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.core.access import ApiKey, Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.errors import NotFoundError, UnauthenticatedError
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.access.credentials import Authenticator, KnownKey
from app.services.access.identity.sign_ins import OWNER, IdentitySignIns
from app.services.access.sessions import SESSION_ID, Session, SessionService
from app.services.audit.audit import AuditService

REVISION: Final = "console"
LINK: Final = "console link"
LINK_LIFETIME: Final = timedelta(minutes=5)
LONGEST: Final = timedelta(hours=12)
"""After which a session ends, however much it is used."""

_LINK_OWNER: Final = "console-link:"
_SECRET, _UNTIL = "secret", "until"
_PERSON: Final = re.compile(rf"[a-z0-9-]{{1,63}}\.sub-[0-9a-f]{{1,64}}\.{SESSION_ID.pattern}")
_TOKEN: Final = re.compile(rf"([a-z0-9-]{{1,63}})\.([a-z0-9]{{1,16}})\.({SESSION_ID.pattern})")


@dataclass(frozen=True, slots=True)
class ConsoleSessions:
    """Begins, resumes and ends sessions; the database keeps a digest of each, so that all replicas know them.

    A session has no roles of its own: at each request its key is looked at again, with its roles, networks, expiry and
    revocation. It ends with the secret that it was begun with, ``SessionService.idle_s`` after its last use, and at
    the latest after ``LONGEST``.
    """

    sessions: SessionService
    authenticator: Authenticator
    audit: AuditService
    people: IdentitySignIns | None = None
    """Who signs in with an issuer; None: only keys are taken."""

    @property
    def needs_key(self) -> bool:
        """Return whether a key is asked for: not where authentication is off."""
        return self.authenticator.anonymous is None

    async def start(self, key: str | None, request: RequestInfo) -> tuple[Caller, str]:
        """Return who presents ``key`` and the token of a new session; the start is on record.

        Raises UnauthenticatedError for a key that is not valid from the address of the request.
        """
        parsed = ApiKey.parse(key or "") if self.needs_key else None
        # What is no key, such as a token of an issuer, begins no session: nothing would end it with its owner.
        presented = key if parsed is not None else None
        caller = await self.authenticator.authenticate(presented, request.address)
        return await self._begin(caller, parsed.digest.hex() if parsed else "", request)

    async def offer(self, key_id: str) -> str:
        """Return the token of a link that signs in as a key, once and within ``LINK_LIFETIME``; it is on record.

        For whoever has the host, who could read the database anyway: nobody is asked for the key's secret. Raises
        NotFoundError for a key that is not there or over.
        """
        known_key, moment = await self.authenticator.find(key_id), self.sessions.now()
        if known_key is None or known_key.ended or (known_key.expires and moment >= known_key.expires):
            raise NotFoundError("There is no such key, or it has ended.")
        tenant = known_key.caller.tenant
        data = {_SECRET: known_key.digest.hex(), _UNTIL: (moment + LINK_LIFETIME).timestamp()}
        link = await self.sessions.start(_owner(tenant, key_id, _LINK_OWNER), LINK, data)
        event = self.audit.new_event(
            HOST, "console.link", OUTCOME_OK, None, tenant=tenant, details={"key": key_id}
        )
        await self.audit.record(event)
        return f"{tenant}.{key_id}.{link.id}"

    async def redeem(self, token: str, request: RequestInfo) -> tuple[Caller, str]:
        """Return whose key a link is for and the token of a new session; UnauthenticatedError for a spent link."""
        match = _TOKEN.fullmatch(token)
        known_key = await self.authenticator.find(match[2]) if match is not None else None
        if match is None or known_key is None or known_key.caller.tenant != match[1]:
            raise _spent()
        owner = _owner(match[1], match[2], _LINK_OWNER)
        try:
            link = await self.sessions.resume(owner, match[3])
            await self.sessions.end(owner, match[3])  # of two at once, one finds nothing to end
        except NotFoundError:
            raise _spent() from None
        caller, digest = self._holder(known_key, link, LINK, request.address)
        if caller is None:
            raise _spent()
        return await self._begin(caller, digest, request)

    async def resume(self, token: str | None, address: str | None, *, is_use: bool = True) -> Caller:
        """Return whose session ``token`` names, with the roles that the key has now; else UnauthenticatedError.

        Without ``is_use`` the time until it ends for want of use goes on: for streams, which nobody may look at.
        """
        if self.people is not None and token is not None and _PERSON.fullmatch(token):
            return await self.people.resume(token, address, is_use=is_use)
        match = _TOKEN.fullmatch(token or "")
        if match is None:
            raise _ended()
        tenant, key_id, session_id = match.groups()
        known_key = None if not self.needs_key else await self.authenticator.find(key_id)
        if self.needs_key and (known_key is None or known_key.caller.tenant != tenant):
            raise _ended()
        try:
            find = self.sessions.resume if is_use else self.sessions.look
            session = await find(_owner(tenant, key_id), session_id)
        except NotFoundError:
            raise _ended() from None
        caller, _ = self._holder(known_key, session, REVISION, address)
        if caller is None:
            raise _ended()
        await self.authenticator.audit.keys.ready(caller.tenant)
        return caller

    async def end(self, token: str, caller: Caller, request: RequestInfo) -> None:
        """End a session that was resumed; its token is worth nothing from now on."""
        tenant, key_id, session_id = token.split(".", 2)
        try:
            await self.sessions.end(_owner(tenant, key_id), session_id)
        except NotFoundError:
            return  # another request of the same browser has ended it
        await self._record(caller, "console.sign_out", request)

    async def authenticate(self, bearer: str | None, address: str | None) -> Caller:
        """Return whose session it is: what the edge asks before it reads a body."""
        return await self.resume(bearer, address)

    async def acting(self, caller: Caller, names: Sequence[bytes], request: RequestInfo) -> Caller:
        """Return the caller, for the end user that the request names, as everywhere."""
        return await self.authenticator.acting(caller, names, request)

    async def refuse(
        self, caller: Caller, roles: Collection[Role], action: str, request: RequestInfo
    ) -> None:
        """Raise ForbiddenError, on record as ``action``: the caller has none of ``roles``."""
        await self.authenticator.refuse(caller, roles, action, request)

    def _holder(
        self, known_key: KnownKey | None, session: Session, revision: str, address: str | None
    ) -> tuple[Caller | None, str]:
        """Return who holds the secret that a session was begun with, None where it is worth nothing; and its digest."""
        moment, digest = self.sessions.now(), str(session.preferences.get(_SECRET, ""))
        if session.revision != revision or moment >= _end_of(session.preferences.get(_UNTIL)):
            return None, digest
        if known_key is None:
            return self.authenticator.anonymous, digest
        return known_key.caller_of(bytes.fromhex(digest), address, moment), digest

    async def _begin(self, caller: Caller, digest: str, request: RequestInfo) -> tuple[Caller, str]:
        data = {_SECRET: digest, _UNTIL: (self.sessions.now() + LONGEST).timestamp()}
        session = await self.sessions.start(_owner(caller.tenant, caller.key_id), REVISION, data)
        await self._record(caller, "console.sign_in", request)
        return caller, f"{caller.tenant}.{caller.key_id}.{session.id}"

    async def _record(self, caller: Caller, action: str, request: RequestInfo) -> None:
        await self.audit.record(self.audit.new_event(caller, action, OUTCOME_OK, request))


def form_token(token: str) -> str:
    """Return what each form of a session carries: nobody without the session's own token can make it."""
    return hashlib.sha256(b"console form\0" + token.encode("utf-8", "surrogatepass")).hexdigest()


def _owner(tenant: str, key_id: str, kind: str = OWNER) -> Caller:
    return Caller(tenant, kind + key_id, frozenset())


def _end_of(timestamp: object) -> datetime:
    is_time = isinstance(timestamp, int | float) and math.isfinite(timestamp)
    return datetime.fromtimestamp(float(timestamp) if is_time else 0.0, UTC)  # type: ignore[arg-type]


def _ended() -> UnauthenticatedError:
    return UnauthenticatedError("Your session has ended. Sign in again.")


def _spent() -> UnauthenticatedError:
    return UnauthenticatedError("This link was used, or is too old.")
