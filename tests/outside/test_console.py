"""The console in a real browser: each page as each role, wide and narrow, light and dark, without a complaint."""

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, async_playwright

from app.core.access import Role
from tests.artefacts import ROOT
from tests.e2e.running import Service, running
from tests.outside.debian import program

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

AXE = ROOT / "tests/outside/clients/node/node_modules/axe-core/axe.min.js"
PICTURES = os.environ.get("SLUICE_TEST_PICTURES")
"""A folder for a picture of each page, to look at."""
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
PAGES = {
    "/console/": set(Role),
    "/console/playground": {Role.INVOKER},
    "/console/conversations": {Role.OPERATOR, Role.AUDITOR, Role.ERASER, Role.RESTORER},
    "/console/audit": {Role.AUDITOR},
    "/console/subjects": {Role.ERASER},
    "/console/policies": {Role.OPERATOR},
    "/console/servers": {Role.OPERATOR},
    "/console/collections": {Role.OPERATOR},
    "/console/gateway": {Role.OPERATOR, Role.AUDITOR},
    "/console/access": {Role.KEY_CUSTODIAN},
    "/console/identities": {Role.KEY_CUSTODIAN},
    "/docs": set(Role),
}
SHAPES = [("light", 1280), ("dark", 1280), ("light", 360), ("dark", 360)]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def service(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    migrated_postgres: Callable[[], AbstractContextManager[str]],
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("console")
    settings = {"SLUICE_DETECTION__WORKERS": "1"}
    with ExitStack() as stack:
        if request.param == "postgresql":
            url = stack.enter_context(migrated_postgres())
            settings |= {"SLUICE_DATABASE__URL": url, "SLUICE_KEYS__FILE": str(folder / "ring.json")}
        started = stack.enter_context(running(folder, **settings))
        started.sluice("invoke", "pii_redaction", given="I am John Doe, 123-45-6789.")
        yield started


class Watched:
    """A page whose complaints are kept: errors of scripts, refusals of its policy, requests that leave the host."""

    def __init__(self, page: Page, url: str) -> None:
        self.page, self.url = page, url
        self.complaints: list[str] = []
        page.on("console", lambda said: self._hear(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    async def open(self, path: str) -> None:
        await self.page.goto(self.url + path)
        await self.page.wait_for_load_state("networkidle")

    async def sign_in(self, key: str) -> None:
        await self.open("/console/sign-in")
        await self.page.get_by_label("API key").fill(key)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url("**/console/")

    async def faults(self) -> list[str]:
        """Return what axe-core finds wrong; it is evaluated by the debugger, which no policy of a page binds."""
        await self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found["violations"]]

    def _hear(self, kind: str, text: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(text)


@asynccontextmanager
async def browsing(
    service: Service, theme: str = "light", width: int = 1280, **more: Any
) -> AsyncIterator[Watched]:
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        context = await browser.new_context(
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": 900},
            **more,
        )
        watched = Watched(await context.new_page(), service.url)

        async def kept_inside(route: Route) -> None:
            if not route.request.url.startswith((service.url, "data:")):
                watched.complaints.append(f"a request to {route.request.url}")
            await route.continue_()

        await context.route("**/*", kept_inside)
        yield watched
        await browser.close()


def key_of(service: Service, *roles: str, name: str = "console") -> str:
    options = [part for role in roles for part in ("--role", role)]
    return service.sluice("keys", "create", "--name", name, "--override-unions", *options).stdout.strip()


@pytest.mark.parametrize(("theme", "width"), SHAPES)
async def test_every_page_is_whole_accessible_and_quiet(service: Service, theme: str, width: int) -> None:
    async with browsing(service, theme, width) as tab:
        await tab.open("/console/sign-in")
        assert await tab.faults() == []
        await tab.sign_in(service.key)
        for path in PAGES:
            await tab.open(path)
            assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            if path != "/docs":  # the reference is the work of others
                assert await tab.faults() == [], path
            if PICTURES:
                name = path.strip("/").replace("/", "-")
                await tab.page.screenshot(path=Path(PICTURES) / f"{name}-{theme}-{width}.png", full_page=True)
    assert tab.complaints == []


@pytest.mark.parametrize("role", list(Role))
async def test_each_role_sees_its_pages_and_no_others(service: Service, role: Role) -> None:
    async with browsing(service) as tab:
        await tab.sign_in(key_of(service, role))
        listed = await tab.page.locator("nav.side li a").evaluate_all("links => links.map(a => a.pathname)")
        assert set(listed) == {path for path, roles in PAGES.items() if role in roles} - {"/docs"}
        for path in listed:
            await tab.open(path)
            assert await tab.page.locator("h1").count() == 1
    assert tab.complaints == []


async def test_a_text_is_tried_with_the_keyboard_and_found_in_the_record(service: Service) -> None:
    async with browsing(service) as tab:
        await tab.sign_in(service.key)
        await tab.open("/console/playground")
        await tab.page.get_by_label("Text, conversation").fill(f"Jane Smith {HOSTILE}")
        await tab.page.get_by_role("button", name="Try it").press("Enter")
        await tab.page.wait_for_selector("mark")
        assert await tab.page.locator("main img, mark script").count() == 0
        assert HOSTILE in await tab.page.locator("pre").first.inner_text()
        assert await tab.faults() == []
        await tab.open("/console/audit")
        await tab.page.get_by_label("Action").fill("pii.explain")
        await tab.page.get_by_role("button", name="Filter").click()
        await tab.page.wait_for_url("**action=pii.explain**")
        await tab.page.locator("#events tbody a").first.click()
        await tab.page.wait_for_selector("h1:has-text('pii.explain')")
        shown = await tab.page.locator("time").first.inner_text()
        assert not re.search(r"UTC", shown)
        assert "UTC" in (await tab.page.locator("time").first.get_attribute("title") or "")
        assert await tab.faults() == []
        await tab.open("/console/audit")
        await tab.page.get_by_role("button", name="Verify now").click()
        await tab.page.wait_for_url("**/console/audit/verify")
        assert await tab.page.locator("h1").count() == 1
        assert await tab.faults() == []
    assert tab.complaints == []


async def test_pages_are_read_without_scripts(service: Service) -> None:
    async with browsing(service, java_script_enabled=False) as tab:
        await tab.sign_in(service.key)
        await tab.open("/console/audit")
        assert await tab.page.locator("#events tbody tr").count() > 0
        await tab.page.get_by_text("As a table").click()
        assert await tab.page.get_by_role("columnheader", name="Day (UTC)").is_visible()


async def test_what_a_page_must_not_do_is_seen_where_it_is_done(service: Service) -> None:
    """Negative control: a page with a script of its own, a foreign image and no label is complained of."""
    async with browsing(service) as tab:
        await tab.open("/console/sign-in")
        await tab.page.evaluate(
            "document.body.insertAdjacentHTML('beforeend', '<input><img src=\"http://127.0.0.1:9/x\" "
            'onerror="alert(1)">\')'
        )
        await tab.page.wait_for_timeout(200)
        assert any("Content Security Policy" in each for each in tab.complaints)
        assert any(each.startswith("label") for each in await tab.faults())
