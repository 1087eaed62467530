"""Signing in to the console with an identity provider: by its rules, once, and for no longer than it says."""

import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from app.core.access import Caller, Role
from app.services.access.access import HOST
from tests.integration.console_app import navigation, open_console, text_of
from tests.integration.console_people import RETURN, SIGN_IN, Clock, Company, events, trusted
from tests.integration.token_issuer import AUDIENCE, Issuer, new_key, send, token_issuer

pytestmark = pytest.mark.in_turn("database_url")


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def company(database_url: str, issuer: Issuer) -> AsyncIterator[Company]:
    clock = Clock()
    async with open_console(database_url, trusted=trusted(issuer), now=clock.now) as console:
        yield Company(console, issuer, clock)


async def test_a_person_signs_in_with_the_roles_of_their_groups(company: Company) -> None:
    async with company.console.browsing() as browser:
        shown = await browser.open(SIGN_IN)
        assert f'href="{company.leaving}?next=/console/"' in shown.text and "Example login" in shown.text
        asked = await company.asked(browser, "/console/audit%3Foutcome=ok")
        assert {name: asked[name] for name in ("response_type", "client_id", "scope", "redirect_uri")} == {
            "response_type": "code",
            "client_id": "sluice",
            "scope": "openid",
            "redirect_uri": f"http://localhost:8000{RETURN}",
        }
        assert asked["code_challenge_method"] == "S256" and "prompt" not in asked
        state = next(v for v in browser.shown.headers.get_list("set-cookie"))  # type: ignore[union-attr]
        assert {"HttpOnly", "SameSite=lax", "Path=/console/sign-in", "Max-Age=600"} <= set(state.split("; "))
        token = company.id_token(asked, groups=["auditors"])
        answer = await company.back(browser, asked, token, iss=company.issuer.url)
        assert answer.status_code == 200
        assert 'content="0;url=/console/audit?outcome=ok"' in answer.text
        cookies = {v.partition("=")[0]: v for v in answer.headers.get_list("set-cookie")}
        assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookies["sluice_console"].split("; "))
        assert "Max-Age=0" in cookies[f"sluice_identity_{asked['state'][0]}"]
        page = await browser.open("/console/audit")
        assert page.status_code == 200 and "Audit" in navigation(page) and "Access" not in navigation(page)
        [event] = await events(company, "console.sign_in")
        assert event["actor"].startswith("sub-") and '"ada"' not in json.dumps(event)
        await browser.send("/console/sign-out")
        assert (await browser.open("/console/")).headers["location"] == SIGN_IN


def none_of(company: Company, asked: dict[str, str]) -> str:
    head, claims = ({"alg": "none", "typ": "JWT"}, company.issuer.claims(aud="sluice", nonce=asked["nonce"]))
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (head, claims)]
    return b".".join([*parts, b""]).decode()


def confused(company: Company, asked: dict[str, str]) -> str:
    public = json.dumps(company.issuer.key.as_dict(private=False)).encode()
    claims = company.issuer.claims(aud="sluice", nonce=asked["nonce"])
    return jwt.encode({"alg": "HS256", "typ": "JWT", "kid": "first"}, claims, OctKey.import_key(public))


TOKENS: dict[str, Callable[[Company, dict[str, str]], str]] = {
    "no nonce": lambda c, asked: c.id_token(asked, nonce=None),
    "another nonce": lambda c, asked: c.id_token(asked, nonce=asked["state"]),
    "a nonce that is no text": lambda c, asked: c.id_token(asked, nonce=[asked["nonce"]]),
    "for another client": lambda c, asked: c.id_token(asked, aud="another"),
    "an access token": lambda c, asked: c.id_token(asked, aud=AUDIENCE),
    "for two, and used by neither": lambda c, asked: c.id_token(asked, aud=["sluice", "another"]),
    "used by another": lambda c, asked: c.id_token(asked, azp="another"),
    "of another issuer": lambda c, asked: c.id_token(asked, iss="https://login.example.org"),
    "over": lambda c, asked: c.id_token(asked, exp=int(time.time()) - 60),
    "of tomorrow": lambda c, asked: c.id_token(asked, iat=int(time.time()) + 86_400),
    "of yesterday": lambda c, asked: c.id_token(asked, iat=int(time.time()) - 86_400),
    "unsigned": none_of,
    "signed with the public key": confused,
    "signed by a stranger": lambda c, asked: c.issuer.token(
        key=new_key("first"), header={"typ": "JWT"}, aud="sluice", nonce=asked["nonce"]
    ),
    "a logout token": lambda c, asked: c.issuer.token(
        header={"typ": "logout+jwt"}, aud="sluice", nonce=asked["nonce"]
    ),
    "nothing": lambda *_: "",
}


