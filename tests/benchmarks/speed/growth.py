"""What the same request costs when ten and a hundred times as much is kept."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from app.assembly import opened
from app.core.contracts.engines import RetrievalQuery
from app.core.errors import ServiceError
from app.services.documents.retrieval import RetrievalService
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.migrate import upgrade
from tests.benchmarks.speed.growth_fill import LARGE, Fill, fill_chunks, fill_events
from tests.benchmarks.speed.growth_queries import asked
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import percentile, table, written
from tests.benchmarks.speed.sizes import Sizes

TIMES = (1, 10, 100)
TENANTS = 5_000
SEPARATOR = " | "
READERS = frozenset({"*"})

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
        asyncio.run(grow_events(url, sizes.events, grown[0], sizes))
    url = f"sqlite:///{folder}/growth.db"
    upgrade(url)
    asyncio.run(grow_events(url, max(1, sizes.events // 10), grown[1], sizes))
    for one in grown:
        yield queries_table(one, sizes.events if one is grown[0] else max(1, sizes.events // 10))
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


def queries_table(grown: Grown, unit: int) -> str:
    """Return the table of the queries of one database, whose smallest record has ``unit`` events."""
    return table(
        f"Audit queries as the record grows, {grown.name}, ms",
        ("a page of 100 events of", "tenant", *(f"{unit * times:,} events" for times in TIMES)),
        [(*operation.split(SEPARATOR), *cells) for operation, cells in grown.cells.items()],
        f"p50 / p95 / CPU of service and database. Requests over REST without sockets, warm, one after the other, each "
        f"with its own record. The events are of 90 days and {TENANTS:,} tenants: the large one has a tenth of them, "
        "the others have equal parts. Without a time a query is of 30 days.",
    )


async def grow_events(url: str, unit: int, grown: Grown, sizes: Sizes) -> None:
    """Measure every query of the record at each size."""
    have = 0
    for times in TIMES:
        await fill_events(url, Fill(have, unit * times, TENANTS))
        have = unit * times
        for (operation, tenant), answered in (await asked(url, sizes.rounds * 4)).items():
            grown.add(f"{operation}{SEPARATOR}{tenant}", str(answered))


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
