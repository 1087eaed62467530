"""Many vectors are looked up in an index of their tenant: by the role of requests, of readable chunks alone."""

import asyncio
import random
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.assembly import Services, opened
from app.services.background import Job
from app.services.documents.retrieval import RetrievalService
from app.services.documents.vector_indexes import VectorIndexes
from app.settings import DatabaseSettings, KeysSettings, Settings
from app.store.database import Database
from app.store.documents.search import compare_vectors
from app.store.documents.vector_indexes import PREFIX, list_spaces, nearest_chunks
from tests.conftest import connect
from tests.e2e.running import environment_of, sluice
from tests.factories import TEST_RING
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import Library, open_library

LEAST = 100
READER, CLOSED = frozenset({"*"}), "key:11111111"
WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("ara", "elo", "imi", "oku", "uta")]
EMBEDDER = "fake 1"
RING = f"1:{b64encode(TEST_RING.keys[1]).decode()}"
"""The ring of the library's vault."""


def pages(seed: int, count: int) -> str:
    """Return sections of random words, each of them a chunk by itself."""
    chance = random.Random(seed)
    return "\n\n".join(f"## Page {n}\n\n{' '.join(chance.choices(WORDS, k=120))}." for n in range(count))


@pytest.fixture
async def library(own_postgres_url: str) -> AsyncIterator[Library]:
    """Return a tenant with 200 chunks, half of them closed to most readers, beside a small tenant."""
    database = Database(own_postgres_url)
    unique = uuid4().hex[:8]
    async with (
        open_library(database, f"me-{unique}") as mine,
        open_library(database, f"you-{unique}") as yours,
    ):
        for tenant, count in ((mine, 100), (yours, 5)):
            await tenant.make()
            await tenant.add("open", pages(1, count))
            await tenant.add("closed", pages(2, count), access=[CLOSED])
        yield mine
    await database.close()


def indexed(library: Library, least: int = LEAST) -> Library:
    return replace(library, retrieval=RetrievalService(library.database, FakeEmbedder(), compared_most=least))


async def parts_of(tx: AsyncConnection, tenant: str) -> list[int]:
    query = text("SELECT id FROM collection_part WHERE tenant = :tenant ORDER BY id")
    return list((await tx.execute(query, {"tenant": tenant})).scalars())


async def asked(seed: int) -> bytes:
    words = " ".join(random.Random(seed).choices(WORDS, k=20))
    return (await FakeEmbedder().embed([words])).vectors[0]


async def scans(library: Library) -> int:
    """Return how often any index of vectors served a scan."""
    async with library.database.system_transaction() as tx:
        await tx.execute(text("SELECT pg_stat_force_next_flush()"))
    query = (
        "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes WHERE starts_with(indexrelname, :prefix)"
    )
    async with library.database.system_transaction() as tx:
        return int((await tx.execute(text(query), {"prefix": PREFIX})).scalar_one())


async def names(url: str) -> set[str]:
    owner = await connect(url)
    rows = await owner.fetch("SELECT relname FROM pg_class WHERE starts_with(relname, $1)", PREFIX)
    await owner.close()
    return {row[0] for row in rows}


async def test_many_readable_chunks_are_looked_up_in_the_index_and_few_are_compared(library: Library) -> None:
    plan = await VectorIndexes(library.database, LEAST).keep()
    # What a connection has scanned is counted when it says so: this one asks and says.
    database = Database(library.database.url.render_as_string(hide_password=False), pool_size=1)
    library = replace(library, database=database)
    assert [space.tenant for space, _ in plan.build] == [library.tenant]
    everything, exact, indexes = READER | {CLOSED}, indexed(library, 10_000), indexed(library)
    question = " ".join(random.Random(9).choices(WORDS, k=12))
    before = await scans(library)
    compared = await exact.ask(question, everything)
    # The control: nothing but the number of readable chunks leads to the index.
    assert await scans(library) == before
    assert await indexes.ask(question, everything) == compared
    served = await scans(library)
    assert served > before
    assert await indexes.ask(question) == await exact.ask(question)
    assert await scans(library) == served
    await database.close()


