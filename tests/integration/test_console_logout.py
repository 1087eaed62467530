"""Back-channel logout: an issuer ends sessions, tokens and nothing else, once, with a token that is nothing else."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from httpx2 import Response
from joserfc import jwt
from joserfc.jwk import OctKey

from app.core.access import Role
from app.core.errors import UnauthenticatedError
from app.core.events import Changed
from app.services.access.identity.ends import IDENTITY_ENDED
from app.services.access.identity.logouts import EVENT
from app.services.caching import ShortMemory
from app.store.access.identity_marks import ended_at, remove_old_marks
from app.store.changes import Changes
from tests.integration.console_app import open_console
from tests.integration.console_people import Clock, Company, events, trusted
from tests.integration.token_issuer import AUDIENCE, Issuer, new_key, token_issuer

pytestmark = pytest.mark.in_turn("database_url")

LOGOUT = "/console/logout"
INVOKE = "/api/v1/middleware/timestamp_injector/invoke"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def company(database_url: str, issuer: Issuer) -> AsyncIterator[Company]:
    clock = Clock()
    async with open_console(database_url, trusted=trusted(issuer), now=clock.now) as console:
        yield Company(console, issuer, clock)


def claims_of(issuer: Issuer, **changed: Any) -> dict[str, Any]:
    """Return the claims of a good logout token; None leaves one out."""
    own = {"aud": "sluice", "groups": None, "jti": "first", "events": {EVENT: {}}}
    return issuer.claims(**{**own, **changed})


def logout_token(issuer: Issuer, typ: str = "logout+jwt", **changed: Any) -> str:
    head = {"alg": "ES256", "kid": issuer.key.kid, "typ": typ}
    return jwt.encode(head, claims_of(issuer, **changed), issuer.key, algorithms=["ES256"])


async def told(company: Company, token: str) -> Response:
    async with company.console.browsing() as browser:
        return await browser.http.post(LOGOUT, data={"logout_token": token})


async def called(company: Company, token: str) -> int:
    """Return what the REST door answers to a token."""
    async with company.console.browsing() as browser:
        body = {"context": [{"type": "text", "text": "Ada called."}]}
        answer = await browser.http.post(INVOKE, json=body, headers={"authorization": f"Bearer {token}"})
        return answer.status_code


async def gate(company: Company, token: str) -> str:
    """Return who presents a token, as the edge asks."""
    caller = await company.console.sessions.authenticator.authenticate(token, "127.0.0.1")
    return caller.key_id


async def test_a_logout_ends_the_sessions_and_the_tokens_of_its_subject(company: Company) -> None:
    now = int(time.time())
    mine, other = company.issuer.token(iat=now - 5), company.issuer.token(sub="grace", iat=now - 5)
    async with company.console.browsing() as browser:
        await company.signed_in(browser, iat=now - 5)
        assert (await browser.open("/console/")).status_code == 200
        who = await gate(company, mine)
        await gate(company, other)
        answer = await told(company, logout_token(company.issuer, iat=now - 4))
        assert (answer.status_code, answer.content) == (200, b"")
        assert "no-store" in answer.headers["cache-control"]
        assert (await browser.open("/console/")).status_code == 303
        assert await called(company, mine) == 401
        with pytest.raises(UnauthenticatedError):
            await gate(company, mine)
        await gate(company, other)
        assert await gate(company, company.issuer.token(iat=now - 3)) == who
        await company.signed_in(browser, iat=now - 3)
        assert (await browser.open("/console/")).status_code == 200


async def test_a_logout_of_a_session_ends_that_one_alone(company: Company) -> None:
    token, bound = company.issuer.token(), company.issuer.token(sid="session of ada")
    async with company.console.browsing() as here, company.console.browsing() as there:
        await company.signed_in(here)
        await company.signed_in(there, sid="another session of ada")
        await gate(company, token)
        await gate(company, bound)
        assert (
            await told(company, logout_token(company.issuer, sub=None, sid="session of ada"))
        ).status_code == 200
        assert (await here.open("/console/")).status_code == 303
        assert (await there.open("/console/")).status_code == 200
        await gate(company, token)
        with pytest.raises(UnauthenticatedError):
            await gate(company, bound)


async def test_a_logout_token_works_once(company: Company) -> None:
    token = logout_token(company.issuer, iat=int(time.time()) - 5)
    assert (await told(company, token)).status_code == 200
    again = await told(company, token)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_request")
    # Not even where it says another moment under the same name.
    assert (await told(company, logout_token(company.issuer))).status_code == 400
    assert (await told(company, logout_token(company.issuer, jti="second"))).status_code == 200


def unsigned(issuer: Issuer) -> str:
    parts = [{"alg": "none", "typ": "logout+jwt"}, claims_of(issuer)]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts]
    return b".".join([*encoded, b""]).decode()


def confused(issuer: Issuer) -> str:
    public = OctKey.import_key(json.dumps(issuer.key.as_dict(private=False)).encode())
    return jwt.encode({"alg": "HS256", "typ": "logout+jwt", "kid": "first"}, claims_of(issuer), public)


FAULTS: dict[str, Callable[[Issuer], str]] = {
    "with a nonce": lambda i: logout_token(i, nonce="n"),
    "an ID token": lambda i: logout_token(i, "JWT", events=None),
    "an access token": lambda i: logout_token(i, "at+jwt"),
    "without the event": lambda i: logout_token(i, events={"http://example.org/other": {}}),
    "an event that is no object": lambda i: logout_token(i, events={EVENT: True}),
    "events in a list": lambda i: logout_token(i, events=[EVENT]),
    "without a name": lambda i: logout_token(i, jti=None),
    "a name that is no text": lambda i: logout_token(i, jti=7),
    "of nobody": lambda i: logout_token(i, sub=None),
    "a session that is no text": lambda i: logout_token(i, sub=None, sid=7),
    "a subject that is no text": lambda i: logout_token(i, sub=["ada"]),
    "for another client": lambda i: logout_token(i, aud="another"),
    "for a door": lambda i: logout_token(i, aud=AUDIENCE),
    "of another issuer": lambda i: logout_token(i, iss="https://login.example.org"),
    "over": lambda i: logout_token(i, exp=int(time.time()) - 60),
    "without an end": lambda i: logout_token(i, exp=None),
    "of yesterday": lambda i: logout_token(i, iat=int(time.time()) - 86_400),
    "of tomorrow": lambda i: logout_token(i, iat=int(time.time()) + 86_400),
    "unsigned": unsigned,
    "signed with the public key": confused,
    "signed by a stranger": lambda i: i.token(
        key=new_key("first"), header={"typ": "logout+jwt"}, aud="sluice", jti="x", events={EVENT: {}}
    ),
    "nothing": lambda _: "",
}


async def test_what_is_no_logout_token_ends_nobody(company: Company) -> None:
    async with company.console.browsing() as browser:
        await company.signed_in(browser)
        token = company.issuer.token()
        await gate(company, token)
        for fault, made in FAULTS.items():
            assert (await told(company, made(company.issuer))).status_code == 400, fault
        assert (await browser.http.post(LOGOUT, data={"token": "x"})).status_code == 400
        assert (await browser.open("/console/")).status_code == 200
        await gate(company, token)
        # And each of them was refused for its fault alone.
        assert (await told(company, logout_token(company.issuer))).status_code == 200
        assert (await browser.open("/console/")).status_code == 303


async def test_every_process_hears_of_a_logout(company: Company) -> None:
    """What another process remembers of a token goes with the announcement, and does not come again."""
    here = company.console.sessions.authenticator
    assert here.tokens is not None
    there = replace(here, tokens=replace(here.tokens, memory=ShortMemory(ttl_s=1e9, size=10)))
    token = company.issuer.token(iat=int(time.time()) - 5)
    other = company.issuer.token(iat=int(time.time()) - 5, sub="grace")
    arrived: asyncio.Queue[Changed] = asyncio.Queue()
    async with Changes(here.database).running() as changes:
        changes.subscribe(arrived.put_nowait)
        for presented in (token, other):
            await there.authenticate(presented, "127.0.0.1")
        assert (await told(company, logout_token(company.issuer))).status_code == 200
        while (changed := await asyncio.wait_for(arrived.get(), 30)).kind != IDENTITY_ENDED:
            pass
    await there.authenticate(token, "127.0.0.1")
    there.changed(changed)
    with pytest.raises(UnauthenticatedError):
        await there.authenticate(token, "127.0.0.1")
    await there.authenticate(other, "127.0.0.1")


async def test_a_logout_is_forgotten_when_nothing_from_before_counts(company: Company) -> None:
    now = int(time.time())
    assert (await told(company, logout_token(company.issuer, iat=now))).status_code == 200
    callers = company.console.sessions.authenticator.tokens
    assert callers is not None
    marks = await callers.ends.marks_of(company.issuer.url, {"sub": "ada"})
    for after, noted in ((600 + 30, float(now)), (600 + 4 * 30 + 1, None)):
        async with callers.database.system_transaction() as tx:
            await remove_old_marks(tx, datetime.fromtimestamp(now + after, UTC))
        async with callers.database.system_transaction(write=False) as tx:
            assert await ended_at(tx, marks) == noted


async def test_a_logout_is_on_record_without_a_name(company: Company) -> None:
    assert (await told(company, logout_token(company.issuer))).status_code == 200
    answer = await company.console.rest.call(
        "GET", "/api/v1/audit/events?action=identity.logout", roles=[Role.AUDITOR], tenant="system"
    )
    [event] = [e for e in answer.json()["items"] if e["on_behalf_of"]][-1:]
    assert (event["actor"], event["outcome"]) == ("issuer", "ok") and '"ada"' not in json.dumps(event)
    assert not await events(company, "identity.logout")
