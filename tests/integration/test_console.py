"""The console through its door: signing in, what a session is worth, forms, and what a browser is told to refuse."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.core.access import Caller, Role
from app.core.errors import NotFoundError, UnauthenticatedError
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.access.console_sessions import LINK_LIFETIME, LONGEST, ConsoleSessions
from app.services.access.sessions import SessionService
from tests.integration.console_app import ORIGIN, Console, elements, navigation, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

ENDED = "/console/sign-in"


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def test_a_key_opens_a_session_that_signing_out_ends_for_good(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    async with console.browsing() as browser:
        asked = await browser.open("/console/")
        assert (asked.status_code, asked.headers["location"]) == (303, "/console/sign-in")
        answer = await browser.sign_in(key, "/console/audit?outcome=ok")
        assert (answer.status_code, answer.headers["location"]) == (303, "/console/audit?outcome=ok")
        cookie = next(value for value in answer.headers.get_list("set-cookie") if "sluice_console=" in value)
        assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert key.split("_", 2)[2] not in cookie
        shown = await browser.open("/console/")
        assert shown.status_code == 200
        kept = browser.http.cookies.get("sluice_console")
        left = await browser.send("/console/sign-out")
        assert (left.status_code, left.headers["location"]) == (303, "/console/sign-in")
        assert (await browser.open("/console/")).status_code == 303
        again = await browser.open("/console/", cookie=f"sluice_console={kept}")
        assert again.status_code == 303


async def test_a_session_over_tls_is_never_sent_without(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    limits = replace(console.guard.limits, allowed_origins=("https://localhost",))
    object.__setattr__(console.guard, "limits", limits)
    async with console.browsing() as browser:
        await browser.open(ENDED)
        answer = await browser.send(ENDED, {"key": key}, origin="https://localhost:8000")
    assert all("; Secure" in value for value in answer.headers.get_list("set-cookie") if "console=" in value)


async def test_what_is_no_valid_key_opens_nothing_and_is_not_repeated(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    for wrong in ("", "slc_nothing", key[:-4] + "AAAA"):
        async with console.browsing() as browser:
            answer = await browser.sign_in(wrong)
            assert answer.status_code == 401
            assert "not valid here" in text_of(answer)
            assert not wrong or wrong not in answer.text
            assert (await browser.open("/console/")).status_code == 303


@pytest.mark.parametrize("end", ["revoke", "rotate"])
async def test_a_session_ends_with_the_secret_that_began_it(console: Console, end: str) -> None:
    key = await console.rest.key(Role.AUDITOR)
    async with console.browsing(Role.AUDITOR) as browser:
        assert (await browser.open("/console/audit")).status_code == 200
        access, key_id = console.rest.services.access, key.split("_")[1]
        if end == "revoke":
            await access.revoke_key(HOST, key_id)
        else:
            await access.rotate_key(HOST, key_id, overlap_s=0)
        answer = await browser.open("/console/audit")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{ENDED}?next=%2Fconsole%2Faudit")
        sent = await browser.send("/console/sign-out")
        assert sent.status_code in (303, 401)


async def test_a_session_is_bound_to_the_networks_of_its_key(console: Console) -> None:
    made = await console.rest.services.access.create_key(
        HOST, [Role.INVOKER], tenant=console.rest.tenant, cidrs=["10.1.0.0/16"]
    )
    async with (
        console.browsing(address="10.1.2.3") as inside,
        console.browsing(address="10.9.9.9") as outside,
    ):
        assert (await inside.sign_in(str(made.key))).status_code == 303
        assert (await outside.sign_in(str(made.key))).status_code == 401
        token = inside.http.cookies.get("sluice_console")
        assert (await inside.open("/console/")).status_code == 200
        assert (await outside.open("/console/", cookie=f"sluice_console={token}")).status_code == 303
        await outside.open(ENDED)
        link = await console.sessions.offer(made.key.id)
        assert (await outside.send(ENDED, {"link": link})).status_code == 401
        await inside.open(ENDED)
        link = await console.sessions.offer(made.key.id)
        assert (await inside.send(ENDED, {"link": link})).status_code == 303


async def test_a_session_ends_after_a_time_without_use_and_at_the_latest_after_half_a_day(
    console: Console,
) -> None:
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    stored = SessionService(console.sessions.sessions.database, idle_s=3600, now=lambda: moment)
    sessions = ConsoleSessions(stored, console.sessions.authenticator, console.sessions.audit)
    info = Caller(console.rest.tenant, "nobody", frozenset())
    key = await console.rest.key(Role.INVOKER)
    _, idle = await sessions.start(key, _request())
    _, used = await sessions.start(key, _request())
    begun = moment
    while moment + timedelta(minutes=50) < begun + LONGEST:
        moment += timedelta(minutes=50)
        assert (await sessions.resume(used, "127.0.0.1")).tenant == info.tenant
    with pytest.raises(UnauthenticatedError):
        await sessions.resume(idle, "127.0.0.1")
    moment = begun + LONGEST
    with pytest.raises(UnauthenticatedError):
        await sessions.resume(used, "127.0.0.1")


async def test_no_session_of_an_mcp_client_is_one_of_the_console(console: Console) -> None:
    key = await console.rest.key(Role.AUDITOR)
    caller = await console.sessions.authenticator.authenticate(key, "127.0.0.1")
    session = await console.sessions.sessions.start(caller, "2025-11-25", {"secret": "", "until": 9e9})
    token = f"{caller.tenant}.{caller.key_id}.{session.id}"
    async with console.browsing() as browser:
        assert (await browser.open("/console/", cookie=f"sluice_console={token}")).status_code == 303


@pytest.mark.parametrize("forged", ["", "a.b.c", "default.00000000." + "A" * 43, "x" * 5000, '"><script>'])
async def test_an_invented_session_is_none(console: Console, forged: str) -> None:
    async with console.browsing() as browser:
        assert (await browser.open("/console/", cookie=f"sluice_console={forged}")).status_code == 303


async def test_a_form_from_elsewhere_does_nothing(console: Console) -> None:
    key = await console.rest.key(Role.INVOKER)
    async with console.browsing(Role.AUDITOR) as browser, console.browsing(Role.INVOKER) as other:
        theirs = await other.open("/console/")
        for token in ("", "0" * 64, re.findall(r'form_token" value="(\w+)"', theirs.text)[0]):
            answer = await browser.send("/console/sign-out", {"form_token": token})
            assert answer.status_code == 403, token
            assert answer.headers["x-request-id"] in answer.text
        assert (await browser.open("/console/")).status_code == 200
    async with console.browsing() as browser:
        await browser.open(ENDED)
        browser.http.cookies.clear()
        assert (await browser.send(ENDED, {"key": key})).status_code == 403
        await browser.open(ENDED)
        foreign = await browser.send(ENDED, {"key": key}, origin="https://evil.example")
        assert foreign.status_code == 403
        assert foreign.headers["content-type"].startswith("text/html")
        assert foreign.headers["x-request-id"] in foreign.text


@pytest.mark.parametrize(
    ("sent", "kind", "status"),
    [
        ("key=" + "a" * 5000, "application/x-www-form-urlencoded", 413),
        ('{"key":"a"}', "application/json", 415),
        ("key=a&key=b", "application/x-www-form-urlencoded", 400),
        ("key=%00", "application/x-www-form-urlencoded", 400),
        ("key=%ff", "application/x-www-form-urlencoded", 400),
    ],
)
async def test_a_body_that_is_no_small_form_is_refused_with_a_page(
    console: Console, sent: str, kind: str, status: int
) -> None:
    async with console.browsing() as browser:
        headers = {"origin": ORIGIN, "content-type": kind}
        answer = await browser.http.post(ENDED, content=sent, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert answer.headers["x-request-id"] in answer.text


async def test_nobody_sends_a_form_without_a_session(console: Console) -> None:
    async with console.browsing() as browser:
        answer = await browser.send("/console/sign-out", {"padding": "a" * 100_000})
    assert answer.status_code == 401
    assert "Your session has ended" in text_of(answer)


@pytest.mark.parametrize(
    ("following", "led"),
    [
        ("https://evil.example/", "/console/"),
        ("//evil.example", "/console/"),
        ("/console/\\evil", "/console/"),
        ("/api/v1/keys", "/console/"),
        ("/console/audit?action=key.list", "/console/audit?action=key.list"),
    ],
)
async def test_signing_in_leads_to_pages_of_the_console_only(
    console: Console, following: str, led: str
) -> None:
    async with console.browsing() as browser:
        answer = await browser.sign_in(await console.rest.key(Role.INVOKER), following)
    assert answer.headers["location"] == led


PAGES = {
    "/console/": frozenset(Role),
    "/console/playground": {Role.INVOKER},
    "/console/conversations": {Role.OPERATOR, Role.AUDITOR, Role.ERASER, Role.RESTORER},
    "/console/audit": {Role.AUDITOR},
    "/console/subjects": {Role.ERASER},
    "/console/servers": {Role.OPERATOR},
    "/console/collections": {Role.OPERATOR},
    "/console/access": {Role.KEY_CUSTODIAN},
    "/console/identities": {Role.KEY_CUSTODIAN},
    "/console/audit/export?format=csv": {Role.AUDITOR},
}


@pytest.mark.parametrize("role", list(Role))
async def test_what_a_role_may_not_do_is_not_there(console: Console, role: Role) -> None:
    async with console.browsing(role) as browser:
        home = await browser.open("/console/")
        assert ("Audit" in navigation(home)) == (role is Role.AUDITOR)
        assert ("Calls a day" in home.text) == (role is Role.AUDITOR)
        assert ("MCP servers" in home.text) == (role is Role.OPERATOR)
        for path, roles in PAGES.items():
            answer = await browser.open(path)
            assert (answer.status_code == 200) == (role in roles), path
            if role not in roles:
                assert answer.status_code == 403
                assert "This needs the role" in text_of(answer)


async def test_the_first_run_says_what_to_do_and_what_to_paste(console: Console) -> None:
    async with console.browsing(Role.AUDITOR) as browser:
        home = await browser.open("/console/")
        assert "Begin here" in home.text
        assert "/console/playground" not in home.text
        for address in ("openai/v1", "anthropic", "mcp", "api/v1/middleware/pii_redaction/invoke"):
            assert f"{ORIGIN}/{address}" in text_of(home)
        context = [{"type": "text", "text": "I am John Doe."}]
        await console.rest.invoke("pii_redaction", context, roles=[Role.INVOKER])
        later = await browser.open("/console/")
        assert "Begin here" not in later.text
        assert "Values masked, 24 h 1" in text_of(later)


async def test_every_page_is_under_a_policy_that_lets_nothing_else_run(console: Console) -> None:
    seen = set()
    async with console.browsing(Role.AUDITOR) as browser:
        for path in (
            "/console/",
            "/console/audit",
            ENDED,
            "/console/nothing",
            "/docs",
            "/console/audit?from=x",
        ):
            page = await browser.open(path)
            policy = page.headers["content-security-policy"]
            assert "unsafe" not in policy
            assert policy.startswith("default-src 'none'; script-src 'nonce-")
            assert "http" not in policy
            nonce = re.findall(r"'nonce-([\w-]+)'", policy)
            assert len(set(nonce)) == 1
            seen.add(nonce[0])
            loaded = elements(page, ["script", 'link rel="stylesheet"'])
            assert loaded
            assert all(f'nonce="{nonce[0]}"' in tag for tag in loaded), loaded
            assert not re.search(r"<[^>]+\s(style|on\w+)=", page.text)
            assert not re.search(r'(src|href|action)="(https?:)?//', page.text)
            assert page.headers["cache-control"] == "no-store"
            assert page.headers["referrer-policy"] == "same-origin"
    assert len(seen) == 6


async def test_names_with_mark_up_are_shown_and_never_run(console: Console) -> None:
    hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{7*7}}"
    made = await console.rest.services.access.create_key(
        HOST, [Role.AUDITOR], tenant=console.rest.tenant, name=hostile
    )
    async with console.browsing() as browser:
        await browser.sign_in(str(made.key))
        for path in ("/console/", "/console/audit"):
            page = await browser.open(path)
            assert hostile in text_of(page).replace("&#39;", "'") or "alert(1)" in text_of(page)
            assert "<img" not in page.text.replace('<img src="/console/', "")
            assert "<script>" not in page.text
        reflected = await browser.open('/console/audit?action="><script>alert(1)</script>&actor={{7*7}}')
        assert "<script>" not in reflected.text
        assert "{{7*7}}" in reflected.text


async def test_browsers_are_led_to_the_console_and_programs_are_told_the_doors(console: Console) -> None:
    async with console.browsing() as browser:
        assert (await browser.open("/")).headers["location"] == "/console/"
        assert (await browser.open("/console")).headers["location"] == "/console/"
        answer = await browser.http.get("/")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        for door in (
            "/mcp",
            "/api/v1/openapi.json",
            "/openai",
            "/anthropic",
            "/console/",
            "/docs",
            "/readyz",
        ):
            assert door in answer.text
            listed = (await browser.http.get(door, headers={"accept": "text/html"})).status_code
            assert listed != 404 or door in {"/openai", "/anthropic", "/mcp", "/readyz"}, door


async def test_files_are_kept_for_as_long_as_they_stay_the_same(console: Console) -> None:
    async with console.browsing() as browser:
        page = await browser.open(ENDED)
        for address in re.findall(r'(?:src|href)="(/console/assets/[^"]+)"', page.text):
            file = await browser.http.get(address)
            assert file.status_code == 200
            assert "immutable" in file.headers["cache-control"]
            assert file.headers["content-encoding"] == "gzip"
        stale = await browser.http.get("/console/assets/0000/console.css", headers={"accept-encoding": ""})
        assert (stale.headers["cache-control"], "content-encoding" in stale.headers) == ("no-store", False)
        for missing in ("/console/assets/0/../../rendering.py", "/console/assets/0/rendering.py"):
            assert (await browser.http.get(missing)).status_code == 404


async def test_a_link_signs_in_once_as_its_key(console: Console) -> None:
    key = await console.rest.key(Role.AUDITOR)
    link = await console.sessions.offer(key.split("_")[1])
    assert key.split("_", 2)[2] not in link
    async with console.browsing() as browser, console.browsing() as late:
        assert (await browser.open("/console/", cookie=f"sluice_console={link}")).status_code == 303
        await late.open(ENDED)
        await browser.open(ENDED)
        both = await asyncio.gather(browser.send(ENDED, {"link": link}), late.send(ENDED, {"link": link}))
        assert sorted(answer.status_code for answer in both) == [303, 401]
        refused = next(answer for answer in both if answer.status_code == 401)
        assert "used already" in text_of(refused)
        entered = browser if both[0].status_code == 303 else late
        assert "Audit" in navigation(await entered.open("/console/"))
        session = entered.http.cookies.get("sluice_console")
        await late.open(ENDED)
        assert (await late.send(ENDED, {"link": session or ""})).status_code == 401
        await console.rest.services.access.revoke_key(HOST, key.split("_")[1])
        assert (await entered.open("/console/")).status_code == 303
    events = await console.rest.call(
        "GET", "/api/v1/audit/events?limit=50", roles=[Role.AUDITOR, Role.ERASER]
    )
    actions = [event["action"] for event in events.json()["items"]]
    assert (actions.count("console.link"), actions.count("console.sign_in")) == (1, 1)


async def test_a_link_is_worth_nothing_after_five_minutes_or_with_a_key_that_is_over(
    console: Console,
) -> None:
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    stored = SessionService(console.sessions.sessions.database, now=lambda: moment)
    sessions = ConsoleSessions(stored, console.sessions.authenticator, console.sessions.audit)
    key_id = (await console.rest.key(Role.INVOKER)).split("_")[1]
    early, old, revoked = [await sessions.offer(key_id) for _ in range(3)]
    moment += LINK_LIFETIME - timedelta(seconds=1)
    assert (await sessions.redeem(early, _request()))[0].key_id == key_id
    moment += timedelta(seconds=1)
    for link in (old, "", "a.b.c", f"other.{key_id}.{'A' * 43}"):
        with pytest.raises(UnauthenticatedError):
            await sessions.redeem(link, _request())
    moment -= timedelta(minutes=3)
    await console.rest.services.access.revoke_key(HOST, key_id)
    with pytest.raises(UnauthenticatedError):
        await sessions.redeem(revoked, _request())
    for nobody in (key_id, "00000000"):
        with pytest.raises(NotFoundError):
            await sessions.offer(nobody)


def _request() -> RequestInfo:
    return RequestInfo(request_id="r", traceparent=None, address="127.0.0.1", deadline=float("inf"))