async def test_what_is_no_id_token_for_this_sign_in_opens_nothing(company: Company) -> None:
    async with company.console.browsing() as browser:
        for fault, made in TOKENS.items():
            asked = await company.asked(browser)
            answer = await company.back(browser, asked, made(company, asked))
            assert answer.status_code == 401, fault
            assert "sluice_console" not in browser.http.cookies, fault
        assert (await browser.open("/console/")).headers["location"] == SIGN_IN
        asked = await company.asked(browser)
        assert (await company.back(browser, asked, company.id_token(asked))).status_code == 200


async def test_a_return_that_this_browser_did_not_begin_opens_nothing(company: Company) -> None:
    url = company.issuer.url
    queries: tuple[dict[str, str], ...] = (
        {"state": "another"},
        {"iss": "https://login.example.org"},
        {"error": "access_denied"},
        {"code": ""},
    )
    for query in queries:
        async with company.console.browsing() as browser:
            asked = await company.asked(browser)
            answer = await company.back(browser, asked, company.id_token(asked), **query)
            assert answer.status_code == 401, query
    async with company.console.browsing() as browser, company.console.browsing() as other:
        asked = await company.asked(browser)
        await company.asked(other)
        # What was begun here comes back there: somebody else's account would be signed in.
        assert (await company.back(other, asked, company.id_token(asked))).status_code == 401
        name = f"sluice_identity_{asked['state'][0]}"
        cookie = browser.http.cookies[name]
        for changed in (cookie[:-1] + ("0" if cookie[-1] != "0" else "1"), "x" + cookie, "", "."):
            browser.http.cookies.clear()
            sent = {"cookie": f"{name}={changed}"}
            company.issuer.codes["code"] = (asked["code_challenge"], {"id_token": company.id_token(asked)})
            answer = await browser.open(f"{RETURN}?code=code&state={asked['state']}&iss={url}", **sent)
            assert answer.status_code == 401, changed
        answer = await browser.open(
            f"{RETURN}?code=code&state={asked['state']}&iss={url}", cookie=f"{name}={cookie}"
        )
        assert answer.status_code == 200


async def test_tabs_that_sign_in_at_once_keep_out_of_each_others_way(company: Company) -> None:
    async with company.console.browsing() as browser:
        first = await company.asked(browser, "/console/audit")
        second = await company.asked(browser)
        while second["state"][0] == first["state"][0]:  # one in 64 takes the other's place
            second = await company.asked(browser)
        # What was never begun here takes nothing away either.
        assert (await browser.open(f"{RETURN}?code=code&state=~{first['state']}")).status_code == 401
        answers = [
            await company.back(
                browser, tab, company.id_token(tab, groups=["auditors"]), iss=company.issuer.url
            )
            for tab in (first, second)
        ]
        assert [answer.status_code for answer in answers] == [200, 200]
        assert 'content="0;url=/console/audit"' in answers[0].text
        assert not [name for name in browser.http.cookies if name.startswith("sluice_identity")]
        again = await company.back(browser, first, company.id_token(first), iss=company.issuer.url)
        assert again.status_code == 401


async def test_a_sign_in_works_once_and_within_ten_minutes(company: Company) -> None:
    async with company.console.browsing() as browser:
        asked = await company.asked(browser)
        name = f"sluice_identity_{asked['state'][0]}"
        cookie = browser.http.cookies[name]
        assert (await company.back(browser, asked, company.id_token(asked))).status_code == 200
        # Even with the cookie, and a code that the issuer would take.
        browser.http.cookies.set(name, cookie, domain="localhost.local", path="/console/sign-in")
        again = await company.back(browser, asked, company.id_token(asked), code="second")
        assert again.status_code == 401
    async with company.console.browsing() as browser:
        asked = await company.asked(browser)
        company.clock.shift = timedelta(seconds=599)
        late = await company.back(browser, asked, company.id_token(asked, exp=int(time.time()) + 3600))
        assert late.status_code == 200
        company.clock.shift = timedelta()
        asked = await company.asked(browser)
        company.clock.shift = timedelta(seconds=601)
        late = await company.back(browser, asked, company.id_token(asked, exp=int(time.time()) + 3600))
        assert late.status_code == 401 and "ten minutes" in text_of(late)


