"""Ingestion over REST: tenants take turns, and a hostile document ends alone while the next one is read."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engines.documents.extraction import DOCX
from app.engines.documents.reader import DocumentReader
from app.services.access.access import HOST
from app.services.documents.ingestion import IngestionService
from tests.integration.rest_app import Rest, open_rest
from tests.unit.engines.documents.samples import pdf_of
from tests.unit.engines.documents.test_reader import PARAGRAPH, docx_of, unfolding_pdf

URL = "/api/v1/collections/notes"
LARGE = "The treaty of the noisy tenant binds all parties. " * 1500
NOISY = 8


@pytest.fixture
async def rest(database_url: str) -> AsyncIterator[Rest]:
    async with open_rest(database_url) as opened:
        yield opened


@pytest.fixture
async def one_rest(sqlite_database_url: str) -> AsyncIterator[Rest]:
    """Parsers do not know the database: one engine is enough for them."""
    async with open_rest(sqlite_database_url) as opened:
        yield opened


async def _tenant(rest: Rest, name: str) -> str:
    tenant = f"{rest.tenant}-{name}"
    await rest.services.tenants.create(HOST, tenant)
    assert (await rest.call("PUT", URL, {}, tenant=tenant)).status_code == 201
    return tenant


async def _add(rest: Rest, tenant: str, name: str, body: bytes, kind: str = "text/plain") -> None:
    answer = await rest.call(
        *("POST", f"{URL}/documents"),
        tenant=tenant,
        headers={"content-type": kind},
        content=body,
        params={"external_id": name, "background": "true"},
    )
    assert answer.status_code == 202, answer.text


async def _ingestions(rest: Rest, tenant: str) -> dict[str, dict[str, Any]]:
    answer = await rest.call("GET", f"{URL}/ingestions", tenant=tenant)
    return {ingestion["external_id"]: ingestion for ingestion in answer.json()["items"]}


@asynccontextmanager
async def _reading(rest: Rest, reader: DocumentReader | None = None) -> AsyncIterator[None]:
    """Read in the background, as the service does."""
    service: IngestionService = rest.services.ingestion
    async with (service if reader is None else replace(service, reader=reader)).running():
        yield


async def _finished(rest: Rest, tenant: str) -> dict[str, str]:
    """Return the states of a tenant's documents once none of them waits."""
    async with asyncio.timeout(50):
        while True:
            states = {name: each["state"] for name, each in (await _ingestions(rest, tenant)).items()}
            if not {"queued", "running"} & set(states.values()):
                return states
            await asyncio.sleep(0.05)


async def test_a_noisy_tenant_delays_a_quiet_one_by_one_document_at_most(rest: Rest) -> None:
    noisy, quiet = await _tenant(rest, "noisy"), await _tenant(rest, "quiet")
    for number in range(NOISY):
        await _add(rest, noisy, f"n{number}", LARGE.encode())
    await _add(rest, quiet, "mine", b"A short note.")
    async with _reading(rest):
        assert await _finished(rest, quiet) == {"mine": "done"}
        ready = (await _ingestions(rest, quiet))["mine"]["updated"]
        assert set((await _finished(rest, noisy)).values()) == {
            "done"
        }  # and the noisy one gets all of its own
    before = [each for each in (await _ingestions(rest, noisy)).values() if each["updated"] < ready]
    assert len(before) <= 1


async def test_hostile_documents_end_and_the_next_one_is_read(one_rest: Rest) -> None:
    rest = one_rest
    tenant = await _tenant(rest, "hostile")
    hostile = {
        "bomb": (docx_of(b"<w:p/>" * 2_000_000), DOCX),
        "nested": (b"<div>" * 150_000 + b"x", "text/html"),
        "endless": (unfolding_pdf(), "application/pdf"),
        "deep": (docx_of(b"<w:p>" * 3000 + b"</w:p>" * 3000), DOCX),
    }
    for name, (body, kind) in hostile.items():
        await _add(rest, tenant, name, body, kind)
    await _add(rest, tenant, "good", docx_of(PARAGRAPH), DOCX)
    await _add(rest, tenant, "pages", pdf_of("The first page.", "The second."), "application/pdf")
    async with _reading(rest, DocumentReader(stalled_s=4)):
        states = await _finished(rest, tenant)
    assert states == {**dict.fromkeys(hostile, "failed"), "good": "done", "pages": "done"}
    ended = await _ingestions(rest, tenant)
    assert ended["endless"]["error"].startswith("too_large: ")
    assert all("hello" not in str(each["error"]) for each in ended.values())


def _readers() -> list[int]:
    """Return the ids of the processes that read a document for this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"app.engines.documents.reading_process" in command and str(os.getpid()).encode() in command:
            found.append(int(path.parent.name))
    return found


async def test_a_parser_that_is_killed_fails_its_document_at_once(one_rest: Rest) -> None:
    rest = one_rest
    tenant = await _tenant(rest, "killed")
    await _add(rest, tenant, "endless", unfolding_pdf(), "application/pdf")
    await _add(rest, tenant, "next", b"A short note.")
    async with _reading(rest):
        async with asyncio.timeout(20):
            while not (readers := _readers()):
                await asyncio.sleep(0.02)
        for process in readers:
            os.kill(process, signal.SIGKILL)
        async with asyncio.timeout(20):  # far below the time limit of a parser
            assert await _finished(rest, tenant) == {"endless": "failed", "next": "done"}
