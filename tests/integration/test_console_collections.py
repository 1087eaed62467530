"""Collections in the console: documents and readers, files, and what somebody else finds; never a document's text."""

import html
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.core.access import Role
from app.services.access.access import HOST
from tests.integration.console_app import TOKEN, Browser, Console, open_console, text_of

pytestmark = pytest.mark.in_turn("database_url")

PAGE = "/console/collections"
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}"
TEXT = "The budget of the expansion is two million. <script>alert(2)</script>"


@pytest.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with open_console(database_url) as opened:
        yield opened


async def made(browser: Browser, name: str, access: str = "*", **more: str) -> None:
    await browser.open(PAGE)
    answer = await browser.send(PAGE, {"name": name, "access": access, **more})
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}/{name}")


async def added(browser: Browser, collection: str, **form: str) -> None:
    await browser.open(f"{PAGE}/{collection}")
    answer = await browser.send(f"{PAGE}/{collection}/documents", {"text": TEXT, **form})
    assert answer.status_code == 303, answer.text


async def found(browser: Browser, **form: str) -> list[str]:
    await browser.open(PAGE)
    page = await browser.send(f"{PAGE}/search", {"query": "budget of the expansion", **form})
    assert page.status_code == 200, text_of(page)
    table = page.text.partition('aria-label="Table of what is found"')[2].partition("</table>")[0]
    return re.findall(r'<th scope="row" class="name">([^<]+)</th>', table)


async def test_documents_are_added_listed_and_deleted_and_their_text_is_never_shown(console: Console) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        await made(browser, "notes", description=HOSTILE)
        await added(browser, "notes", external_id="q4", title=HOSTILE, access="")
        await added(browser, "notes", external_id="q3/<i>", title="")
        for page in (await browser.open(f"{PAGE}/notes"), await browser.open(PAGE)):
            assert html.escape(HOSTILE) in page.text
            assert "<img src=x" not in page.text
            assert "<i>" not in page.text
            assert "two million" not in page.text
        listed = await browser.open(f"{PAGE}/notes")
        assert "2 documents in 2 passages" in text_of(listed)
        delete = re.findall(r'action="(\S+/documents/[0-9a-f]{32}/delete)"', listed.text)
        assert len(delete) == 2
        assert (await browser.send(delete[0])).status_code == 303
        assert "1 document in 1 passages" in text_of(await browser.open(f"{PAGE}/notes"))
        assert (await browser.send(f"{PAGE}/notes/delete")).status_code == 422
        assert (await browser.send(f"{PAGE}/notes/delete", {"sure": "on"})).status_code == 303
        assert (await browser.open(f"{PAGE}/notes")).status_code == 404


async def test_a_search_as_somebody_else_finds_what_that_reader_would(console: Console) -> None:
    access = console.rest.services.access
    reader = await access.create_key(HOST, [Role.INVOKER], tenant=console.rest.tenant)
    async with console.browsing(Role.OPERATOR) as browser:
        await made(browser, "open")
        await made(browser, "few", f"role:auditor, key:{reader.info.id}")
        await made(browser, "none", "")
        for name in ("open", "few", "none"):
            await added(browser, name, external_id="budget", title=f"{name} {HOSTILE}")
        names = {name: html.escape(f"{name} {HOSTILE}") for name in ("open", "few")}
        assert await found(browser, reader="*") == [names["open"]]
        assert await found(browser, reader="role:invoker") == [names["open"]]
        assert sorted(await found(browser, reader="role:auditor")) == sorted(names.values())
        assert sorted(await found(browser, key=reader.info.id)) == sorted(names.values())
        page = await browser.send(f"{PAGE}/search", {"query": "budget", "reader": "*"})
        assert "two million" not in page.text
        await access.revoke_key(HOST, reader.info.id)
        for form, status in (
            ({"key": reader.info.id}, 404),
            ({"key": "00000000"}, 404),
            ({"reader": "role:<b>"}, 422),
            ({"reader": "*", "query": " "}, 422),
        ):
            answer = await browser.send(f"{PAGE}/search", {"query": "budget", **form})
            assert answer.status_code == status, form
    page = await console.rest.call(
        "GET", "/api/v1/audit/events?action=documents.search_as", roles=[Role.AUDITOR]
    )
    assert "budget" not in page.text
    readers = {(event["details"]["reader"], event["outcome"]) for event in page.json()["items"]}
    assert {("role:auditor", "ok"), (f"key:{reader.info.id}", "ok"), ("key:00000000", "refused")} <= readers


