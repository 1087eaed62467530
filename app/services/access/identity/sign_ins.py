"""Sign people of an issuer in to the console: authorization code with PKCE (OpenID Connect Core, RFC 7636, RFC 9207).

What a browser brings back is checked against a cookie of its own, works once and within ten minutes. A session counts
for as long as a token of the issuer would, and under the rules that mapped it; then the browser signs in anew, which
the issuer answers without a word while the person is signed in there.
"""

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from app.core.access import SYSTEM_TENANT, Caller
from app.core.addresses import is_within, scheme_of
from app.core.audit import OUTCOME_OK
from app.core.errors import ForbiddenError, NotFoundError, OverloadedError, UnauthenticatedError
from app.core.identities import ConsoleClient, MappingRule, issuer_id
from app.core.request import RequestInfo
from app.core.tokens import CallerRefusedError, TokenRefusedError, VerifiedToken
from app.services.access.credentials import Authenticator
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.sessions import SessionService
from app.services.access.token_callers import TokenCallers
from app.services.caching import ShortMemory
from app.upstream.issuers import IssuerClient, IssuerDownError

SIGN_IN_S: Final = 600
"""How long a browser has between leaving for the issuer and coming back."""
OWNER: Final = "console:"
"""What stands before the id of a person or key in the owner of a session, so that no MCP client can join it."""
_REVISION: Final = "console identity"
_SLOT: Final = re.compile(r"[A-Za-z0-9_-]")
_METADATA_S: Final = 300.0
_METADATA_RETRY_S: Final = 5.0
_MOST: Final = 4096
_ISSUER, _SUBJECT, _SID, _SINCE, _UNTIL = "issuer", "subject", "sid", "since", "until"
_RULES, _FITTING, _NAME = "rules", "fitting", "name"

log = logging.getLogger("sluice.identity")


class Departure(NamedTuple):
    """Where a browser goes to sign in, and the cookie that it comes back with; ``secure``: over TLS alone.

    ``slot`` is a character that tells this sign-in from others of the same browser.
    """

    address: str
    cookie: str
    secure: bool
    slot: str


class Arrival(NamedTuple):
    """Who has signed in, the token of their session, and the page that they wanted."""

    caller: Caller
    token: str
    following: str
    secure: bool


@dataclass(frozen=True, slots=True)
class _Begun:
    issuer: str
    state: str
    following: str
    until: float


