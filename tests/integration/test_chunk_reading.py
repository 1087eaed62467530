"""Reading the few chunks that a question is answered from does not read the others of their document."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from app.store import migrate
from app.store.database import Database
from app.store.documents import search
from tests.benchmarks.speed.growth_fill import LARGE, Fill, fill_chunks
from tests.conftest import fresh_postgres
from tests.factories import PATIENT

CHUNKS = 2_500


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    with fresh_postgres(postgres_url) as fresh:
        migrate.upgrade(fresh)
        yield fresh


async def test_a_plan_for_any_numbers_reads_their_chunks_alone(url: str) -> None:
    await fill_chunks(url, Fill(0, CHUNKS, 10))
    database = Database(url, patience=PATIENT)
    async with database.transaction(LARGE, write=False) as tx:
        found = (
            await tx.execute(text("SELECT number FROM document_chunk ORDER BY number LIMIT 3"))
        ).scalars()
        numbers = list(found)
        chunks = await search.read_chunks(tx, LARGE, [1], numbers)
        assert sorted(chunk.number for chunk in chunks) == numbers
        prepared = list((await tx.execute(text("SELECT statement FROM pg_prepared_statements"))).scalars())
        assert search._CHUNKS.format(search._NUMBERED, "$1", "= ANY($2)") in prepared
        await tx.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
        removed = {}
        for name, source in (("ours", search._NUMBERED), ("control", "document_chunk")):
            statement = search._CHUNKS.format(source, "$1", "= ANY($2)")
            await tx.exec_driver_sql(f"PREPARE {name} (text, bigint[]) AS {statement}")
            asked = f"('{LARGE}', ARRAY{numbers})"
            plan = await tx.exec_driver_sql(f"EXPLAIN (ANALYZE) EXECUTE {name} {asked}")
            lines = [row[0] for row in plan]
            removed[name] = sum(int(line.split(":")[1]) for line in lines if "Removed by" in line)
    await database.close()
    assert removed["ours"] == 0
    assert removed["control"] > CHUNKS / 2
