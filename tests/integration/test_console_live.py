"""Overview and gateway follow what happens through their doors: who may watch, what comes, and when it ends."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from math import inf

import pytest

from app.console.live import LiveLimits, LivePages
from app.core.access import Role
from app.core.contracts.policy import Limits
from app.core.errors import UnauthenticatedError
from app.core.request import RequestInfo
from app.services.access.access import HOST
from app.services.access.console_sessions import ConsoleSessions
from app.services.access.sessions import SessionService
from app.services.audit.counts import AuditCounts
from tests.integration.console_app import Console, open_console, streaming, text_of
from tests.integration.sealing import seal_all

pytestmark = pytest.mark.in_turn("database_url")

LIVE = "/console/overview/live"
GATEWAY = "/console/gateway"


def quick() -> LivePages:
    return LivePages(LiveLimits(session=2, step_s=0.01, heartbeat_s=0.05))


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url, live=quick()) as opened:
        yield opened


@pytest.fixture
async def sealed(own_database_url: str) -> AsyncIterator[Console]:
    async with open_console(own_database_url, live=quick()) as opened:
        yield opened


async def counted(console: Console) -> None:
    item = [{"type": "text", "text": "I am John Doe."}]
    assert (await console.rest.invoke("pii_redaction", item, roles=[Role.INVOKER])).is_success
    await seal_all(console.rest.services.audit)
    await AuditCounts(console.rest.services.audit).count()


async def test_an_auditor_sees_calls_as_they_are_counted_until_signing_out(sealed: Console) -> None:
    async with sealed.browsing(Role.AUDITOR) as browser:
        home = await browser.open("/console/")
        assert f'data-live="{LIVE}?mark=0"' in home.text
        async with streaming(sealed, browser, f"{LIVE}?mark=0") as stream:
            assert await stream.part() == b"retry: 5000\n\n"
            assert stream.status == 200
            await counted(sealed)
            part = await stream.part(b"data-part")
            assert part is not None
            assert b"1 in 14 days" in part
            assert b"John" not in part
            assert b"nonce" not in part
            assert (await stream.part(b":\n\n")) == b":\n\n"
            await browser.send("/console/sign-out")
            assert await stream.part(b"ended") == b"event: ended\ndata:\n\n"
            assert await stream.part(b"data") is None
        assert (await browser.open(LIVE)).headers["location"].startswith("/console/sign-in")
    events = await sealed.rest.call("GET", "/api/v1/audit/events?limit=100", roles=[Role.AUDITOR])
    actions = [event["action"] for event in events.json()["items"]]
    assert actions.count("audit.watch") == 1
    assert actions.count("audit.counts") == 1


async def test_a_stream_ends_with_the_key_of_its_session(console: Console) -> None:
    key = await console.rest.key(Role.AUDITOR)
    async with console.browsing(Role.AUDITOR) as browser, streaming(console, browser, LIVE) as stream:
        assert await stream.part() == b"retry: 5000\n\n"
        await console.rest.services.access.revoke_key(HOST, key.split("_")[1])
        assert await stream.part(b"ended") == b"event: ended\ndata:\n\n"


async def test_beyond_the_bound_a_page_says_so_and_a_place_is_given_back(console: Console) -> None:
    async with console.browsing(Role.AUDITOR) as browser:
        async with (
            streaming(console, browser, LIVE) as first,
            streaming(console, browser, LIVE) as second,
        ):
            assert await first.part() == await second.part() == b"retry: 5000\n\n"
            refused = await browser.open(LIVE)
            assert (refused.status_code, "close one of them" in text_of(refused)) == (429, True)
            assert refused.headers["retry-after"] == "30"
        async with streaming(console, browser, LIVE) as again:
            assert await again.part() == b"retry: 5000\n\n"


async def test_nobody_but_an_auditor_watches(console: Console) -> None:
    others = [role for role in Role if role is not Role.AUDITOR]
    async with console.browsing(*others) as browser:
        answer = await browser.open(LIVE)
        assert (answer.status_code, "This needs the role" in text_of(answer)) == (403, True)
        assert "data-live" not in (await browser.open("/console/")).text


async def test_all_who_may_see_what_is_under_way_until_their_sessions_end(console: Console) -> None:
    traffic, tenant = console.rest.services.invoke.traffic, console.rest.tenant
    async with (
        console.browsing(Role.OPERATOR) as operator,
        console.browsing(Role.AUDITOR) as auditor,
        console.browsing(Role.INVOKER, Role.ERASER) as other,
    ):
        with (
            traffic.forwarded("another", "gateway chat", Limits()),
            traffic.forwarded(tenant, "mail", Limits()),
        ):
            page = await operator.open(GATEWAY)
            assert "No request or stream." in text_of(page)
        path = re.findall(r'data-live="([^"]*)"', page.text)
        assert path == re.findall(r'data-live="([^"]*)"', (await auditor.open(GATEWAY)).text)
        assert (await other.open(f"{GATEWAY}/live")).status_code == 403
        async with streaming(console, operator, *path) as first, streaming(console, auditor, *path) as second:
            assert [await first.part(), await first.part()] == [b"retry: 5000\n\n", b":\n\n"], (
                "nothing is new yet"
            )
            with traffic.forwarded(tenant, "gateway chat", Limits()):
                part = await first.part(b"data-part") or b""
                assert b"<dt>chat</dt><dd>1</dd>" in part
                assert b"nonce" not in part
                assert await second.part(b"data-part") == part
                assert "chat 1" in text_of(await operator.open(GATEWAY)), (
                    "the page itself says it without a script"
                )
                await operator.send("/console/sign-out")
                assert await first.part(b"ended") == b"event: ended\ndata:\n\n"
            assert b"No request or stream." in (await second.part(b"data-part") or b"")


@pytest.mark.parametrize("is_use", [False, True])
async def test_watching_is_no_use_of_a_session(console: Console, is_use: bool) -> None:
    moment = datetime(2026, 11, 23, tzinfo=UTC)
    stored = SessionService(console.sessions.sessions.database, idle_s=3600, now=lambda: moment)
    sessions = ConsoleSessions(stored, console.sessions.authenticator, console.sessions.audit)
    request = RequestInfo(request_id="r", traceparent=None, address="127.0.0.1", deadline=inf)
    _, token = await sessions.start(await console.rest.key(Role.AUDITOR), request)
    moment += timedelta(minutes=50)
    assert (await sessions.resume(token, "127.0.0.1", is_use=is_use)).roles == {Role.AUDITOR}
    moment += timedelta(minutes=11)
    if is_use:
        await sessions.resume(token, "127.0.0.1", is_use=False)
    else:
        with pytest.raises(UnauthenticatedError):
            await sessions.resume(token, "127.0.0.1", is_use=False)
