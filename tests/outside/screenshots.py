"""Take a picture of every page of the console, over a service with a sample in it: ``make screenshots``.

``python -m tests.outside.screenshots FOLDER [--all]`` writes small PNG files; with ``--all`` wide and narrow, light and
dark, for looking at them; without, the ones that the documentation shows.
"""

import argparse
import asyncio
import io
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from playwright.async_api import Page, async_playwright

from tests.e2e.running import Service
from tests.outside.console_sample import COLLECTION, CONVERSATION, SERVER, sample_service
from tests.outside.debian import program

HEIGHT, WIDE, NARROW = 800, 1200, 360
MOST_BYTES = 100_000
_COLOURS = 256


class Picture(NamedTuple):
    """A page: the name of its file, where it is, and what is done before the picture is taken."""

    name: str
    path: str
    prepare: Callable[[Page], Awaitable[None]] | None = None


async def _try_text(page: Page) -> None:
    await page.get_by_role("button", name="Try it").click()
    await page.wait_for_selector("mark")


async def _search_subject(page: Page) -> None:
    await page.get_by_label("Values, one a line").fill("jane.smith@example.com\nJane Smith")
    await page.get_by_label("Reason").fill("Request 2026-114")
    await page.get_by_role("button", name="Search").click()
    await page.wait_for_selector("#there")


async def _search_as(page: Page) -> None:
    await page.get_by_label("Question").fill("how long does a refund take")
    await page.get_by_role("button", name="Search").click()
    await page.wait_for_selector("#finds")


async def _try_claims(page: Page) -> None:
    await page.get_by_label("Issuer", exact=True).fill("https://login.example.com")
    await page.get_by_label("Claims").fill('{"groups": ["llm-users"]}')
    await page.get_by_role("button", name="Try it").click()
    await page.wait_for_selector("text=A rule maps it.")


async def _first_event(page: Page) -> None:
    await page.locator("#events tbody a").first.click()
    await page.wait_for_selector("#proof")


PICTURES = (
    Picture("overview", "/console/"),
    Picture("playground", "/console/playground", _try_text),
    Picture("conversations", "/console/conversations"),
    Picture("conversation", f"/console/conversations/scope?name={CONVERSATION}"),
    Picture("audit", "/console/audit"),
    Picture("event", "/console/audit?action=vault.reveal", _first_event),
    Picture("subjects", "/console/subjects", _search_subject),
    Picture("policies", "/console/policies"),
    Picture("pipeline", "/console/policies/pipelines/to_model"),
    Picture("servers", "/console/servers"),
    Picture("server", f"/console/servers/{SERVER}"),
    Picture("collections", "/console/collections", _search_as),
    Picture("collection", f"/console/collections/{COLLECTION}"),
    Picture("gateway", "/console/gateway"),
    Picture("access", "/console/access"),
    Picture("identities", "/console/identities", _try_claims),
)


def packed(png: bytes) -> bytes:
    """Return a picture with a palette, which a page of few colours loses nothing by."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    written = io.BytesIO()
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(written, "PNG", optimize=True)
    return written.getvalue()


async def take(service: Service, folder: Path, *, everything: bool) -> list[Path]:
    """Write the pictures into ``folder``, and return their files."""
    shapes = [("light", WIDE)]
    if everything:
        shapes += [("dark", WIDE), ("light", NARROW), ("dark", NARROW)]
    files = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for theme, width in shapes:
            context = await browser.new_context(
                color_scheme="dark" if theme == "dark" else "light",
                viewport={"width": width, "height": HEIGHT},
                reduced_motion="reduce",
                timezone_id="Europe/London",
                locale="en-GB",
            )
            page = await context.new_page()
            await page.goto(f"{service.url}/console/sign-in")
            await page.get_by_label("API key").fill(service.key)
            await page.get_by_role("button", name="Sign in", exact=True).click()
            await page.wait_for_url("**/console/")
            for picture in PICTURES:
                await page.goto(service.url + picture.path)
                if picture.prepare is not None:
                    await picture.prepare(page)
                await page.wait_for_timeout(200)
                name = f"{picture.name}-{theme}-{width}.png" if everything else f"{picture.name}.png"
                files.append(folder / name)
                files[-1].write_bytes(packed(await page.screenshot(full_page=everything)))
            await context.close()
        await browser.close()
    return files


def main() -> None:
    """Take the pictures; say which are larger than they should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="wide and narrow, light and dark, each page whole")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sample_service(Path(work)) as service:
        files = asyncio.run(take(service, given.folder, everything=given.all))
    for file in files:
        size = file.stat().st_size
        print(f"{size:>8} {file}" + (" is too large" if size > MOST_BYTES and not given.all else ""))


if __name__ == "__main__":
    main()
