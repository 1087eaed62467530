"""The page of identities in a real browser: an issuer is added, tried, changed and removed, in every shape."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.running import Service, running
from tests.integration.token_issuer import AUDIENCE, Issuer, token_issuer
from tests.outside.test_console import HOSTILE, PICTURES, SHAPES, browsing

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

PAGE = "/console/identities"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("identities"), SLUICE_DETECTION__WORKERS="1") as started:
        yield started


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as served:
        yield served


@pytest.mark.parametrize(("theme", "width"), SHAPES)
async def test_an_issuer_is_added_tried_changed_and_removed(
    service: Service, issuer: Issuer, theme: str, width: int
) -> None:
    rules = [
        {
            "when": {"groups": ["support", HOSTILE]},
            "tenant": "default",
            "roles": ["invoker"],
            "grants": ["desk"],
        },
        {"when": {"/realm_access/roles": "llm-users"}, "tenant": "default", "roles": ["invoker", "auditor"]},
        {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"], "cidrs": ["10.0.0.0/8"]},
    ]
    entry = {"issuer": issuer.url, "audience": [AUDIENCE], "rules": rules}
    async with browsing(service, theme, width) as tab:
        page = tab.page

        async def looked_at(name: str) -> None:
            assert await tab.faults() == [], name
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            if PICTURES:
                shot = Path(PICTURES) / f"identities-{name}-{theme}-{width}.png"
                await page.screenshot(path=shot, full_page=True)

        await tab.sign_in(service.key)
        await tab.open(PAGE)
        await looked_at("empty")
        await page.get_by_label("The issuer").fill("{")
        await page.get_by_role("button", name="Add the issuer").click()
        assert "must be a JSON object" in await page.get_by_role("alert").inner_text()
        tab.complaints.clear()  # the browser notes the status 422
        await page.get_by_label("The issuer").fill(json.dumps(entry, indent=2))
        await page.get_by_role("button", name="Add the issuer").click()
        await page.wait_for_url(f"**{PAGE}/issuers/*")
        await page.get_by_role("button", name="Ask it for its keys").click()
        assert "It is ready: 1 key for ES256." in await page.get_by_role("status").inner_text()
        await looked_at("issuer")
        await tab.open(PAGE)
        assert HOSTILE in await page.get_by_role("region", name=f"Rules of {issuer.url}").inner_text()
        await page.get_by_label("A token").fill(issuer.token(sub="ada-of-payroll"))
        await page.get_by_role("button", name="Try it").click()
        assert "A rule maps it." in await page.get_by_role("status").inner_text()
        assert "of-payroll" not in await page.content()
        await looked_at("tried")
        await page.get_by_role("link", name=issuer.url).click()
        await page.get_by_text("Remove…").click()
        await page.get_by_role("button", name="Remove for good").click()
        await page.wait_for_url(f"**{PAGE}")
        assert "Only keys open this tenant." in await page.locator("main").inner_text()
    assert tab.complaints == []
