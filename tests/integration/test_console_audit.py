"""The record in the console: filters, pages, one event with its proof, exports; and one event over REST."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from httpx2 import Response

from app.core.access import Role
from app.engines.cipher import RecordKeys
from app.services.audit import log_access, verification
from app.services.audit.anchoring import LogLag
from app.services.audit.comparing.range_processes import Work, working
from app.services.audit.counts import AuditCounts
from app.store.audit.anchors import AnchoredCheckpoint, put_anchored
from app.store.audit.log import newest_checkpoint
from app.store.database import Database
from tests.integration.console_app import Console, open_console, text_of
from tests.integration.sealing import seal_all
from tests.integration.tampering import owned_on

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


async def test_an_auditor_verifies_the_record_now_and_a_tampered_event_is_named(
    console: Console, own_database_url: str
) -> None:
    await called(console, 3)
    rest, verify = console.rest, "/console/audit/verify"
    await seal_all(rest.services.audit)
    async with console.browsing(Role.AUDITOR) as browser:
        button = await browser.open("/console/audit?action=middleware.invoke")
        assert f'action="{verify}"' in button.text
        event, *_ = EVENT.findall(button.text)
        await seal_all(rest.services.audit)
        held = await browser.send(verify)
        assert (held.status_code, "The record holds" in text_of(held)) == (200, True), text_of(held)
        assert "findings 0" in text_of(held)
        forged = await browser.send(verify, {"form_token": "0" * 64})
        assert forged.status_code == 403
        async with owned_on(own_database_url) as (do, _):
            hexed = UUID(event).hex if own_database_url.startswith("sqlite") else event
            await do(f"UPDATE audit_event SET outcome = 'failed' WHERE id = '{hexed}'")  # noqa: S608 - ours
        wrong = await browser.send(verify)
        assert "The record does not hold" in text_of(wrong)
        assert re.search(rf"changed</th>.*{event}", wrong.text, re.DOTALL)
    answer = await rest.call("POST", "/api/v1/audit/verify", roles=[Role.AUDITOR])
    assert (answer.status_code, answer.json()["holds"], answer.json()["found"]) == (200, False, 1)
    (finding,) = answer.json()["findings"]
    assert (finding["kind"], finding["tenant"], event in finding["place"]) == ("changed", rest.tenant, True)
    listed = await rest.call("GET", "/api/v1/audit/events?action=audit.verify", roles=[Role.AUDITOR])
    assert [each["outcome"] for each in listed.json()["items"]] == ["failed", "failed", "ok"]
    async with console.browsing(Role.OPERATOR) as browser:
        await browser.open("/console/servers")
        assert (await browser.send(verify)).status_code == 403


async def test_a_log_is_verified_once_at_a_time_and_a_large_one_on_the_host(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    await called(console, 3)
    rest = console.rest
    await seal_all(rest.services.audit)
    async with rest.services.audit.verifying:
        busy = await rest.call("POST", "/api/v1/audit/verify", roles=[Role.AUDITOR])
    assert (busy.status_code, busy.json()["code"]) == (503, "overloaded")
    assert int(busy.headers["retry-after"]) > 0
    started = []

    def working_here(
        database: Database, keys: RecordKeys, processes: int
    ) -> AbstractAsyncContextManager[Work]:
        started.append(processes)
        return working(database, keys, 1)

    monkeypatch.setattr(verification, "working", working_here)
    for few in (1000, 2):
        monkeypatch.setattr(log_access, "FEW_EVENTS", few)
        assert (await rest.call("POST", "/api/v1/audit/verify", roles=[Role.AUDITOR])).json()["holds"]
    assert started == [1, 2], "more than a few events are compared beside the requests of this process"
    monkeypatch.setattr(log_access, "MOST_EVENTS", 3)
    large = await rest.call("POST", "/api/v1/audit/verify", roles=[Role.AUDITOR])
    assert large.status_code == 422
    assert f"sluice audit verify --tenant {rest.tenant}" in large.text
    async with console.browsing(Role.AUDITOR) as browser:
        await browser.open("/console/audit")
        page = await browser.send("/console/audit/verify")
        assert (page.status_code, "sluice audit verify --tenant" in text_of(page)) == (422, True)


async def test_an_event_is_shown_with_the_anchors_that_keep_it(console: Console) -> None:
    moment, state = datetime(2031, 1, 1, tzinfo=UTC), console.rest.app.state
    database, audit = console.rest.services.access.database, console.rest.services.audit
    lag = LogLag(database, ["file kept.jsonl", "witness.example"], lambda: moment)
    state.console_services = replace(state.console_services, lag=lag)
    await called(console, 1)
    await seal_all(audit)
    async with database.system_transaction() as tx:
        first = await newest_checkpoint(tx)
        assert first is not None
        at = first.at + timedelta(seconds=7.5)
        await put_anchored(tx, AnchoredCheckpoint("file kept.jsonl", first.size, b"0" * 32, at))
    await called(console, 1)
    await seal_all(audit)
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open("/console/audit?action=middleware.invoke")
        newer, older = EVENT.findall(page.text)
        rows = [anchors(await browser.open(f"/console/audit/events/{event}")) for event in (older, newer)]
    assert [row["file kept.jsonl"][0] for row in rows] == ["kept there", "not there yet"]
    kept = rows[0]["file kept.jsonl"]
    assert (kept[1], kept[-1]) == (f"{first.size} entries", "7.5 s")
    assert [row["witness.example"][0] for row in rows] == ["not there yet", "not there yet"]
    waited = (moment - first.at).total_seconds()
    assert rows[0]["witness.example"][1:] == ["none", "\N{EN DASH}", f"{waited:.1f} s"]


def anchors(page: Response) -> dict[str, list[str]]:
    """Return what the page of an event says of each anchor."""
    table = re.search(r'aria-label="Anchors".*?</table>', page.text, re.DOTALL)
    assert table is not None
    rows = re.findall(r'<th scope="row">([^<]+)</th>(.*?)</tr>', table[0], re.DOTALL)
    return {
        name: [
            re.sub(r"<[^>]*>", "", cell).strip()
            for cell in re.findall(r"<td[^>]*>(.*?)</td>", cells, re.DOTALL)
        ]
        for name, cells in rows
    }
