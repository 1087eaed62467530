"""How long it takes to find and erase a value among many scopes, before and after the blind index is filled."""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import asyncpg
from pydantic import SecretStr
from sqlalchemy import make_url

from app.assembly import Services, opened
from app.core.access import Caller, Role
from app.core.content.handles import Original
from app.services.vault.blind_index import blind_digest, normal_digest
from app.services.vault.normal_forms import stored_form
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.vault.allocation import Allocation
from app.store.vault.numbering import Numbering, Value, Want
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import table
from tests.benchmarks.speed.sizes import Sizes

PARTS = (100, 10, 1)
CALLER = Caller("finding", "0000000a", frozenset({Role.ERASER}))
_CHUNK = 500
_ERASURES = 10


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the time of an erasure by the number of scopes."""
    rows = [
        ("SQLite", *row) for row in asyncio.run(_measured(f"sqlite:///{folder}/finding.db", sizes, folder))
    ]
    with postgres(folder) as url:
        rows += [("PostgreSQL", *row) for row in asyncio.run(_measured(url, sizes, folder))]
    yield table(
        "Finding and erasing a value that one scope has",
        (
            "database",
            "scopes",
            "find, index filled, ms",
            "erase, index filled, ms",
            "erase, index empty, ms",
            "fill the index, values/s",
        ),
        rows,
        f"Median of {_ERASURES} look-ups, and of as many erasures with receipt and record; one without the index, as "
        "with values of older releases until the background has filled it.",
    )


async def _measured(url: str, sizes: Sizes, folder: Path) -> list[tuple[object, ...]]:
    settings = Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
    rows: list[tuple[object, ...]] = []
    async with opened(settings) as services:
        filled = 0
        for part in PARTS:
            await fill_scopes(services, filled, sizes.scopes // part)
            await run_as_owner(url, "ANALYZE")
            filled = sizes.scopes // part
            newest = range(filled - 2, filled - 2 - min(_ERASURES, filled // 2), -1)
            found = [await _find(services, number) for number in newest]
            fast = [await _erase(services, number) for number in newest]
            await run_as_owner(url, "UPDATE entry SET blind = NULL, blind_normal = NULL")
            await run_as_owner(url, "ANALYZE")
            slow = await _erase(services, filled - 1)
            begin = time.perf_counter()
            indexed = await services.vault.index.fill(lambda *_counts: None)
            rate = indexed / (time.perf_counter() - begin)
            times = [statistics.median(seconds) * 1000 for seconds in (found, fast)]
            rows.append((filled, *times, slow * 1000, rate))
    return rows


async def fill_scopes(services: Services, first: int, end: int) -> None:
    """Store a value of its own in each scope from ``first`` to ``end``."""
    keys = services.audit.keys
    await keys.ready(CALLER.tenant)
    for start in range(first, end, _CHUNK):
        wants = []
        for number in range(start, min(start + _CHUNK, end)):
            payload = Original(value_of(number)).encode()
            digests = (
                blind_digest(keys, CALLER.tenant, value_of(number), canonical=False),
                normal_digest(keys, CALLER.tenant, stored_form("EMAIL", value_of(number))),
            )
            wants.append(
                Want(
                    CALLER.tenant,
                    uuid4().hex,
                    [Value("EMAIL", payload, payload, "exact", *digests)],
                    None,
                    fresh=True,
                )
            )
        async with services.database.transaction(CALLER.tenant) as tx:
            await Allocation(tx, Numbering(services.vault.key_keeper, datetime.now(UTC))).run(wants)


async def run_as_owner(url: str, statement: str) -> None:
    """Run a statement that takes longer than the service would wait."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        with closing(sqlite3.connect(str(address.database), timeout=60)) as file, file:
            file.execute(statement)
        return
    connection = await asyncpg.connect(address.render_as_string(hide_password=False))
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _find(services: Services, number: int) -> float:
    begin = time.perf_counter()
    page = await services.vault.erasures.find_value(CALLER, value_of(number))
    seconds = time.perf_counter() - begin
    if len(page.items) != 1:
        raise ValueError("The value is not where it was stored.")
    return seconds


async def _erase(services: Services, number: int) -> float:
    begin = time.perf_counter()
    receipt = await services.vault.erase_value(CALLER, value_of(number))
    seconds = time.perf_counter() - begin
    if sum(receipt.counts.values()) != 1:
        raise ValueError("The value was not where it was stored, or in another scope, too.")
    return seconds


def value_of(number: int) -> str:
    return f"customer{number}@example.com"
