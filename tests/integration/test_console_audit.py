"""The record in the console: filters, pages, one event with its proof, exports; and one event over REST."""

import html
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from httpx2 import Response

from app.core.access import Role
from app.services.audit.counts import AuditCounts
from tests.integration.console_app import Console, open_console, text_of
from tests.integration.sealing import seal_all

CALL = {"context": [{"type": "text", "text": "Ada Byron called."}]}
EVENT = re.compile(r"/console/audit/events/([0-9a-f-]{36})\"")


@pytest.fixture
async def console(own_database_url: str) -> AsyncIterator[Console]:
    async with open_console(own_database_url) as opened:
        yield opened


async def called(console: Console, times: int) -> None:
    for _ in range(times):
        answer = await console.rest.invoke("timestamp_injector", CALL["context"], roles=[Role.INVOKER])
        assert answer.status_code == 200


async def test_the_record_is_filtered_paged_and_linked_to(console: Console) -> None:
    await called(console, 60)
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open("/console/audit?action=middleware.invoke")
        first = EVENT.findall(page.text)
        older = re.search(r'href="([^"]+)" rel="next"', page.text)
        assert (len(first), older is not None) == (50, True)
        page = await browser.open(html.unescape(older[1]) if older else "")
        second = EVENT.findall(page.text)
        assert len(second) == 10
        assert len({*first, *second}) == 60
        assert 'rel="next"' not in page.text
        assert 'value="middleware.invoke"' in page.text
        none = await browser.open("/console/audit?action=middleware.invoke&to=2020-01-01")
        assert (none.status_code, "No event fits these filters" in text_of(none)) == (200, True)
        today = re.search(r"from=(\d{4}-\d\d-\d\d)&amp;to=\1(?:&amp;[^\"]*)?\"[^>]*>\s*<title>", page.text)
        assert today is not None
        exported = await browser.open("/console/audit/export?format=csv&action=middleware.invoke")
        assert exported.text.count("middleware.invoke") == 60
        assert "attachment" in exported.headers["content-disposition"]


async def test_a_wrong_filter_is_a_page_that_says_so(console: Console) -> None:
    async with console.browsing(Role.AUDITOR) as browser:
        for query in ("from=2026-13-45", "outcome=<b>", "cursor=Jane", "from=yesterday"):
            page = await browser.open(f"/console/audit?{query}")
            assert page.status_code == 422
            assert page.headers["x-request-id"] in page.text
            assert "<b>" not in page.text
            assert "Jane" not in page.text


async def test_an_event_is_shown_with_its_proof_once_it_is_sealed(console: Console) -> None:
    await called(console, 1)
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open("/console/audit?action=middleware.invoke")
        (event,) = EVENT.findall(page.text)
        shown = await browser.open(f"/console/audit/events/{event}")
        assert "Not sealed yet" in text_of(shown)
        await seal_all(console.rest.services.audit)
        await AuditCounts(console.rest.services.audit).count()
        shown = await browser.open(f"/console/audit/events/{event}")
        assert "sealed events of this tenant" in text_of(shown)
        assert "timestamp_injector" in text_of(shown)
        proof = await browser.open(f"/console/audit/events/{event}/proof")
        head, line = proof.text.splitlines()
        assert "checkpoint" in head
        assert event.replace("-", "") in line.replace("-", "")
        home = await browser.open("/console/")
        assert "Calls today 1" in text_of(home)
        missing = await browser.open(f"/console/audit/events/{event[:-4]}ffff")
        assert (missing.status_code, "There is no event" in text_of(missing)) == (404, True)


async def test_one_event_over_rest_is_the_one_of_the_list_and_of_its_own_tenant(console: Console) -> None:
    rest = console.rest
    await called(console, 1)
    listed = await rest.call("GET", "/api/v1/audit/events?action=middleware.invoke", roles=[Role.AUDITOR])
    (event,) = listed.json()["items"]
    path = f"/api/v1/audit/events/{event['id']}"
    assert (await rest.call("GET", path, roles=[Role.AUDITOR])).json() == event
    assert (await rest.call("GET", path, roles=[Role.INVOKER])).status_code == 403
    assert (await rest.call("GET", path, roles=[Role.AUDITOR], tenant="system")).status_code == 404
    reads = await rest.call("GET", "/api/v1/audit/events?action=audit.event", roles=[Role.AUDITOR])
    assert [each["outcome"] for each in reads.json()["items"]] == ["refused", "ok"]
    assert all(each["details"] == {"event": event["id"]} for each in reads.json()["items"])


def bars(page: Response) -> dict[str, str]:
    """Return the bars of the chart: what each says by its day."""
    return dict(re.findall(r"<title>(\d{4}-\d\d-\d\d): ([^<]+)</title>", page.text))


@pytest.mark.in_turn("own_database_url")
async def test_the_chart_shows_the_days_and_the_kind_of_events_that_are_asked_for(console: Console) -> None:
    await called(console, 3)
    refused = await console.rest.invoke("no_such", CALL["context"], roles=[Role.INVOKER])
    assert refused.status_code == 404
    await seal_all(console.rest.services.audit)
    await AuditCounts(console.rest.services.audit).count()
    today = datetime.now(UTC).date()
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open("/console/audit?action=middleware.invoke")
        assert (len(bars(page)), bars(page)[f"{today}"]) == (30, "4 events, 3 ok, 1 refused")
        chips = re.findall(r'<a class="chip" href="([^"]+)">([\w.]+) ([\d,]+)</a>', page.text)
        assert ("/console/audit?action=middleware.invoke", "middleware.invoke", "4") in chips
        assert all(f"?action={action}" in address for address, action, _ in chips)
        page = await browser.open("/console/audit?action=middleware.invoke&outcome=refused")
        assert bars(page)[f"{today}"] == "1 events, 1 refused"
        page = await browser.open("/console/audit?action=key.create")
        assert "refused" not in bars(page)[f"{today}"]
        for query, count in (
            (f"from={today - timedelta(days=4)}", 5),
            (f"from={today - timedelta(days=4)}&to={today - timedelta(days=1)}", 4),
            (f"from={today}&to={today}", 30),
            ("from=2001-01-01", 92),
            ("to=0001-01-01", 30),
            (f"from={today}&to=2001-01-01", 30),
        ):
            page = await browser.open(f"/console/audit?{query}")
            assert (page.status_code, len(bars(page))) == (200, count), query
        zoomed = re.findall(r'<a href="([^"]+)">7 days</a>', page.text)
        assert len(bars(await browser.open(html.unescape(zoomed[0])))) == 7
        for address in re.findall(r'<a class="button" href="(/console/audit\?[^"]+)">', page.text):
            assert (await browser.open(html.unescape(address))).status_code == 200, address
