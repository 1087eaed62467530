"""Attacks on signing in to the console: an issuer whose metadata lies, and links that lead somewhere else."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from app.console.visits import HOME, own_page
from tests.integration.console_app import open_console, text_of
from tests.integration.console_people import Clock, Company, trusted
from tests.integration.token_issuer import Issuer, token_issuer

pytestmark = pytest.mark.in_turn("database_url")

METADATA = "/.well-known/openid-configuration"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


@pytest.fixture
async def company(database_url: str, issuer: Issuer) -> AsyncIterator[Company]:
    clock = Clock()
    async with open_console(database_url, trusted=trusted(issuer), now=clock.now) as console:
        yield Company(console, issuer, clock)


@pytest.mark.parametrize(
    "place",
    [
        *(None, 7, "", "javascript:alert(1)", "ftp://login.example.com", "http://", "http://[::1"),
        *("http://login.example.com:port/", "https:///authorize", "https://login.example.com/#part"),
    ],
)
async def test_nobody_is_led_to_what_is_no_address(company: Company, place: Any) -> None:
    company.issuer.documents[METADATA]["authorization_endpoint"] = place
    async with company.console.browsing() as browser:
        answer = await browser.open(f"{company.leaving}?next=/console/")
        assert answer.status_code == 503 and "location" not in answer.headers, text_of(answer)


async def test_an_address_cannot_bring_a_header_along(company: Company) -> None:
    place = f"{company.issuer.url}/authorize\r\nset-cookie: sluice_console=mine"
    company.issuer.documents[METADATA]["authorization_endpoint"] = place
    async with company.console.browsing() as browser:
        answer = await browser.open(f"{company.leaving}?next=/console/")
        cookies = answer.headers.get_list("set-cookie")
        assert not [cookie for cookie in cookies if "mine" in cookie]
        assert "\n" not in answer.headers.get("location", "")


@pytest.mark.parametrize(
    "wanted",
    [
        *("//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", "console"),
        *(
            "/console/../api/v1",
            "/console/./x",
            "/console/..",
            "/console/%2e%2E/api",
            "/console//evil.example",
        ),
        *("/console/x\r\ny", "/console/<b>", "/consolex/", "/console/x#y", "/console/.%2e/?x=1"),
    ],
)
async def test_who_signs_in_is_led_to_a_page_of_the_console(company: Company, wanted: str) -> None:
    assert own_page(wanted) == HOME
    async with company.console.browsing() as browser:
        answer = await browser.http.get(company.leaving, params={"next": wanted})
        assert answer.status_code == 303


@pytest.mark.parametrize(
    "wanted",
    [
        *("/console/", "/console/audit?outcome=ok", "/console/conversations?prefix=a%2Fb&after=..%2Fc"),
        *("/console/collections/.notes", "/console/audit?user=https://x.example//y"),
    ],
)
def test_a_page_of_the_console_is_found_again(wanted: str) -> None:
    assert own_page(wanted) == wanted
