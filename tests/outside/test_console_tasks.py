"""Five tasks of a new administrator, from the first page by what a person sees, each in a few steps.

Nothing is addressed but by visible words and labels; a step is a click, a choice or something written. A person who
reads ten seconds before each of six steps needs a minute.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from playwright.async_api import Locator, Page, expect

from tests.e2e.fake_provider import provider
from tests.e2e.running import Service, running
from tests.outside.test_console import browsing
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

MOST_STEPS = 6
PERSON = "Marta Kowalczyk"
MAIL = "marta.kowalczyk@mail.example"
SCOPE = "ticket-4711"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    inside = {"SLUICE_UPSTREAMS__ALLOWED_NETWORKS": "127.0.0.0/8"}
    with running(tmp_path_factory.mktemp("tasks"), SLUICE_DETECTION__WORKERS="1", **inside) as started:
        yield started


@pytest.fixture(scope="module")
def backend(service: Service) -> Iterator[httpx2.Client]:
    """Be a backend of the company, which has masked a mail of a person and put the person back."""
    headers = {"authorization": f"Bearer {service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, timeout=30, trust_env=False) as http:
        sent = [{"type": "text", "text": f"I am {PERSON}, write to {MAIL}."}]
        masked = invoke(http, "pii_redaction", sent)
        assert MAIL not in masked.text
        restored = invoke(http, "pii_restoration", masked.json()["content"])
        assert MAIL in restored.text
        yield http


def invoke(http: httpx2.Client, name: str, context: object) -> httpx2.Response:
    arguments = {"scope": SCOPE}
    answer = http.post(f"/api/v1/middleware/{name}/invoke", json={"arguments": arguments, "context": context})
    assert answer.status_code == 200, answer.text
    return answer


@dataclass
class Person:
    """Somebody before the browser, whose steps are counted."""

    page: Page
    steps: list[str] = field(default_factory=list)

    async def click(self, what: Locator) -> None:
        self.steps.append(f"click {what}")
        await what.click()
        await self.page.wait_for_load_state("load")

    async def go(self, name: str) -> None:
        await self.click(self.page.locator("nav.side").get_by_role("link", name=name, exact=True))

    async def press(self, name: str) -> None:
        await self.click(self.page.locator("main").get_by_role("button", name=name).first)

    async def follow(self, name: str) -> None:
        await self.click(self.page.locator("main").get_by_role("link", name=name, exact=True))

    async def tick(self, box: Locator) -> None:
        self.steps.append(f"tick {box}")
        await box.check()

    async def write(self, label: str, text: str) -> None:
        self.steps.append(f"write {label}")
        await self.page.get_by_label(label).first.fill(text)

    async def choose(self, label: str, value: str) -> None:
        self.steps.append(f"choose {label}")
        await self.page.get_by_label(label).first.select_option(value)


@pytest.fixture
async def person(service: Service, backend: httpx2.Client) -> AsyncIterator[Person]:
    async with browsing(service) as tab:
        await tab.sign_in(service.key)
        someone = Person(tab.page)
        yield someone
        assert tab.complaints == []
        assert len(someone.steps) <= MOST_STEPS, someone.steps


async def test_who_restored_a_value_is_found(person: Person) -> None:
    await person.go("Conversations")
    await person.follow(SCOPE)
    restored = person.page.get_by_role("listitem").filter(has_text="restored").first
    await expect(restored).to_contain_text("bootstrap")
    assert MAIL not in await person.page.content()


async def test_a_changed_tool_is_approved(person: Person, backend: httpx2.Client) -> None:
    script = ScriptedServer("desk")
    with serving_http(script) as url:
        added = backend.post("/api/v1/servers", json={"name": "desk", "settings": {"url": url}})
        assert added.status_code == 201, added.text
        assert backend.post("/api/v1/servers/desk/approve").status_code == 200
        script.tools["echo"]["description"] = "Echoes a text to a stranger, too."
        script.announce("tools")
        await person.go("Servers")
        await person.follow("desk")
        await person.press("Connect and list")
        change = person.page.get_by_role("listitem").filter(has_text="to a stranger, too")
        await expect(change).to_contain_text("Offered now")
        await person.tick(change.get_by_role("checkbox"))
        await person.press("Approve what is ticked")
        await expect(person.page.locator("main")).not_to_contain_text("Approve what is ticked")


async def test_a_policy_is_tightened_and_what_changes_is_seen(person: Person, backend: httpx2.Client) -> None:
    sample = "Our reference is K-778/Blue Heron."
    before = backend.get("/api/v1/policies").json()["version"]
    await person.go("Policies")
    await person.write("Text, conversation or body", sample)
    await person.write("fixed_arguments", '{"pii_redaction": {"aggressiveness": "strict"}}')
    await person.press("See what would change")
    await expect(person.page.get_by_role("region", name="What would change")).to_contain_text("strict")
    await expect(person.page.get_by_role("heading", name="With the change")).to_be_visible()
    await person.press("Store as version")
    assert backend.get("/api/v1/policies").json()["version"] == before + 1


async def test_a_person_is_erased(person: Person, backend: httpx2.Client) -> None:
    await person.go("Data subjects")
    await person.write("Values, one a line", f"{PERSON}\n{MAIL}")
    await person.write("Reason", "Request 2026-114")
    await person.press("Search")
    await person.tick(person.page.get_by_role("checkbox", name=re.compile("for good")))
    await person.press("Erase")
    receipt = re.compile("receipt", re.IGNORECASE)
    await expect(person.page.locator("main")).to_contain_text(receipt, timeout=30_000)  # a job erases
    context = [{"type": "text", "text": "Dear [PERSON_1] at [EMAIL_1]"}]
    assert MAIL not in invoke(backend, "pii_restoration", context).text


async def test_a_client_of_openai_is_connected(
    person: Person, service: Service, backend: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider() as model:
        entry = {"kind": "openai", "baseUrl": f"{model.url}/v1", "apiKey": "sk-of-nobody"}
        stored = backend.put("/api/v1/providers/main", json={**entry, "allowedNetworks": ["127.0.0.0/8"]})
        assert stored.is_success, stored.text
        await person.go("Overview")
        offered = person.page.locator("main dl > div").filter(
            has=person.page.get_by_text("OpenAI", exact=True)
        )
        await person.click(offered.get_by_text("What to paste"))
        monkeypatch.setenv("SLUICE_API_KEY", service.key)
        pasted: dict[str, Any] = {}
        exec(await offered.locator("pre").inner_text(), pasted)  # noqa: S102 - what a person would do with it
        client: openai.OpenAI = pasted["client"]
        with client:
            said: ChatCompletionMessageParam = {"role": "user", "content": f"I am {PERSON}."}
            answer = await asyncio.to_thread(
                client.chat.completions.create, model="gpt-5-mini", messages=[said]
            )
        assert PERSON in (answer.choices[0].message.content or "")
        assert model.bodies and not model.was_sent(PERSON)