async def test_nine_of_ten_nearest_chunks_at_least_are_found_whoever_asks(library: Library) -> None:
    await VectorIndexes(library.database, LEAST).keep()
    async with library.database.transaction(library.tenant) as tx:
        parts = await parts_of(tx, library.tenant)
        assert len(parts) == 2
        hits = 0
        for seed in range(30):
            for readable in (parts, parts[:1], parts[1:]):
                vector = await asked(seed)
                exact = await compare_vectors(tx, library.tenant, readable, vector, limit=10)
                near = await nearest_chunks(tx, library.tenant, readable, vector, EMBEDDER, limit=10)
                hits += len(exact.keys() & near.keys())
                assert near == pytest.approx({number: exact.get(number, near[number]) for number in near})
                assert list(near.values()) == sorted(near.values(), reverse=True)
        assert hits >= 0.98 * 30 * 3 * 10


async def test_what_may_not_be_read_is_not_proposed_and_takes_no_place(library: Library) -> None:
    await VectorIndexes(library.database, LEAST).keep()
    async with library.database.transaction(library.tenant) as tx:
        readable, closed = await parts_of(tx, library.tenant)
        query = text(
            "SELECT number, vector FROM document_chunk WHERE tenant = :tenant AND part = :part LIMIT 20"
        )
        hidden = (await tx.execute(query, {"tenant": library.tenant, "part": closed})).all()
        theirs = {row.number for row in hidden}
        for row in hidden:
            near = await nearest_chunks(tx, library.tenant, [readable], row.vector, EMBEDDER, limit=60)
            assert len(near) == 60
            assert theirs.isdisjoint(near)
            # The control: who may read both finds the chunk itself first.
            both = await nearest_chunks(
                tx, library.tenant, [readable, closed], row.vector, EMBEDDER, limit=60
            )
            assert next(iter(both)) == row.number


async def test_the_transaction_of_another_tenant_finds_nothing_here(library: Library) -> None:
    await VectorIndexes(library.database, LEAST).keep()
    other = library.tenant.replace("me-", "you-")
    async with library.database.transaction(library.tenant) as tx:
        parts = await parts_of(tx, library.tenant)
        assert len(await nearest_chunks(tx, library.tenant, parts, await asked(1), EMBEDDER, limit=10)) == 10
    async with library.database.transaction(other) as tx:
        assert await nearest_chunks(tx, library.tenant, parts, await asked(1), EMBEDDER, limit=10) == {}


async def test_a_plan_of_the_role_of_requests_goes_through_the_index_of_its_tenant(library: Library) -> None:
    plan = await VectorIndexes(library.database, LEAST).keep()
    ((space, size),) = plan.build
    vector = f"CAST('[{','.join(['0.1'] * size)}]' AS vector({size}))"
    question = (
        f"EXPLAIN SELECT number FROM document_search WHERE tenant = '{{}}' AND embedder = '{EMBEDDER}' "  # noqa: S608
        f"AND vector_dims(embedding) = {size} AND part = ANY('{{{{1,2}}}}') "
        f"ORDER BY embedding::vector({size}) <#> {vector} LIMIT 40"
    )
    plans = []
    for tenant in (library.tenant, library.tenant.replace("me-", "you-")):
        async with library.database.transaction(tenant) as tx:
            await tx.execute(text("SET LOCAL enable_seqscan = off"))
            await tx.execute(text("SET LOCAL enable_sort = off"))
            lines = (await tx.execute(text(question.format(tenant)))).scalars()
            plans.append("\n".join(lines))
    assert f"Index Scan using {space.index_name}" in plans[0]
    assert "current_setting('app.tenant'" in plans[0]
    # The control: another tenant's question does not go through it.
    assert space.index_name not in plans[1]