async def test_an_issuer_that_promises_its_name_must_say_it(company: Company) -> None:
    metadata = company.issuer.documents["/.well-known/openid-configuration"]
    metadata["authorization_response_iss_parameter_supported"] = True
    async with company.console.browsing() as browser:
        asked = await company.asked(browser)
        assert (await company.back(browser, asked, company.id_token(asked))).status_code == 401
        asked = await company.asked(browser)
        answer = await company.back(browser, asked, company.id_token(asked), iss=company.issuer.url)
        assert answer.status_code == 200


async def test_whom_no_rule_maps_or_who_comes_from_elsewhere_stays_out(company: Company) -> None:
    async with company.console.browsing() as browser:
        asked = await company.asked(browser)
        answer = await company.back(browser, asked, company.id_token(asked, groups=["guests"]))
        assert (answer.status_code, "No rule" in text_of(answer)) == (403, True)
        assert "sluice_console" not in browser.http.cookies
    async with company.console.browsing(address="192.0.2.7") as browser:
        asked = await company.asked(browser)
        answer = await company.back(browser, asked, company.id_token(asked, groups=["auditors"]))
        assert answer.status_code == 401


async def test_a_session_is_renewed_by_the_issuer_and_not_without_it(company: Company) -> None:
    async with company.console.browsing() as browser:
        await company.signed_in(browser)
        company.clock.shift = timedelta(seconds=620)
        assert (await browser.open("/console/")).status_code == 200
        company.clock.shift = timedelta(seconds=640)
        answer = await browser.open("/console/playground")
        assert answer.headers["location"] == f"{company.leaving}?quiet=1&next=%2Fconsole%2Fplayground"
        form = await browser.send("/console/sign-out")
        assert form.status_code == 401
        asked = dict(
            parse_qsl(urlsplit((await browser.open(answer.headers["location"])).headers["location"]).query)
        )
        assert asked["prompt"] == "none"
        refused = await company.back(browser, asked, "", error="login_required")
        assert refused.status_code == 401 and "API key" in text_of(refused)


@pytest.mark.parametrize("change", ["tenant", "rules", "cookie", "network"])
async def test_a_session_is_worth_what_its_owner_is_worth_now(company: Company, change: str) -> None:
    async with company.console.browsing() as browser:
        await company.signed_in(browser, groups=["auditors"])
        assert (await browser.open("/console/audit")).status_code == 200
        rest, token = company.console.rest, browser.http.cookies["sluice_console"]
        if change == "tenant":
            await rest.services.tenants.disable(HOST, rest.tenant)
        elif change == "rules":
            rule = {"issuer": company.issuer.url, "when": {"groups": "x"}, "roles": ["invoker"]}
            assert (await rest.put_policy({"identity": {"rules": [rule]}})).status_code == 200
            people = company.console.sessions.people
            assert people is not None
            people.callers.forget_rules(None)
        elif change == "cookie":
            tenant, key, session = token.split(".")
            token = f"{tenant}.{key[:-1]}{'0' if key[-1] != '0' else '1'}.{session}"
            browser.http.cookies.clear()
        address = "192.0.2.7" if change == "network" else "127.0.0.1"
        async with company.console.browsing(address=address) as other:
            answer = await other.open("/console/audit", cookie=f"sluice_console={token}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith(company.leaving if change == "rules" else f"{SIGN_IN}?next")


async def test_an_issuer_that_is_down_says_so_and_leaves_keys_alone(company: Company) -> None:
    company.issuer.answer = lambda request: send(request, b"<html>", status=503)
    async with company.console.browsing() as browser:
        answer = await browser.open(company.leaving)
        assert answer.status_code == 503 and "does not answer" in text_of(answer)
        assert (await browser.sign_in(await company.console.rest.key(Role.INVOKER))).status_code == 303
        assert (await browser.open(f"{SIGN_IN}/with/{'0' * 16}")).status_code == 404
        company.issuer.answer = None
        asked = await company.asked(browser)
        company.issuer.answer = lambda request: send(request, b"[]")
        assert (await company.back(browser, asked, company.id_token(asked))).status_code in (401, 503)


async def test_a_session_belongs_to_the_console_alone(company: Company) -> None:
    async with company.console.browsing() as browser:
        await company.signed_in(browser)
        session = browser.http.cookies["sluice_console"]
        rest = company.console.rest
        for credential in (session, company.id_token({"nonce": "x"})):
            answer = await rest.http.post(
                "/api/v1/middleware/timestamp_injector/invoke",
                json={"context": []},
                headers={"authorization": f"Bearer {credential}"},
            )
            assert answer.status_code == 401
        sessions = company.console.sessions.sessions
        _tenant, key, id_ = session.split(".")
        with pytest.raises(Exception, match="no such session"):
            await sessions.resume(Caller(rest.tenant, key, frozenset()), id_)
