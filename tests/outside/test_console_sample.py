"""The console in a real browser over a service with traffic in it, on each engine: details, live pages, files."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e.running import Service
from tests.outside.console_sample import COLLECTION, CONVERSATION, sample_service
from tests.outside.screenshots import PICTURES
from tests.outside.test_console import Watched, browsing

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

HOSTILE = "<img/src=x/onerror=alert(1)>{{7*7}}"
LIVE = "/console/overview/live"
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [document.readyState].concat(
    [...document.querySelectorAll("body *")]
        .filter((each) => each.getBoundingClientRect().right > innerWidth)
        .map((each) => `${each.tagName} ${each.className} ${Math.round(each.getBoundingClientRect().right)}`)
)"""
"""The elements that reach beyond the window, where the page scrolls sideways; before them how far it was loaded."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def sample(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    migrated_postgres: Callable[[], AbstractContextManager[str]],
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("sample")
    if request.param == "sqlite":
        with sample_service(folder) as started:
            yield started
        return
    with migrated_postgres() as url, sample_service(folder, **on_postgres(url, folder)) as started:
        yield started


def on_postgres(url: str, folder: Path) -> dict[str, str]:
    return {"SLUICE_DATABASE__URL": url, "SLUICE_KEYS__FILE": str(folder / "ring.json")}


@asynccontextmanager
async def signed_in(service: Service, theme: str = "light", width: int = 1280) -> AsyncIterator[Watched]:
    async with browsing(service, theme, width) as tab:
        await tab.sign_in(service.key)
        yield tab
        assert tab.complaints == []


def invoke(service: Service, said: str, scope: str) -> None:
    body = {"arguments": {"scope": scope}, "context": [{"type": "text", "text": said}]}
    headers = {"authorization": f"Bearer {service.key}"}
    path = f"{service.url}/api/v1/middleware/pii_redaction/invoke"
    answer = httpx2.post(path, json=body, headers=headers, trust_env=False, timeout=60)
    assert answer.is_success, answer.text


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_pages_with_something_on_them_are_whole_accessible_and_quiet(
    sample: Service, theme: str, width: int
) -> None:
    async with signed_in(sample, theme, width) as tab:
        for picture in PICTURES:
            await tab.open(picture.path)
            if picture.prepare is not None:
                await picture.prepare(tab.page)
            assert await tab.page.evaluate(TOO_WIDE) == [], picture.name
            assert await tab.faults() == [], picture.name


async def test_the_overview_shows_a_call_without_being_loaded_again(sample: Service) -> None:
    async with signed_in(sample) as tab:
        await tab.page.evaluate("window.same = true")
        shown = tab.page.locator(".figures .card").first
        before = await shown.inner_text()
        invoke(sample, "I am Ada Byron.", CONVERSATION)
        await tab.page.wait_for_function(
            "before => document.querySelector('.figures .card').innerText !== before",
            arg=before,
            timeout=60_000,
        )
        assert await tab.page.evaluate("window.same")
        assert await tab.page.locator("[data-live-off]").is_hidden()
        assert await tab.faults() == []


async def test_a_chart_that_somebody_reads_stays_as_it_is(sample: Service) -> None:
    async with signed_in(sample) as tab:
        await tab.page.get_by_text("As a table").click()
        calls = tab.page.locator("[data-part=calls]")
        before = await calls.inner_text()
        figures = await tab.page.locator(".figures").inner_text()
        invoke(sample, "I am Ada Byron.", CONVERSATION)
        await tab.page.wait_for_function(
            "before => document.querySelector('.figures').innerText !== before", arg=figures, timeout=60_000
        )
        assert await calls.inner_text() == before


async def test_a_conversation_with_mark_up_in_its_name_is_shown_revealed_and_erased(sample: Service) -> None:
    invoke(sample, "I am Ada Byron.", HOSTILE)
    async with signed_in(sample) as tab:
        await tab.open("/console/conversations?prefix=%3Cimg")
        await tab.page.get_by_role("link", name=HOSTILE, exact=True).click()
        await tab.page.wait_for_selector("#timeline")
        assert await tab.page.locator("h1").inner_text() == HOSTILE
        assert await tab.page.locator("main img").count() == 0
        await tab.page.get_by_label("Reveal PERSON_1").click()
        assert await tab.faults() == []
        await tab.page.get_by_label("Why? It is on record.").fill("Complaint <b>114</b>")
        await tab.page.get_by_role("button", name="Reveal", exact=True).click()
        await tab.page.wait_for_selector("#original")
        assert await tab.page.locator("pre").inner_text() == "Ada Byron"
        assert await tab.faults() == []
        await tab.page.get_by_role("link", name="Back to the conversation").click()
        await tab.page.get_by_text("Complaint <b>114</b>").wait_for()
        await tab.page.get_by_label("Destroy its key").check()
        await tab.page.get_by_role("button", name="Erase", exact=True).click()
        await tab.page.wait_for_selector("#erased")
        assert await tab.faults() == []


async def test_files_are_sent_and_a_fault_is_told_by_name(sample: Service) -> None:
    title = f"# {HOSTILE}\n\nA plan."
    async with signed_in(sample) as tab:
        await tab.open(f"/console/collections/{COLLECTION}")
        files = tab.page.get_by_label("Text, Markdown, HTML, PDF or DOCX")
        await files.set_input_files(
            [{"name": "<i>plan.md", "mimeType": "text/markdown", "buffer": title.encode()}]
        )
        await tab.page.get_by_role("button", name="Send").click()
        await tab.page.get_by_role("rowheader", name=HOSTILE).wait_for()
        assert await tab.page.locator("main img, main i").count() == 0
        await files.set_input_files([{"name": "x.png", "mimeType": "image/png", "buffer": b"\x89PNG"}])
        await tab.page.get_by_role("button", name="Send").click()
        await tab.page.get_by_text("x.png: ").wait_for()
        assert await tab.faults() == []
        # The browser itself says that the file was refused.
        tab.complaints[:] = [each for each in tab.complaints if "status of 422" not in each]


def test_a_stop_ends_a_stream_whole(tmp_path: Path) -> None:
    """A stream that is cut lacks its last chunk, which a client takes for a broken connection."""
    with (
        sample_service(tmp_path) as service,
        httpx2.Client(base_url=service.url, trust_env=False, timeout=60) as http,
    ):
        page = http.get("/console/sign-in")
        token = page.text.partition('name="form_token" value="')[2][:64]
        form = {"form_token": token, "key": service.key}
        assert http.post("/console/sign-in", data=form, headers={"origin": service.url}).status_code == 303
        with http.stream("GET", LIVE, headers={"accept": "text/event-stream"}) as answer:
            parts = answer.iter_bytes()
            assert next(parts) == b"retry: 5000\n\n"
            service.process.send_signal(15)
            rest = b"".join(parts)
        assert b"ended" not in rest, "the session has not ended"
        service.process.wait(timeout=60)