@dataclass(frozen=True, slots=True)
class IdentitySignIns:
    """Begins, finishes and resumes the sessions of people whom the issuers of ``callers`` know."""

    client: IssuerClient
    callers: TokenCallers
    sessions: SessionService
    authenticator: Authenticator
    metadata: ShortMemory[str, Mapping[str, Any]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_METADATA_S, size=100)
    )

    async def ready(self) -> None:
        """Read again which issuers are trusted, where that may have changed."""
        await self.callers.ready()

    def offered(self) -> list[tuple[str, str]]:
        """Return the id and the name of each issuer with which people may sign in."""
        return [(issuer_id(name), client.name) for name, client in self._clients.items()]

    async def begin(self, offered: str, following: str, *, quiet: bool = False) -> Departure:
        """Return where to sign in with an issuer; ``quiet``: without a question, or not at all.

        Raises NotFoundError for an issuer that is not offered, OverloadedError where it does not answer.
        """
        await self.ready()
        name = next((name for name in self._clients if issuer_id(name) == offered), None)
        if name is None:
            raise NotFoundError("There is no such way to sign in.")
        client = self._clients[name]
        address = await self._place(name, "authorization_endpoint")
        await self._ready()
        begun = _Begun(name, secrets.token_urlsafe(32), following, self._now() + SIGN_IN_S)
        challenge = hashlib.sha256(self._derived(b"verifier", begun.state).encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": client.redirect_uri,
            "scope": " ".join(client.scopes),
            "state": begun.state,
            "nonce": self._derived(b"nonce", begun.state),
            "code_challenge": _base64url(challenge),
            "code_challenge_method": "S256",
            **({"prompt": "none"} if quiet else {}),
        }
        joint = "&" if urlsplit(address).query else "?"
        text = _base64url(json.dumps(asdict(begun)).encode())
        cookie = f"{text}.{self._derived(b'cookie', text)}"
        place = f"{address}{joint}{urlencode(asked)}"
        return Departure(place, cookie, _is_https(client), slot_of(begun.state))

    async def finish(self, cookie: str | None, answer: Mapping[str, str], request: RequestInfo) -> Arrival:
        """Return who came back from an issuer, whose session has begun and is on record.

        Raises UnauthenticatedError for what is not the answer to a sign-in of this browser, was used before or names
        nobody; ForbiddenError where no rule maps the person; OverloadedError where the issuer does not answer.
        """
        await self.ready()
        await self._ready()
        begun = self._begun(cookie)
        if begun is None or not hmac.compare_digest(answer.get("state", "").encode(), begun.state.encode()):
            raise _unfinished()
        client, keys = self._clients[begun.issuer], self._keys_of(begun.issuer)
        metadata = await self._metadata(begun.issuer)
        # Who is led here by another issuer than the one that was asked must not be signed in (RFC 9207).
        needed = metadata.get("authorization_response_iss_parameter_supported") is True
        if answer.get("iss", None if needed else begun.issuer) != begun.issuer:
            raise _unfinished()
        code = answer.get("code", "")
        if "error" in answer or not 1 <= len(code) <= _MOST:
            raise UnauthenticatedError("Your identity provider has not signed you in.")
        token = await self._redeemed(begun, client, code)
        try:
            verified = await self._verified(keys, client, token, begun)
        except TokenRefusedError as error:
            log.warning("issuer %s gave an ID token that is not taken: %s", begun.issuer, error.reason)
            raise UnauthenticatedError("What your identity provider says of you is not valid here.") from None
        ends = self.callers.ends
        async with self.callers.database.system_transaction() as tx:
            if not await ends.spend(tx, begun.issuer, begun.state, begun.until):
                raise _unfinished()
        caller, session = await self._begin_session(keys, verified, request)
        return Arrival(caller, session, begun.following, _is_https(client))

    async def resume(self, token: str, address: str | None, *, is_use: bool = True) -> Caller:
        """Return whose session ``token`` names, or raise UnauthenticatedError; ``is_use`` as for keys.

        Its detail ``renew`` names the issuer where the session is only too old, or the rules are no longer the same.
        """
        tenant, key_id, session_id = token.split(".", 2)
        await self.ready()
        try:
            find = self.sessions.resume if is_use else self.sessions.look
            session = await find(Caller(tenant, OWNER + key_id, frozenset()), session_id)
        except NotFoundError:
            raise _ended() from None
        data = session.preferences
        issuer = data.get(_ISSUER)
        if session.revision != _REVISION or issuer not in self._clients:
            raise _ended()
        keys = self._keys_of(issuer)
        rules = await self.callers.rules_of(keys.issuer)
        if self._now() >= data[_UNTIL] or data[_RULES] != _digest_of(rules):
            raise _ended(renew=issuer_id(issuer))
        claims = {"sub": data[_SUBJECT], "sid": data.get(_SID), "iat": data[_SINCE]}
        mirror = keys.issuer.provisioning
        claims |= {mirror.claim: data.get(_NAME)} if mirror is not None else {}
        verified = VerifiedToken(claims, data[_UNTIL])
        # Which groups of the mirror the person is in is asked anew, whatever claims they came with.
        fitting = [rules[number] for number in data[_FITTING]]
        caller = await self._caller(keys, verified, fitting, address)
        if (caller.tenant, caller.key_id) != (tenant, key_id):
            raise _ended()
        return caller

    @property
    def _clients(self) -> dict[str, ConsoleClient]:
        return {
            keys.issuer.issuer: keys.issuer.console
            for keys in self.callers.trusted
            if keys.issuer.console is not None
        }

    def _keys_of(self, issuer: str) -> IssuerKeys:
        keys = self.callers.keys_of(issuer)
        if keys is None:
            raise _ended()
        return keys

    def _now(self) -> float:
        return self.sessions.now().timestamp()

    async def _ready(self) -> None:
        await self.authenticator.audit.keys.ready(SYSTEM_TENANT)

    def _derived(self, purpose: bytes, text: str) -> str:
        """Return what only this installation makes of a text: nothing of a sign-in under way has to be stored."""
        return self.authenticator.audit.digest(SYSTEM_TENANT, b"sign-in " + purpose + b"\0" + text.encode())

    def _begun(self, cookie: str | None) -> _Begun | None:
        """Return the sign-in that this browser has begun, None where there is none or it is too old."""
        text, _, code = (cookie or "").partition(".")
        if len(text) > _MOST or not hmac.compare_digest(
            self._derived(b"cookie", text).encode(), code.encode("utf-8", "surrogatepass")
        ):
            return None
        begun = _Begun(**json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
        return begun if begun.issuer in self._clients and self._now() < begun.until else None

    async def _metadata(self, issuer: str) -> Mapping[str, Any]:
        try:
            metadata = await self.metadata.get(issuer, self.client.metadata)
        except IssuerDownError as error:
            log.warning("issuer %s does not say where to sign in: %s", issuer, error)
            raise _no_answer() from None
        return metadata or {}

    async def _place(self, issuer: str, name: str) -> str:
        address = (await self._metadata(issuer)).get(name)
        if scheme_of(address) not in {"https", urlsplit(issuer).scheme}:
            raise _no_answer()
        return str(address)

    async def _redeemed(self, begun: _Begun, client: ConsoleClient, code: str) -> str:
        """Return the ID token for an authorization code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": self._derived(b"verifier", begun.state),
        }
        try:
            granted = await self.client.redeemed(
                await self._place(begun.issuer, "token_endpoint"), client, form
            )
        except IssuerDownError as error:
            log.warning("issuer %s gave nothing for a code: %s", begun.issuer, error)
            raise UnauthenticatedError("Your identity provider did not confirm the sign-in.") from None
        token = granted.get("id_token") if isinstance(granted, dict) else None
        if not isinstance(token, str):
            raise UnauthenticatedError("Your identity provider did not say who you are.")
        return token

    async def _verified(
        self, keys: IssuerKeys, client: ConsoleClient, token: str, begun: _Begun
    ) -> VerifiedToken:
        """Return the claims of an ID token for this sign-in (OpenID Connect Core, 3.1.3.7)."""
        reader = self.callers.reader
        head = reader.head(token)
        issuer = replace(keys.issuer, audience=frozenset({client.client_id}))
        verified = reader.verified(token, head, await keys.candidates(head), issuer, self._now())
        claims, nonce = verified.claims, verified.claims.get("nonce")
        expected = self._derived(b"nonce", begun.state)
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), expected.encode()):
            raise TokenRefusedError("token")
        party = None if isinstance(claims["aud"], list) and len(claims["aud"]) > 1 else client.client_id
        if claims.get("azp", party) != client.client_id:
            raise TokenRefusedError("audience")
        return verified

    async def _begin_session(
        self, keys: IssuerKeys, verified: VerifiedToken, request: RequestInfo
    ) -> tuple[Caller, str]:
        issuer, claims = keys.issuer, verified.claims
        rules = await self.callers.rules_of(issuer)
        fitting = [number for number, rule in enumerate(rules) if not rule.missing(claims)]
        if (await self.callers.first_of(issuer, [rules[number] for number in fitting], claims)).rule is None:
            self.authenticator.refused.note("unmapped", request.address, self.sessions.now())
            raise ForbiddenError("No rule gives you a role here; ask whoever runs this service.")
        caller = await self._caller(keys, verified, [rules[number] for number in fitting], request.address)
        session = await self.sessions.start(
            Caller(caller.tenant, OWNER + caller.key_id, frozenset()),
            _REVISION,
            {
                _ISSUER: issuer.issuer,
                _SUBJECT: claims["sub"],
                _SID: claims.get("sid"),
                _SINCE: claims["iat"],
                _UNTIL: claims["iat"] + issuer.max_token_age_s + issuer.leeway_s,
                _RULES: _digest_of(rules),
                _FITTING: fitting,
                _NAME: claims.get(issuer.provisioning.claim) if issuer.provisioning is not None else None,
            },
        )
        audit = self.authenticator.audit
        await audit.record(audit.new_event(caller, "console.sign_in", OUTCOME_OK, request))
        return caller, f"{caller.tenant}.{caller.key_id}.{session.id}"

    async def _caller(
        self, keys: IssuerKeys, verified: VerifiedToken, fitting: Sequence[MappingRule], address: str | None
    ) -> Caller:
        """Return whom the first rule whose groups fit makes the person; ``fitting`` are those whose claims do."""
        try:
            claims = verified.claims
            mapped = await self.callers.first_of(keys.issuer, fitting, claims, checked=True)
            person = await self.callers.identified(keys.issuer, verified, mapped)
        except CallerRefusedError as error:
            self.authenticator.refused.note(error.reason, address, self.sessions.now(), error.caller)
            raise _ended() from None
        if person.networks and not is_within(address, person.networks):
            self.authenticator.refused.note("address", address, self.sessions.now(), person.caller)
            raise _ended()
        return person.caller


def slot_of(state: str) -> str:
    """Return the character of a state by which a browser keeps the sign-in, for any text."""
    return state[0] if _SLOT.match(state) else "0"


def _digest_of(rules: Sequence[MappingRule]) -> str:
    """Return a digest by which a session finds out whether the rules are still those that mapped it."""
    listed = [
        [
            *(sorted(rule.when.items()), sorted(rule.groups), rule.tenant),
            *(sorted(rule.roles), sorted(rule.grants), rule.networks),
        ]
        for rule in rules
    ]
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _is_https(client: ConsoleClient) -> bool:
    return urlsplit(client.redirect_uri).scheme == "https"


def _unfinished() -> UnauthenticatedError:
    return UnauthenticatedError(
        "This sign-in was not begun in this browser, took longer than ten minutes, or was used already. Begin again."
    )


def _ended(**details: str) -> UnauthenticatedError:
    return UnauthenticatedError("Your session has ended. Sign in again.", details=details)


def _no_answer() -> OverloadedError:
    return OverloadedError(
        "Your identity provider does not answer; try again shortly.", retry_after_s=_METADATA_RETRY_S
    )
