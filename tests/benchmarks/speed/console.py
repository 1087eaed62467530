"""What a page of the console weighs and costs beside the record as it grows.

``python -m tests.benchmarks.speed.console URL --keyring FILE`` measures on a database that is there, such as one that
``python -m tests.benchmarks.speed.evidence`` has filled and sealed.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx2
import psutil
from pydantic import SecretStr

from app.assembly import opened
from app.core.access import Role
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.access.access import KeyInfo
from app.store.access.tenants import Tenant
from app.store.migrate import upgrade
from tests.benchmarks.speed import evidence
from tests.benchmarks.speed.database_processes import server_process, spent
from tests.benchmarks.speed.processes import Measured, postgres, sluice
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import Sizes

TENANT: Final = "large"
_TITLE: Final = "Pages of the console"
_COLUMNS: Final = (
    "database",
    "page",
    "KiB",
    "KiB with its files",
    "service CPU ms",
    "database CPU ms",
    "p50 ms",
    "p95 ms",
)
_NOTE: Final = (
    "As an administrator who may see every page of a tenant that has a tenth of the events. KiB are compressed, as "
    "they go over the wire; scripts, styles and pictures are kept by the browser from page to page."
)
_LINK: Final = re.compile(r'(?:href|src)="(/console/[^"#]*)"')
_FORM_TOKEN: Final = re.compile(r'name="form_token" value="([^"]+)"')


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table, on PostgreSQL at ten times the events."""
    keyring = folder / "console-keys.json"
    with postgres(folder) as url:
        evidence.row(url, keyring, sizes.events * 10)
        yield table(_TITLE, _COLUMNS, pages(url, keyring, folder, sizes.rounds), _NOTE)


def pages(url: str, keyring: Path, folder: Path, rounds: int) -> list[tuple[object, ...]]:
    """Return a row for each page that the navigation leads to, and for some of the record."""
    key = asyncio.run(_key(url, keyring))
    keys = {"SLUICE_KEYS__FILE": str(keyring)}
    with (
        sluice(folder, url, **keys) as server,
        httpx2.Client(base_url=f"http://127.0.0.1:{server.port}") as visitor,
    ):
        _sign_in(visitor, key)
        database = asyncio.run(server_process(url))
        name = "SQLite" if database is None else "PostgreSQL"
        return [
            (name, title, *_measured(visitor, path, server, database, rounds))
            for title, path in _paths(visitor).items()
        ]


async def _key(url: str, keyring: Path) -> str:
    """Store a key of the large tenant with all that a person in it may be."""
    settings = Settings(database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=keyring))
    async with opened(settings) as services:
        now = datetime.now(UTC)
        info = KeyInfo(TENANT, "", "bench", frozenset(Role), (), now, "bench")
        async with services.database.system_transaction(write=True) as tx:
            await services.access.store_tenant(tx, Tenant(TENANT, now, "bench"))
        async with services.database.system_transaction(write=True) as tx:
            return str((await services.access.store_key(tx, info)).key)


def _sign_in(visitor: httpx2.Client, key: str) -> None:
    """Begin a session as the form does."""
    form = _FORM_TOKEN.search(visitor.get("/console/sign-in").text)
    answer = visitor.post("/console/sign-in", data={"form_token": form.group(1) if form else "", "key": key})
    if answer.status_code != 303:
        raise RuntimeError(f"The sign-in answered {answer.status_code}.")


def _paths(visitor: httpx2.Client) -> dict[str, str]:
    """Return the pages by their titles: what the navigation names, and what an auditor opens from the record."""
    overview = visitor.get("/console/").text
    entries = [
        path
        for path in _LINK.findall(overview.partition("<main")[0])
        if not path.startswith("/console/assets")
    ]
    named = {
        path.removeprefix("/console/").capitalize() or "Overview": path for path in dict.fromkeys(entries)
    }
    record = visitor.get("/console/audit").text
    event = next(path for path in _LINK.findall(record) if path.startswith("/console/audit/events/"))
    return named | {
        "Audit, a rare outcome": "/console/audit?outcome=failed",
        "Audit, an actor": "/console/audit?actor=key-0",
        "Audit, one event with its proof": event,
    }


def _measured(
    visitor: httpx2.Client, path: str, server: Measured, database: psutil.Process | None, rounds: int
) -> tuple[float, float, float, float, float, float]:
    """Return KiB of the page and with its files, CPU milliseconds of service and database, p50 and p95 of the wait."""
    first = visitor.get(path)
    if first.status_code != 200:
        raise RuntimeError(f"{path} answered {first.status_code}.")
    files = sum(visitor.get(file).num_bytes_downloaded for file in _files(first.text))
    took, count = [], rounds * 4
    before = server.cpu_s(), spent(database)
    for _ in range(count):
        begin = time.perf_counter()
        visitor.get(path)
        took.append(time.perf_counter() - begin)
    own, theirs = server.cpu_s() - before[0], spent(database) - before[1]
    page = first.num_bytes_downloaded
    return (
        page / 1024,
        (page + files) / 1024,
        own / count * 1e3,
        theirs / count * 1e3,
        percentile(took, 0.5) * 1e3,
        percentile(took, 0.95) * 1e3,
    )


def _files(page: str) -> set[str]:
    return {path for path in _LINK.findall(page) if path.startswith("/console/assets/")}


def main() -> None:
    """Measure the pages over the database that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed.console", description=__doc__)
    parser.add_argument("url", help="Of a database that exists; it is migrated.")
    parser.add_argument("--keyring", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    upgrade(options.url)
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        print(
            table(_TITLE, _COLUMNS, pages(options.url, options.keyring, Path(folder), options.rounds), _NOTE)
        )


if __name__ == "__main__":
    sys.exit(main())
