"""People sign in to the console with npm's oidc-provider, in a real browser; its logout ends all that they have."""

import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from playwright.async_api import Page, async_playwright

from app.settings.auth import IssuerSettings
from tests.integration.service import Service, running_service
from tests.integration.test_doors import INITIALIZE
from tests.integration.test_token_doors import MCP
from tests.outside.debian import program
from tests.outside.test_token_issuer import Company, Memory, Person, client_of, free_port, provider

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    port, issuer = free_port(), f"http://127.0.0.1:{free_port()}"
    console, resource = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}/mcp"
    settings = IssuerSettings.model_validate(
        {
            "issuer": issuer,
            "audience": [resource],
            "scopes": ["use"],
            "rules": [
                {"when": {"groups": "auditors"}, "tenant": "default", "roles": ["invoker", "auditor"]},
                {"when": {"groups": "llm-users"}, "tenant": "default", "roles": ["invoker"]},
            ],
            "console": {
                "clientId": "console",
                "clientSecret": "console-secret-of-the-tests",
                "redirectUri": f"{console}/console/sign-in/return",
                "name": "Example",
                "scopes": ["openid", "groups"],
            },
        }
    )
    folder = Path(tmp_path_factory.mktemp("people"))
    with (
        provider(urlsplit(issuer).port or 0, resource, console),
        running_service(folder, issuers=[settings], port=port) as service,
        httpx2.Client(base_url=console, timeout=30, trust_env=False) as http,
    ):
        yield Company(service, http, issuer, resource)


@asynccontextmanager
async def browsing(service: Service) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(base_url=f"http://127.0.0.1:{service.port}")
        yield page
        await browser.close()


async def sign_in(page: Page, path: str = "/console/") -> None:
    await page.goto(path)
    await page.get_by_role("link", name="Sign in with Example").click()
    await page.wait_for_url(f"**{path}")


async def sign_out_there(page: Page, issuer: str) -> None:
    """Sign out at the provider, which asks whether that is meant."""
    await page.goto(f"{issuer}/session/end")
    await page.get_by_role("button", name=re.compile("sign me out", re.IGNORECASE)).click()
    await page.wait_for_load_state("networkidle")


async def test_a_person_signs_in_with_a_browser_and_signs_out_at_the_provider(company: Company) -> None:
    memory = Memory()
    async for http in client_of(company, Person("ada"), memory):
        assert (await http.post(company.resource, json=INITIALIZE, headers=MCP)).status_code == 200
    assert memory.tokens is not None
    bearer = {"authorization": f"Bearer {memory.tokens.access_token}", **MCP}
    async with browsing(company.service) as page:
        await sign_in(page, "/console/playground")
        names = await page.locator("nav.side span").all_inner_texts()
        assert "Playground" in names and "Access" not in names
        cookies = {each["name"]: each for each in await page.context.cookies()}
        assert cookies["sluice_console"]["sameSite"] == "Strict" and cookies["sluice_console"]["httpOnly"]
        await page.goto("/console/")
        assert page.url.endswith("/console/")
        assert company.http.post("/mcp", json=INITIALIZE, headers=bearer).status_code == 200
        time.sleep(1.1)  # what is issued in the second of a logout counts no more
        await sign_out_there(page, company.issuer)
        await page.goto("/console/")
        assert "/console/sign-in" in page.url, company.service.log.getvalue()[-1500:]
        assert company.http.post("/mcp", json=INITIALIZE, headers=bearer).status_code == 401
        time.sleep(1.1)
        await sign_in(page)
        assert page.url.endswith("/console/")


async def test_who_has_no_group_is_told_so(company: Company) -> None:
    async with browsing(company.service) as page:
        await page.goto("/console/")
        address = await page.get_by_role("link", name="Sign in with Example").get_attribute("href")
        answer = await page.request.get(address or "", max_redirects=0)
        await page.goto(f"{answer.headers['location']}&login_hint=eve")
        assert "No rule gives you a role" in await page.locator("main").inner_text()
