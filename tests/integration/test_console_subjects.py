"""Data subjects in the console: search, erase with progress, and a receipt; no value in an address or in the record."""

import html
from collections.abc import AsyncIterator

import pytest

from app.core.access import Role
from app.services.vault.erasure_jobs import ErasureJobs
from tests.integration.console_app import Console, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/subjects"
REASON = "Request <b>2026-114</b>"
ASKED = {"values": "jane@example.com\r\n  \r\nJOHN DOE ", "reason": REASON, "variants": "on"}


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def stored(console: Console) -> None:
    for scope, said in (
        ("<i>one</i>", "I am John Doe, jane@example.com."),
        ("two", "Write to jane@example.com."),
    ):
        context = [{"type": "text", "text": said}]
        answer = await console.rest.invoke("pii_redaction", context, {"scope": scope}, roles=[Role.INVOKER])
        assert answer.status_code == 200, answer.text


async def test_a_person_is_found_and_erased_with_a_receipt(console: Console) -> None:
    await stored(console)
    async with console.browsing(Role.ERASER) as browser:
        await browser.open(PAGE)
        browser.shown = found = await browser.send(PAGE, ASKED)
        assert "3 handles in 2 scopes" in text_of(found)
        assert "<i>one" not in found.text
        assert html.escape("<i>one</i>") in found.text
        assert "<b>2026" not in found.text
        unsure = await browser.send(f"{PAGE}/erase", ASKED)
        assert (unsure.status_code, "nothing brings them back" in text_of(unsure)) == (422, True)
        ordered = await browser.send(f"{PAGE}/erase", {**ASKED, "sure": "on"})
        assert ordered.status_code == 303
        address = ordered.headers["location"]
        running = await browser.open(address)
        assert "0 of 3" in text_of(running)
        assert 'hx-trigger="every 2s"' in running.text
        erasures = console.rest.vault.service.erasures
        await ErasureJobs(erasures, console.rest.services.tenant_erasure).run()
        done = await browser.open(address)
        assert "Erased in 2 scopes" in text_of(done)
        assert "Receipt" in text_of(done)
        assert "hx-trigger" not in done.text
        await browser.open(PAGE)
        assert "0 handles in 0 scopes" in text_of(await browser.send(PAGE, ASKED))
    events = await console.rest.call("GET", "/api/v1/audit/events?limit=100", roles=[Role.AUDITOR])
    actions = {event["action"] for event in events.json()["items"]}
    assert {"subject.search", "erasure.order"} <= actions
    assert "jane@" not in events.text
    assert "Doe" not in events.text


@pytest.mark.parametrize(
    "change",
    [
        {"values": " \r\n"},
        {"values": "\r\n".join(f"v{number}" for number in range(61))},
        {"values": "a" * 1001},
        {"reason": ""},
    ],
)
async def test_a_search_without_values_or_reason_is_refused(console: Console, change: dict[str, str]) -> None:
    async with console.browsing(Role.ERASER) as browser:
        await browser.open(PAGE)
        assert (await browser.send(PAGE, {**ASKED, **change})).status_code == 422


async def test_only_erasers_search(console: Console) -> None:
    await stored(console)
    async with console.browsing(Role.OPERATOR) as browser:
        home = await browser.open("/console/")
        assert PAGE not in home.text
        for path in (PAGE, f"{PAGE}/erase"):
            assert (await browser.send(path, {**ASKED, "sure": "on"})).status_code == 403
        assert (await browser.open(PAGE)).status_code == 403
    async with console.browsing(Role.ERASER) as browser:
        await browser.open(PAGE)
        assert "3 handles in 2 scopes" in text_of(await browser.send(PAGE, ASKED))
