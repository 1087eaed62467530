"""The playground: what is found and why, what the model gets, and that a look leaves nothing behind but its event."""

import html
import re
from collections.abc import AsyncIterator

import pytest

from app.core.access import Role
from tests.integration.console_app import Console, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/playground"
ASKED = {"sensitivity": "standard", "names": "fast", "scope": ""}
HOSTILE = "Jane Smith <script>alert(1)</script> met Jane Smith & {{7*7}} \"'><img src=x onerror=alert(2)>"


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def entries(console: Console) -> int:
    listed = await console.rest.call("GET", "/api/v1/vault/scopes", roles=[Role.AUDITOR])
    assert listed.status_code == 200, listed.text
    return len(listed.json()["items"])


async def test_a_text_is_explained_and_nothing_is_kept_but_the_event(console: Console) -> None:
    before = await entries(console)
    async with console.browsing(Role.INVOKER) as browser:
        form = await browser.open(PAGE)
        assert "Jane Smith" in html.unescape(form.text)
        answer = await browser.send(PAGE, {**ASKED, "text": HOSTILE})
    assert answer.status_code == 200, text_of(answer)
    model = re.search(r"<pre>(.*?)</pre>", answer.text, re.DOTALL)
    assert model is not None
    assert html.unescape(model[1]) == HOSTILE.replace("Jane Smith", "[PERSON_1]")
    assert answer.text.count("<mark") == 2
    assert "<script>" not in answer.text
    assert "<img src=x" not in answer.text
    assert "{{7*7}}" in answer.text
    assert await entries(console) == before
    events = await console.rest.call("GET", "/api/v1/audit/events?action=pii.explain", roles=[Role.AUDITOR])
    (event,) = events.json()["items"]
    assert event["counts"] == {"PERSON": 2}
    assert "Jane" not in events.text


@pytest.mark.parametrize("roles", [[Role.INVOKER], [Role.INVOKER, Role.RESTORER]])
async def test_with_a_scope_the_way_there_and_back_is_real(console: Console, roles: list[Role]) -> None:
    async with console.browsing(*roles) as browser:
        await browser.open(PAGE)
        answer = await browser.send(PAGE, {**ASKED, "text": "Jane Smith called.", "scope": "play"})
    shown = [html.unescape(each) for each in re.findall(r"<pre>(.*?)</pre>", answer.text, re.DOTALL)]
    assert shown[0] == "[PERSON_1] called."
    assert (shown[1] == "Jane Smith called.") == (Role.RESTORER in roles)
    assert ("Restoring needs the role" in text_of(answer)) == (Role.RESTORER not in roles)
    assert await entries(console) == 1


async def test_what_is_copied_is_the_same_call_without_the_key(console: Console) -> None:
    async with console.browsing(Role.INVOKER) as browser:
        await browser.open(PAGE)
        answer = await browser.send(PAGE, {**ASKED, "text": "It's Jane Smith's."})
    key = await console.rest.key(Role.INVOKER)
    assert key.rpartition("_")[2] not in answer.text
    code = html.unescape(
        next(each for each in re.findall(r"<pre>(.*?)</pre>", answer.text, re.DOTALL) if "curl" in each)
    )
    assert "http://localhost:8000/api/v1/middleware/pii_redaction/invoke" in code
    assert "It'\\''s Jane Smith'\\''s." in code


@pytest.mark.parametrize(
    "change", [{"text": " "}, {"text": "a" * 20_001}, {"sensitivity": "none"}, {"names": "<b>"}]
)
async def test_what_the_form_does_not_take_is_a_page_that_says_so(
    console: Console, change: dict[str, str]
) -> None:
    async with console.browsing(Role.INVOKER) as browser:
        await browser.open(PAGE)
        answer = await browser.send(PAGE, {**ASKED, "text": "Jane Smith", **change})
    assert answer.status_code == 422
    assert "<b>" not in answer.text


async def test_only_those_who_may_invoke_try_texts(console: Console) -> None:
    async with console.browsing(Role.AUDITOR) as browser:
        assert (await browser.open(PAGE)).status_code == 403
        home = await browser.open("/console/")
        assert PAGE not in home.text
        answer = await browser.send(PAGE, {**ASKED, "text": "Jane Smith"})
        assert answer.status_code == 403
