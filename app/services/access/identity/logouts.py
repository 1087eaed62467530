"""Back-channel logout: an issuer says that somebody has signed out (OpenID Connect Back-Channel Logout 1.0)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.core.access import SYSTEM_TENANT, Caller
from app.core.audit import OUTCOME_OK
from app.core.errors import InvalidArgumentsError
from app.core.identities import TrustedIssuer
from app.core.request import RequestInfo
from app.core.tokens import TokenRefusedError
from app.services.access.credentials import Authenticator
from app.services.access.token_callers import TokenCallers

EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"
_LONGEST_ID: Final = 512

log = logging.getLogger("sluice.identity")


@dataclass(frozen=True, slots=True)
class LogoutService:
    """Ends what issuers gave to whom their logout tokens name: sessions of the console, tokens, and open streams.

    A token that names a subject ends everything of it, one that names a session alone what belongs to that session.
    """

    callers: TokenCallers
    authenticator: Authenticator

    async def end(self, token: str, request: RequestInfo) -> None:
        """Take a logout token, once; all processes are told with the commit.

        Raises InvalidArgumentsError for what is no logout token of an issuer for this service, OverloadedError while
        the keys of the issuer have never been there.
        """
        try:
            issuer, claims = await self._verified(token)
        except TokenRefusedError as error:
            log.warning("a logout token is not taken: %s", error.reason)
            raise _refused() from None
        ends, at = self.callers.ends, float(claims["iat"])
        # Nothing that was issued before counts for longer.
        over = at + issuer.max_token_age_s + 4 * issuer.leeway_s
        named = {"sub": claims["sub"]} if "sub" in claims else {"sid": claims["sid"]}
        marks = await ends.marks_of(issuer.issuer, named)
        audit = self.authenticator.audit
        actor = Caller(SYSTEM_TENANT, "issuer", frozenset(), end_user=claims.get("sub"), issuer=issuer.issuer)
        event = audit.new_event(actor, "identity.logout", OUTCOME_OK, request)
        async with self.callers.database.system_transaction() as tx:
            if not await ends.spend(tx, issuer.issuer, claims["jti"], over):
                raise _refused()
            await ends.end(tx, marks, at, over)
            await audit.record_with(tx, event)
        for mark in marks:
            self.callers.forget_identity(mark)

    async def _verified(self, token: str) -> tuple[TrustedIssuer, Mapping[str, Any]]:
        """Return the issuer and the claims of a logout token, or raise TokenRefusedError."""
        reader = self.callers.reader
        head = reader.head(token, logout=True)
        await self.callers.ready()
        keys = self.callers.keys_of(head.issuer)
        if keys is None or keys.issuer.console is None:
            raise TokenRefusedError("issuer")
        issuer = replace(keys.issuer, audience=frozenset({keys.issuer.console.client_id}))
        now = self.authenticator.now().timestamp()
        claims = reader.logout(token, head, await keys.candidates(head), issuer, now).claims
        if not is_logout(claims):
            raise TokenRefusedError("token")
        return keys.issuer, claims


def is_logout(claims: Mapping[str, Any]) -> bool:
    """Return whether verified claims are those of a logout token (section 2.4): never those of an ID token."""
    events, named = claims.get("events"), [claims[name] for name in ("sub", "sid") if name in claims]
    return (
        isinstance(events, dict)
        and isinstance(events.get(EVENT), dict)
        and "nonce" not in claims
        and bool(named)
        and all(_is_id(name) for name in (*named, claims.get("jti")))
    )


def _is_id(name: Any) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= _LONGEST_ID


def _refused() -> InvalidArgumentsError:
    return InvalidArgumentsError("This is no logout token for this service, or one that was used before.")
