"""Conversations in the console: a scope as a timeline, its handles, its end, and originals only with a reason."""

import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from app.core.access import Role
from tests.integration.console_app import Browser, Console, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/conversations"
HOSTILE = "<img/src=x/onerror=alert(1)>&amp;{{7*7}}"
SAID = "I am John Doe, jane@example.com."
LISTERS = {Role.OPERATOR, Role.AUDITOR, Role.ERASER}


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


def address(name: str) -> str:
    return f"{PAGE}/scope?name={quote(name)}"


async def redacted(console: Console, scope: str, said: str = SAID) -> str:
    answer = await console.rest.invoke(
        "pii_redaction", [{"type": "text", "text": said}], {"scope": scope}, roles=[Role.INVOKER]
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["content"][0]["text"])


async def recorded(console: Console, action: str) -> list[dict[str, Any]]:
    page = await console.rest.call(
        "GET", f"/api/v1/audit/events?limit=100&action={action}", roles=[Role.AUDITOR]
    )
    return list(page.json()["items"])


async def revealed(browser: Browser, scope: str, handle: str, reason: str) -> Any:
    await browser.open(PAGE)
    return await browser.send(f"{PAGE}/reveal", {"name": scope, "handle": handle, "reason": reason})


async def test_a_scope_tells_what_became_of_it_and_by_whom(console: Console) -> None:
    text = await redacted(console, HOSTILE)
    item = [{"type": "text", "text": text}]
    roles = [Role.INVOKER, Role.RESTORER]
    await console.rest.invoke("pii_restoration", item, {"scope": HOSTILE}, roles=roles)
    assert (await console.rest.invoke("pii_redaction", item, {"scope": "other"}, roles=roles)).is_success
    async with console.browsing(Role.AUDITOR) as auditor, console.browsing(Role.ERASER) as eraser:
        shown = await auditor.open(address(HOSTILE))
        words = re.findall(r'<span class="badge is-\w+">([\w ]+)</span>', shown.text)
        assert words == ["looked", "restored", "masked"]
        assert {"email 1", "person 1"} <= set(re.findall(r'<span class="chip">([^<]+)</span>', shown.text))
        assert "<code>[PERSON_1]</code>" in shown.text
        assert "<img/src=x" not in shown.text
        assert html.escape(HOSTILE) in shown.text
        assert "John" not in shown.text
        assert not re.search(r'action="/console/conversations/(erase|reveal|expiry)"', shown.text)
        own = await eraser.open(address(HOSTILE))
        assert "What happened" not in own.text
        asked = await eraser.send(f"{PAGE}/erase", {"name": HOSTILE})
        assert asked.status_code == 422
        done = await eraser.send(f"{PAGE}/erase", {"name": HOSTILE, "sure": "on"})
        assert "2 sealed values erased" in text_of(done)
        assert "<img/src=x" not in done.text
        assert (await eraser.open(address(HOSTILE))).status_code == 404
        after = await auditor.open(address(HOSTILE))
        words = re.findall(r'<span class="badge is-\w+">([\w ]+)</span>', after.text)
        assert words == ["erased", "looked", "looked", "restored", "masked"]
        assert "This scope has ended" in text_of(after)
        assert (await auditor.open(address("never was"))).status_code == 404


async def test_an_original_is_shown_with_a_reason_to_restorers_alone_and_is_on_record(
    console: Console,
) -> None:
    await redacted(console, "case-7")
    reason = "Complaint <b>114</b>"
    for role in Role:
        async with console.browsing(role) as browser:
            page = await browser.open(address("case-7"))
            assert "John" not in page.text, role
            assert ("/console/conversations/reveal" in page.text) == (role is Role.RESTORER), role
            if role is not Role.RESTORER:
                if page.status_code != 200:
                    await browser.open("/console/")
                form = {"name": "case-7", "handle": "PERSON_1", "reason": reason}
                refused = await browser.send(f"{PAGE}/reveal", form)
                assert refused.status_code == 403, role
                assert "John" not in refused.text
    assert [event["outcome"] for event in await recorded(console, "vault.reveal")] == ["refused"] * (
        len(Role) - 1
    )
    async with console.browsing(Role.RESTORER) as browser:
        for handle, why, status in (
            ("PERSON_1", "", 422),
            ("PERSON_1", "ab", 422),
            ("PERSON_9", reason, 404),
            ("no handle", reason, 404),
        ):
            answer = await revealed(browser, "case-7", handle, why)
            assert (answer.status_code, "John" in answer.text) == (status, False), handle
        shown = await revealed(browser, "case-7", "PERSON_1", f" {reason} ")
        assert "<pre>John Doe</pre>" in shown.text
        assert shown.headers["cache-control"] == "no-store"
        for other in ("unknown", "case-70"):
            assert (await revealed(browser, other, "PERSON_1", reason)).status_code == 404
    newest = next(event for event in await recorded(console, "vault.reveal") if event["outcome"] == "ok")
    assert newest["details"] == {"handle": "PERSON_1", "reason": reason}
    assert newest["counts"] == {"PERSON": 1}
    async with console.browsing(Role.AUDITOR) as browser:
        page = await browser.open(address("case-7"))
        assert '<span class="badge is-revealed">revealed</span>' in page.text
        assert html.escape(reason) in page.text


