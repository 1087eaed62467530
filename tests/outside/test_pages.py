"""Pages of the service as a browser shows them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.running import environment_of, sluice
from tests.outside.browser import Page, browsing

pytestmark = [pytest.mark.outside, pytest.mark.needs("chromium")]

TEXT = "Write to jane@example.com <script>document.title = 'ran'</script> <b>now</b>"


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Page]:
    async with browsing(tmp_path / "profile") as page:
        yield page


async def test_a_report_of_findings_colours_them_and_runs_nothing_of_the_text(
    tab: Page, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    environment = environment_of(tmp_path, SLUICE_DETECTION__WORKERS="1")
    done = sluice("pii", "explain", "--html", str(report), given=TEXT, environment=environment)
    assert done.returncode == 0, done.stderr

    await tab.open(report.as_uri())

    assert await tab.evaluate("document.title") == "Personal data found"
    assert await tab.evaluate("document.querySelector('h1').innerText") == "Personal data: 1 finding"
    shown = await tab.evaluate("document.querySelector('pre').innerText")
    assert shown.replace("EMAIL", "") == TEXT
    assert await tab.evaluate("document.querySelectorAll('script, pre b').length") == 0
    mark = "getComputedStyle(document.querySelector('pre mark'))"
    plain = "getComputedStyle(document.querySelector('pre'))"
    assert await tab.evaluate(f"{mark}.backgroundColor") != await tab.evaluate(f"{plain}.backgroundColor")
    assert await tab.evaluate("document.querySelector('pre mark').firstChild.data") == "jane@example.com"
    assert await tab.evaluate("performance.getEntriesByType('resource').length") == 0
    assert tab.complaints == []


async def test_the_browser_tells_of_a_page_that_does_run_something(tab: Page, tmp_path: Path) -> None:
    """Negative control: what the test above rules out is seen where it happens."""
    page = tmp_path / "page.html"
    page.write_text(f"<title>page</title><pre>{TEXT}</pre><script>throw new Error('seen')</script>")

    await tab.open(page.as_uri())

    assert await tab.evaluate("document.title") == "ran"
    assert await tab.evaluate("document.querySelectorAll('script, pre b').length") == 3
    assert tab.complaints