async def test_a_key_of_another_tenant_is_nobody_here(console: Console) -> None:
    stranger = await console.rest.services.access.create_key(HOST, [Role.INVOKER])
    body = {"query": "budget", "reader": f"key:{stranger.info.id}"}
    answer = await console.rest.call("POST", "/api/v1/collections/search", body, roles=[Role.OPERATOR])
    assert answer.status_code == 404


async def test_the_same_search_over_rest(console: Console) -> None:
    call = console.rest.call
    operator: dict[str, Any] = {"roles": [Role.OPERATOR]}
    for name, access in (("a", ["role:auditor"]), ("b", ["*"])):
        assert (await call("PUT", f"/api/v1/collections/{name}", {"access": access}, **operator)).is_success
        document = {"external_id": "x", "title": name, "text": TEXT}
        assert (await call("POST", f"/api/v1/collections/{name}/documents", document, **operator)).is_success
    for body, titles in (
        ({"reader": "role:auditor"}, {"a", "b"}),
        ({"reader": "role:auditor", "sources": ["a"]}, {"a"}),
        ({}, {"b"}),
        ({"query": "zebra crossing"}, set()),
    ):
        answer = await call("POST", "/api/v1/collections/search", {"query": "the budget", **body}, **operator)
        assert answer.status_code == 200, answer.text
        assert {item["title"] for item in answer.json()["items"]} == titles, body
        assert "million" not in answer.text
    for wrong in ({"query": ""}, {"reader": "anyone"}, {"limit": 51}, {"more": 1}):
        answer = await call("POST", "/api/v1/collections/search", {"query": "x", **wrong}, **operator)
        assert answer.status_code == 422, wrong


async def test_a_file_is_sent_with_the_token_of_the_session_alone(console: Console) -> None:
    async with console.browsing(Role.OPERATOR) as browser:
        await made(browser, "files")
        page = await browser.open(f"{PAGE}/files")
        token = TOKEN.search(page.text)
        address = f"{PAGE}/files/files?external_id=Plan%20%3Cb%3E.md"
        headers = {"origin": "http://localhost:8000", "content-type": "application/octet-stream"}
        for sent, status in ({}, 403), ({"x-form-token": "0" * 64}, 403), ({"x-form-token": token[1]}, 303):  # type: ignore[index]
            answer = await browser.http.post(
                address, content=b"# Plan\n\nA plan.", headers={**headers, **sent}
            )
            assert answer.status_code == status
        unknown = await browser.http.post(
            f"{PAGE}/files/files?external_id=picture.png",
            content=b"\x89PNG",
            headers={**headers, "x-form-token": token[1] if token else ""},
        )
        assert unknown.status_code == 422
        shown = await browser.open(f"{PAGE}/files")
        assert "Plan &lt;b&gt;.md" in shown.text
        assert "1 document in 1 passages" in text_of(shown)


async def test_only_operators_change_collections(console: Console) -> None:
    async with console.browsing(Role.INVOKER) as browser:
        await browser.open("/console/")
        for path in (PAGE, f"{PAGE}/search", f"{PAGE}/a/documents", f"{PAGE}/a/delete"):
            form = {"name": "a", "query": "a", "external_id": "a", "text": "a", "sure": "on"}
            assert (await browser.send(path, form)).status_code == 403, path
        assert (await browser.open(f"{PAGE}/a")).status_code == 403
