"""A console whose people an issuer knows: how a browser signs in there."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from httpx2 import Response

from app.core.access import Role
from app.core.identities import ConsoleClient, MappingRule, TrustedIssuer, issuer_id
from tests.integration.console_app import Browser, Console, text_of
from tests.integration.rest_app import Rest
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer

SIGN_IN = "/console/sign-in"
RETURN = f"{SIGN_IN}/return"


@dataclass
class Clock:
    shift: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.shift


@dataclass(frozen=True)
class Company:
    """A console whose people an issuer knows."""

    console: Console
    issuer: Issuer
    clock: Clock

    @property
    def leaving(self) -> str:
        return f"{SIGN_IN}/with/{issuer_id(self.issuer.url)}"

    async def asked(self, browser: Browser, following: str = "") -> dict[str, str]:
        """Leave for the issuer; return what it is asked."""
        answer = await browser.open(f"{self.leaving}?next={following}")
        assert answer.status_code == 303, text_of(answer)
        place = urlsplit(answer.headers["location"])
        assert f"{place.scheme}://{place.netloc}{place.path}" == f"{self.issuer.url}/authorize"
        return dict(parse_qsl(place.query))

    def id_token(self, asked: dict[str, str], **changed: Any) -> str:
        """Return the ID token for a sign-in."""
        own = {"aud": "sluice", "nonce": asked["nonce"], "sid": "session of ada", **changed}
        return self.issuer.token(header={"typ": "JWT"}, **own)

    async def back(
        self, browser: Browser, asked: dict[str, str], token: str, code: str = "code", **query: str
    ) -> Response:
        """Come back with a code that is worth ``token``."""
        self.issuer.codes[code] = (asked["code_challenge"], {"id_token": token, "token_type": "Bearer"})
        sent = {"code": code, "state": asked["state"], **query}
        browser.shown = await browser.http.get(RETURN, params=sent)
        return browser.shown

    async def signed_in(self, browser: Browser, **changed: Any) -> None:
        """Sign ada in."""
        asked = await self.asked(browser)
        answer = await self.back(browser, asked, self.id_token(asked, **changed))
        assert answer.status_code == 200, text_of(answer)


def trusted(issuer: Issuer) -> Callable[[Rest], TrustedIssuer]:
    client = ConsoleClient("sluice", f"http://localhost:8000{RETURN}", "Example login", SECRET)

    def of(rest: Rest) -> TrustedIssuer:
        rules = (
            MappingRule(
                {"groups": "auditors"}, rest.tenant, frozenset({Role.AUDITOR}), networks=("127.0.0.0/8",)
            ),
            MappingRule({"groups": "llm-users"}, rest.tenant, frozenset({Role.INVOKER})),
        )
        return TrustedIssuer(issuer.url, frozenset({AUDIENCE}), rules, console=client, tenants=(rest.tenant,))

    return of


async def events(company: Company, action: str) -> list[dict[str, Any]]:
    await company.console.rest.services.authenticator.record_refused()
    answer = await company.console.rest.call(
        "GET", f"/api/v1/audit/events?action={action}", roles=[Role.AUDITOR]
    )
    listed: list[dict[str, Any]] = answer.json()["items"]
    return listed
