"""Policies, pipelines, the gateway and what clients see, in a real browser: used, hostile, without a complaint."""

import json
from pathlib import Path

import httpx2
import pytest

from tests.e2e.running import Service
from tests.outside.test_console import HOSTILE, PICTURES, Watched, browsing, service

__all__ = ["service"]
pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

SIGN_OUT = """() => fetch("/console/sign-out", {
    method: "POST", body: new URLSearchParams({form_token: document.querySelector("[name=form_token]").value})
})"""
ARGUMENTS = json.dumps({"pii_redaction": {"exclude": ["email"]}})


def put(service: Service, path: str, body: object) -> None:
    headers = {"Authorization": f"Bearer {service.key}"}
    with httpx2.Client(base_url=service.url, headers=headers, trust_env=False) as client:
        answer = client.put(f"/api/v1{path}", json=body)
    assert answer.status_code in (200, 201), answer.text


async def whole(tab: Watched, name: str) -> None:
    """Check the page that is open, and take a picture of it where that is asked for."""
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    assert await tab.page.locator("main img, main script").count() == 0, name
    assert await tab.faults() == [], name
    if PICTURES:
        size = tab.page.viewport_size or {"width": 0}
        await tab.page.screenshot(path=Path(PICTURES) / f"used-{name}-{size['width']}.png", full_page=True)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
async def test_a_policy_is_changed_and_looked_at_from_all_sides(
    service: Service, theme: str, width: int
) -> None:
    put(service, "/pipelines/to_model", {"title": HOSTILE, "steps": [{"name": "pii_redaction"}]})
    provider = {"kind": "openai", "baseUrl": "https://api.openai.com/v1", "description": HOSTILE}
    put(service, "/providers/main", {**provider, "models": ["gpt-*"]})
    put(service, "/groups/speech", {"name": "speech", "description": HOSTILE, "members": []})
    async with browsing(service, theme, width) as tab:
        page = tab.page
        await tab.sign_in(service.key)
        await tab.open("/console/policies")
        await page.locator("[name='/default_arguments']").fill(
            ARGUMENTS if theme == "light" else json.dumps({"pii_redaction": {"deny_list": [HOSTILE]}})
        )
        await page.locator("[name=sample]").fill(f"Mail jane.smith@example.com {HOSTILE}")
        await page.get_by_role("button", name="See what would change").click()
        await page.wait_for_selector("#change")
        await whole(tab, "preview")
        if await page.locator("[name=sure]").count():
            assert await page.get_by_text("would no longer be found").is_visible()
            await page.locator("[name=sure]").check()
        await page.get_by_role("button", name="Store as version").click()
        await page.wait_for_selector("text=holds since")
        await whole(tab, "stored")
        await page.get_by_role("link", name="to version").first.click()
        await page.wait_for_selector("h1:has-text('against')")
        await whole(tab, "difference")
        for path in ("/console/policies/pipelines", "/console/policies/pipelines/to_model"):
            await tab.open(path)
            await whole(tab, path.rpartition("/")[2])
        await tab.open("/console/gateway")
        await page.get_by_role("button", name="Look").click()
        await page.wait_for_selector("text=Masking is on")
        await whole(tab, "client")
        await tab.open("/console/servers/clients/catalog")
        await page.get_by_role("button", name="Look").click()
        await page.wait_for_selector("#seen")
        await whole(tab, "catalog")
        await tab.open("/console/playground?pipeline=to_model")
        await page.get_by_role("button", name="Try it").click()
        await page.wait_for_selector("#steps")
        await whole(tab, "pipeline-run")
    assert tab.complaints == []


async def test_the_answer_to_a_form_is_left_without_sending_the_form_again(service: Service) -> None:
    async with browsing(service) as tab:
        page, sent = tab.page, list[str]()
        await tab.sign_in(service.key)
        await tab.open("/console/gateway")
        await page.get_by_role("button", name="Look").click()
        await page.wait_for_selector("text=Masking is on")
        assert await page.locator("[data-live-off]").is_hidden()
        await page.evaluate(SIGN_OUT)
        page.on(
            "request",
            lambda request: sent.append(request.method) if request.is_navigation_request() else None,
        )
        await page.wait_for_url("**/console/sign-in*", timeout=40_000)
        assert set(sent) == {"GET"}
