"""What the same request costs when ten and a hundred times as much is kept."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from app.assembly import opened
from app.core.access import Caller, Role
from app.core.contracts.engines import RetrievalQuery
from app.core.errors import ServiceError
from app.services.audit.audit import AuditQuery
from app.services.documents.retrieval import RetrievalService
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.migrate import upgrade
from tests.benchmarks.speed.growth_fill import (
    LARGE,
    RARE_ACTION,
    RARE_ACTOR,
    RARE_MIDDLEWARE,
    Fill,
    fill_chunks,
    fill_events,
)
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import percentile, table, written
from tests.benchmarks.speed.sizes import Sizes

TIMES = (1, 10, 100)
TENANTS = 5_000
AUDITOR = Caller(LARGE, "0000000a", frozenset({Role.AUDITOR}))
READERS = frozenset({"*"})
_NOW = datetime.now(UTC)

QUERIES: dict[str, dict[str, Any]] = {
    "the newest": {},
    "a usual actor": {"actor": "key-0"},
    "a rare actor": {"actor": RARE_ACTOR},
    "a rare action": {"action": RARE_ACTION},
    "a rare middleware": {"middleware": RARE_MIDDLEWARE},
    "a rare outcome": {"outcome": "failed"},
    "a scope": {"scope": "no such scope"},
    "a request id": {"request_id": "request-10"},
    "a client's request id": {"client_request_id": "theirs-of-a-client-2"},
    "a usual actor's rare outcome": {"actor": "key-0", "outcome": "failed"},
    "an hour, 20 days ago": {"since": _NOW - timedelta(days=20, hours=1), "until": _NOW - timedelta(days=20)},
    "an actor that never was": {"actor": "nobody"},
}
QUESTIONS = {
    "a rare word": "w9000",
    "a common word": "w3",
    "five words, two rare": "w8000 w9500 w300 w40 w2",
    "five common words": "w1 w2 w4 w6 w9",
}


@dataclass
class Grown:
    """Figures of one database by operation, one of each size."""

    name: str
    cells: dict[str, list[str]]

    def add(self, operation: str, cell: str) -> None:
        self.cells.setdefault(operation, []).append(cell)


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the tables of the record and of full text, each at three sizes."""
    grown = [Grown("PostgreSQL", {}), Grown("SQLite", {})]
    with postgres(folder) as url:
        asyncio.run(grow_events(url, sizes.events, grown[0], sizes, folder))
    url = f"sqlite:///{folder}/growth.db"
    upgrade(url)
    asyncio.run(grow_events(url, max(1, sizes.events // 10), grown[1], sizes, folder))
    yield table(
        "Audit queries as the record grows, ms",
        ("database", "page of 100 events of", *(f"{times}x" for times in TIMES)),
        [(one.name, operation, *cells) for one in grown for operation, cells in one.cells.items()],
        f"p50 / p95 of one request after the other, its own record included. 1x: {sizes.events:,} events on PostgreSQL "
        f"and {max(1, sizes.events // 10):,} on SQLite, of 90 days and {TENANTS:,} tenants, of which the one that asks "
        "has a tenth.",
    )
    words = Grown("PostgreSQL", {})
    with postgres(folder) as url:
        asyncio.run(grow_chunks(url, sizes, words, folder))
    yield table(
        "Full text of PostgreSQL as documents grow, ms",
        ("question", *(f"{times}x" for times in TIMES)),
        [(operation, *cells) for operation, cells in words.cells.items()],
        f"p50 / p95 of retrieval by words alone under row-level security, counts of words not remembered. 1x: "
        f"{sizes.chunks:,} chunks of 60 words, four of five in the tenant that asks.",
    )


async def grow_events(url: str, unit: int, grown: Grown, sizes: Sizes, folder: Path) -> None:
    """Measure every query of the record at each size."""
    have = 0
    for times in TIMES:
        await fill_events(url, Fill(have, unit * times, TENANTS))
        have = unit * times
        async with opened(_settings(url, folder)) as services:
            for operation, filters in QUERIES.items():
                query = AuditQuery(**filters)
                grown.add(operation, await timed(sizes, lambda q=query: services.audit.query(AUDITOR, q)))


async def grow_chunks(url: str, sizes: Sizes, grown: Grown, folder: Path) -> None:
    """Measure every question at each size."""
    have = 0
    for times in TIMES:
        await fill_chunks(url, Fill(have, sizes.chunks * times, TENANTS))
        have = sizes.chunks * times
        async with opened(_settings(url, folder)) as services:
            for operation, question in QUESTIONS.items():
                query = RetrievalQuery(LARGE, READERS, question)

                async def ask(query: RetrievalQuery = query) -> object:
                    return await RetrievalService(services.database, None).retrieve([query])

                grown.add(operation, await timed(sizes, ask))


async def timed(sizes: Sizes, work: Callable[[], Awaitable[object]]) -> str:
    """Return p50 and p95 in milliseconds, or the code of the error that ``work`` ends with."""
    took = []
    for number in range(sizes.rounds * 4 + 1):
        begin = time.perf_counter()
        try:
            await work()
        except ServiceError as error:
            return f"{error.code} after {(time.perf_counter() - begin) * 1e3:.0f}"
        if number:
            took.append((time.perf_counter() - begin) * 1e3)
    return f"{written(percentile(took, 0.5))} / {written(percentile(took, 0.95))}"


def _settings(url: str, folder: Path) -> Settings:
    return Settings(
        database=DatabaseSettings(url=SecretStr(url)), keys=KeysSettings(file=folder / "keyring.json")
    )