async def test_secrets_that_a_policy_withholds_are_not_revealed_either(console: Console) -> None:
    secret = "github!k2"
    state = console.rest.app.state
    vault = replace(console.rest.services.vault, policies=console.rest.services.policies)
    state.console_services = replace(state.console_services, vault=vault)
    item = [{"type": "text", "text": f"token {secret}"}]
    answer = await console.rest.invoke("secret_redaction", item, {"scope": "s"}, roles=[Role.INVOKER])
    handle = re.findall(r"\[(SECRET_\w+)\]", answer.json()["content"][0]["text"])[0]
    assert (await console.rest.put_policy({"secrets": {"restorable_by": []}})).is_success
    async with console.browsing(Role.RESTORER) as browser:
        answer = await revealed(browser, "s", handle, "To see")
        assert (answer.status_code, secret in answer.text) == (403, False)
        assert (await console.rest.put_policy({})).is_success
        assert secret in (await revealed(browser, "s", handle, "To see")).text


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.RESTORER])
async def test_scopes_are_listed_in_pages_and_sought_by_the_beginning_of_their_names(
    console: Console, role: Role
) -> None:
    for number in range(52):
        await redacted(console, f"talk-{number:02}", "Jane Smith")
    await redacted(console, "TALK", "Jane Smith")
    await redacted(console, "ta%", "Jane Smith")
    async with console.browsing(role) as browser:
        page = await browser.open(PAGE)
        assert (">talk-00</a>" in page.text) == (role in LISTERS)
        assert "Open a scope by its whole name" in text_of(page)
        if role not in LISTERS:
            assert (await browser.open(address("talk-51"))).status_code == 200
            return
        listed = []
        following: str | None = f"{PAGE}?prefix=talk-"
        while following:
            page = await browser.open(following)
            listed += re.findall(r">(talk-\d\d)</a>", page.text)
            more = re.search(r'href="([^"]+)" rel="next"', page.text)
            following = html.unescape(more[1]) if more else None
        assert listed == [f"talk-{number:02}" for number in range(52)]
        for prefix, names in (
            ("TA", ["TALK"]),
            ("ta%", ["ta%"]),
            ("alk", []),
            ("talk-5", ["talk-50", "talk-51"]),
        ):
            page = await browser.open(f"{PAGE}?prefix={quote(prefix)}")
            assert re.findall(r'scope\?name=[^"]+">([^<]+)</a>', page.text) == names, prefix


async def test_the_end_of_a_scope_is_set_by_those_who_may(console: Console) -> None:
    await redacted(console, "case-8")
    async with console.browsing(Role.OPERATOR) as operator, console.browsing(Role.RESTORER) as restorer:
        await operator.open(address("case-8"))
        for hours in ("", "1"):
            answer = await operator.send(f"{PAGE}/expiry", {"name": "case-8", "hours": hours})
            assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}/scope?name=case-8")
            shown = await operator.open(address("case-8"))
            assert ("ends never" in text_of(shown)) == (hours == "")
        assert (await operator.send(f"{PAGE}/expiry", {"name": "case-8", "hours": "-1"})).status_code == 422
        await restorer.open(address("case-8"))
        assert (await restorer.send(f"{PAGE}/expiry", {"name": "case-8", "hours": ""})).status_code == 403
        handle = await operator.send(f"{PAGE}/erase", {"name": "case-8", "sure": "on"})
        assert handle.status_code == 403


async def test_one_handle_is_erased(console: Console) -> None:
    await redacted(console, "case-9")
    async with console.browsing(Role.ERASER, Role.RESTORER) as browser:
        await browser.open(address("case-9"))
        done = await browser.send(f"{PAGE}/erase", {"name": "case-9", "handle": "PERSON_1", "sure": "on"})
        assert "[PERSON_1] is erased" in text_of(done)
        shown = await browser.open(address("case-9"))
        assert "[PERSON_1]" not in shown.text
        assert "[EMAIL_1]" in shown.text
        assert (await revealed(browser, "case-9", "PERSON_1", "To see")).status_code == 404
