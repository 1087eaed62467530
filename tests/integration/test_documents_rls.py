"""Row-level security keeps tenants' documents apart even where a query forgets to; the control shows that it bites."""

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.store.database import Database
from app.store.documents.search import compares_vectors
from tests.conftest import Copies, connect
from tests.integration.collection_setup import Library, open_library

TABLES = (
    *("collection", "collection_part", "collection_document", "document_chunk", "ingestion"),
    "document_search",
)
PROBES = (
    "SELECT count(*) FROM document_chunk WHERE tenant <> :me",
    "SELECT count(*) FROM document_chunk WHERE text LIKE '%zeppelin of you%'",
    "SELECT count(*) FROM document_search WHERE tenant <> :me AND terms @@ plainto_tsquery('zeppelin')",
    "SELECT count(*) FROM document_search WHERE tenant <> :me AND embedding IS NOT NULL",
    "SELECT count(*) FROM collection_part p JOIN document_chunk c ON c.part = p.id WHERE p.tenant <> :me",
    *(f"SELECT count(*) FROM {table} WHERE tenant <> :me" for table in TABLES),  # noqa: S608
)


@pytest.fixture(scope="module")
def own_url(migrated_postgres: Copies) -> Iterator[str]:
    with migrated_postgres() as url:
        yield url


@pytest.fixture
async def mine(own_url: str) -> AsyncIterator[Library]:
    """Return my library, beside one of somebody else."""
    database = Database(own_url)
    for name in ("you", "me"):
        async with open_library(database, f"{name}-{uuid4().hex[:8]}") as library:
            await library.make()
            await library.add("a", f"The zeppelin of {name} landed.")
            await library.add("b", "More", background=True)
            if name == "me":
                yield library
    await database.close()


async def reached(tx: AsyncConnection, me: str) -> list[int]:
    values = ({"me": me} if ":me" in probe else {} for probe in PROBES)
    return [
        int((await tx.execute(text(probe), given)).scalar_one())
        for probe, given in zip(PROBES, values, strict=True)
    ]


async def test_no_probe_reaches_documents_of_others_and_without_it_each_does(mine: Library) -> None:
    async with mine.database.transaction(mine.tenant) as tx:
        assert await compares_vectors(tx), "this PostgreSQL has pgvector"
        assert not any(await reached(tx, mine.tenant))
    owner = await connect(mine.database.url.set(drivername="postgresql").render_as_string())
    try:
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
        async with mine.database.transaction(mine.tenant) as tx:
            assert all(await reached(tx, mine.tenant))
    finally:
        for table in TABLES:
            await owner.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        await owner.close()


async def test_without_pgvector_vectors_are_compared_in_the_process_with_the_same_results(
    mine: Library,
) -> None:
    question = "zeppelins that landed"
    by_database = await mine.ask(question)
    assert by_database
    mine.retrieval.compares = False
    in_process = await mine.ask(question)
    assert [one.document for one in in_process] == [one.document for one in by_database]
    assert [one.relevance for one in in_process] == pytest.approx(
        [one.relevance for one in by_database], abs=1e-3
    )
    assert mine.retrieval.vectors._parts