async def test_indexes_are_built_once_repaired_and_dropped_when_the_chunks_are_gone(library: Library) -> None:
    url = library.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    indexes = VectorIndexes(library.database, LEAST)
    first = await indexes.keep()
    assert len(await names(url)) == len(first.build) > 0
    assert (await indexes.keep()).due == 0
    async with library.database.system_transaction() as tx:
        (mine,) = [space for space in await list_spaces(tx, least=LEAST) if space.tenant == library.tenant]
    owner = await connect(url)
    # An interrupted build leaves an index that is not whole.
    await owner.execute(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::text::regclass", mine.index_name
    )
    again = await indexes.keep()
    assert [space.index_name for space, _ in again.build] == [mine.index_name]
    assert await owner.fetchval(
        "SELECT indisvalid FROM pg_index WHERE indexrelid = $1::text::regclass", mine.index_name
    )
    await owner.close()
    # Half of the chunks may go before the index does.
    assert (await VectorIndexes(library.database, 350).keep()).due == 0
    assert (await VectorIndexes(library.database, 1_000).keep()).drop == [mine.index_name]
    assert await names(url) == set()
    assert (await VectorIndexes(library.database, 350).keep()).due == 0


async def test_a_login_that_owns_nothing_says_once_what_the_owner_should_run(
    library: Library, caplog: pytest.LogCaptureFixture
) -> None:
    login = f"runtime_{uuid4().hex[:8]}"
    url = library.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    owner = await connect(url)
    await owner.execute(f"CREATE ROLE {login} LOGIN")
    await owner.execute(f"GRANT sluice_app, sluice_system TO {login}")
    before = await names(url)
    try:
        async with Database(
            make_url(url).set(username=login).render_as_string(hide_password=False)
        ) as database:
            indexes = VectorIndexes(database, LEAST)
            plans = [await indexes.keep() for _ in range(2)]
    finally:
        await owner.execute(f"DROP OWNED BY {login}")
        await owner.execute(f"DROP ROLE {login}")
        await owner.close()
    assert [plan.permitted for plan in plans] == [False, False]
    assert library.tenant in {space.tenant for space, _ in plans[0].build}
    assert await names(url) == before
    assert len(re.findall("sluice db index-vectors", caplog.text)) == 1


async def test_vectors_of_another_length_and_names_with_quotes_harm_nobody(library: Library) -> None:
    strange = """it's "model" 1"""
    async with library.database.transaction(library.tenant) as tx:
        for table in ("collection_part", "document_search", "document_chunk"):
            renamed = f"UPDATE {table} SET embedder = :name"  # noqa: S608 - our own names
            await tx.execute(text(renamed), {"name": strange})
        parts = await parts_of(tx, library.tenant)
    plan = await VectorIndexes(library.database, LEAST).keep()
    assert strange in {space.embedder for space, _ in plan.build}
    async with library.database.transaction(library.tenant) as tx:
        first = "(SELECT min(number) FROM document_search)"
        odd = f"UPDATE document_search SET embedding = '[1,2,3]' WHERE number = {first}"  # noqa: S608 - as above
        await tx.execute(text(odd))
        assert len(await nearest_chunks(tx, library.tenant, parts, await asked(1), strange, limit=250)) == 199


async def test_the_setting_says_from_how_many_chunks_on(library: Library) -> None:
    url = library.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    for least, built in ((10_000, 0), (LEAST, 1)):
        settings = Settings(
            database=DatabaseSettings(url=SecretStr(url), vector_index_chunks=least),
            keys=KeysSettings(ring=SecretStr(RING)),
        )
        async with opened(settings) as services:
            assert services.retrieval.compared_most == least
            assert await services.background.once(index_job(services))
        assert len(await names(url)) == built


def index_job(services: Services) -> Job:
    return next(job for job in services.background.jobs if job.name == "index-vectors")


async def test_the_owner_builds_what_is_missing_from_the_command_line(
    library: Library, tmp_path: Path
) -> None:
    url = library.database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    environment = environment_of(
        tmp_path, SLUICE_DATABASE__URL=url, SLUICE_DATABASE__VECTOR_INDEX_CHUNKS=str(LEAST)
    )
    for printed in ("1 built, 0 dropped\n", "0 built, 0 dropped\n"):
        done = await asyncio.to_thread(sluice, "db", "index-vectors", environment=environment)
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert len(await names(url)) == 1
