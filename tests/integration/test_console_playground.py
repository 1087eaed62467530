"""The playground: what is found and why, what the model gets, and that a look leaves nothing behind but its event."""

import html
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx2 import Response

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
    key = await console.rest.key(Role.INVOKER)
    async with console.browsing() as browser:
        assert (await browser.sign_in(key)).status_code == 303
        await browser.open(PAGE)
        answer = await browser.send(PAGE, {**ASKED, "text": "It's Jane Smith's."})
    assert key.split("_", 2)[2] not in answer.text
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


def code_of(page: Response) -> dict[str, str]:
    """Return the calls to copy by language."""
    shown = re.findall(r"<summary>(\w+)</summary><div class=\"code\"><pre>(.*?)</pre>", page.text, re.DOTALL)
    return {language: html.unescape(code) for language, code in shown}


@pytest.mark.parametrize(
    ("pasted", "url"),
    [
        ({"model": "m", "messages": [{"role": "user", "content": HOSTILE}]}, "/openai/v1/chat/completions"),
        ({"model": "m", "input": [{"role": "user", "content": HOSTILE}]}, "/openai/v1/responses"),
        (
            {"model": "m", "system": "Help.", "messages": [{"role": "user", "content": HOSTILE}]},
            "/anthropic/v1/messages",
        ),
        ([{"role": "user", "content": HOSTILE}], "/api/v1/middleware/pii_redaction/invoke"),
        ({"name": HOSTILE}, "/api/v1/middleware/pii_redaction/invoke"),
    ],
)
async def test_a_conversation_or_a_body_is_tried_and_copied_as_what_it_is(
    console: Console, pasted: Any, url: str
) -> None:
    async with console.browsing(Role.INVOKER) as browser:
        await browser.open(PAGE)
        answer = await browser.send(PAGE, {**ASKED, "text": json.dumps(pasted)})
        kept = await browser.send(PAGE, {**ASKED, "text": json.dumps(pasted), "scope": "talk"})
    assert answer.text.count("<mark") == 2
    assert "<script>" not in answer.text + kept.text
    model = re.search(r"<pre>(.*?)</pre>", answer.text, re.DOTALL)
    assert model is not None
    expected = json.loads(json.dumps(pasted).replace("Jane Smith", "[PERSON_1]"))
    assert json.loads(html.unescape(model[1])) == expected
    assert "[PERSON_1]" in text_of(kept)
    codes = code_of(answer)
    assert list(codes) == ["curl", "Python", "TypeScript"]
    assert all(f"http://localhost:8000{url}" in code for code in (codes["curl"], codes["TypeScript"]))
    compile(codes["Python"], "copied", "exec")
    body = json.loads(re.findall(r"-d '(.*)'$", codes["curl"], re.DOTALL)[0].replace("'\\''", "'"))
    if url.endswith("invoke"):
        as_text = [{"type": "text", "text": json.dumps(pasted)}]
        assert body["context"] == (pasted if isinstance(pasted, list) else as_text)
    else:
        assert body == pasted


async def test_a_pipeline_is_seen_step_by_step_and_keeps_nothing(console: Console) -> None:
    steps = [{"name": "pii_redaction"}, {"name": "timestamp_injector", "on_error": "skip"}]
    put = await console.rest.call("PUT", "/api/v1/pipelines/to_model", {"title": HOSTILE, "steps": steps})
    assert put.status_code == 200, put.text
    async with console.browsing(Role.INVOKER) as browser:
        form = await browser.open(f"{PAGE}?pipeline=to_model")
        assert "<option selected>to_model</option>" in form.text
        answer = await browser.send(PAGE, {**ASKED, "text": HOSTILE, "pipeline": "to_model"})
        missing = await browser.send(PAGE, {**ASKED, "text": "x", "pipeline": "nose"})
    text = text_of(answer)
    assert "to_model, step by step" in text
    assert "[PERSON_1] <script>alert(1)</script> met [PERSON_1]" in text
    assert "timestamp_injector ok" in text
    assert "<script>" not in answer.text
    assert "/api/v1/pipelines/to_model/dry-run" in code_of(answer)["curl"]
    compile(code_of(answer)["Python"], "copied", "exec")
    assert missing.status_code == 404
    assert await entries(console) == 0


async def test_pipelines_are_shown_with_their_steps_and_what_a_version_changed(console: Console) -> None:
    first = {"title": HOSTILE, "steps": [{"name": "pii_redaction", "arguments": {"deny_list": [HOSTILE]}}]}
    second = {"steps": [{"name": "secret_redaction"}, *first["steps"]]}
    for body in (first, second):
        answer = await console.rest.call("PUT", "/api/v1/pipelines/to_model", body)
        assert answer.status_code == 200, answer.text
    path = "/console/policies/pipelines"
    async with console.browsing(Role.OPERATOR) as browser:
        assert "1. secret_redaction 2. pii_redaction" in text_of(await browser.open(path))
        page = await browser.open(f"{path}/to_model")
        text = text_of(page)
        assert "Steps of version 2" in text
        assert "What version 2 changed against version 1" in text
        assert "/steps/1 absent" in text
        assert "Try it" not in text
        assert HOSTILE in text.replace('\\"', '"')
        assert "<script>" not in page.text
        older = text_of(await browser.open(f"{path}/to_model?version=1"))
        assert "Steps of version 1" in older
        assert "changed against" not in older
        assert (await browser.open(f"{path}/to_model?version=7")).status_code == 404
        assert (await browser.open(f"{path}/nose")).status_code == 404
        assert (await console.rest.call("DELETE", "/api/v1/pipelines/to_model")).status_code == 204
        assert "deleted" in text_of(await browser.open(f"{path}/to_model"))
    async with console.browsing(Role.AUDITOR) as browser:
        for forbidden in (path, f"{path}/to_model"):
            assert (await browser.open(forbidden)).status_code == 403
