"""Vectors of PostgreSQL: comparing all of a tenant's beside looking them up in its index (HNSW)."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import numpy as np

from app.services.documents.vector_indexes import VectorIndexes
from app.store.database import Database
from app.store.dialects import Patience
from app.store.documents.search import compare_vectors
from app.store.documents.vector_indexes import drop_index, list_vector_indexes, nearest_chunks
from tests.benchmarks.speed.growth_fill import LARGE, owner_of
from tests.benchmarks.speed.processes import postgres
from tests.benchmarks.speed.report import percentile, table, written
from tests.benchmarks.speed.sizes import Sizes

TIMES = (1, 10, 30)
WANTED, PARTS, QUESTIONS = 10, 10, 20
EMBEDDER = "embedded 1"
DIMENSIONS, SUBJECTS, FREEDOM = 384, 400, 64
"""Texts lie around subjects, on a surface of far fewer dimensions than their vectors have."""
_ASKED = 2**32
"""Seed of the questions; those of the vectors are their numbers."""

READERS = {"all": tuple(range(PARTS)), "a tenth": (4,)}

_SHELVES = (
    "ALTER TABLE document_search DROP CONSTRAINT fk_document_search_document_chunk",
    "INSERT INTO tenant (id, created, created_by) VALUES ('large', now(), 'bench')",
    """INSERT INTO collection (tenant, name, document, created, created_by, updated)
    VALUES ('large', 'notes', '{"access": ["*"]}', now(), 'bench', now())""",
    """INSERT INTO collection_part
    (tenant, id, collection, source, access_key, access, documents, chunks, words, embedder, revision)
    SELECT 'large', part, 'notes', 'files', part::text, '[]', 1, 0, 0, 'embedded 1', 1
    FROM generate_series(0, 9) part""",
)
_ROWS = """
INSERT INTO document_search (tenant, number, part, terms, embedder, embedding)
SELECT 'large', number, number % 10, '', 'embedded 1', value::vector
FROM unnest($1::bigint[], $2::text[]) AS made(number, value)
"""


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the time of a look-up, and how much of the exact answer it has, by the number of vectors."""
    with postgres(folder) as url:
        rows = asyncio.run(_measured(url, sizes))
    yield table(
        "Vectors of PostgreSQL as documents grow",
        ("chunks", "readable", "all compared, ms", "in the index, ms", "recall@10", "index built in s"),
        rows,
        f"p50 / p95 of the {WANTED} nearest under row-level security. Made vectors of {DIMENSIONS} dimensions around "
        f"{SUBJECTS} subjects; {QUESTIONS * sizes.rounds} questions. The service uses the index "
        "beyond 20,000 readable chunks.",
    )


def made_vectors(seed: int, count: int) -> np.ndarray:
    """Return unit vectors, one a row."""
    shape, chance = np.random.default_rng(0), np.random.default_rng(seed)
    subjects, surface = shape.normal(size=(SUBJECTS, FREEDOM)), shape.normal(size=(FREEDOM, DIMENSIONS))
    places = subjects[chance.integers(SUBJECTS, size=count)] + 0.7 * chance.normal(size=(count, FREEDOM))
    vectors = places @ surface + 0.5 * chance.normal(size=(count, DIMENSIONS))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype="float32")


async def _measured(url: str, sizes: Sizes) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    owner = await owner_of(url)
    try:
        for statement in _SHELVES:
            await owner.execute(statement)
        have = 0
        async with Database(url, patience=Patience(30, 600, 30)) as database:
            for times in TIMES:
                async with database.system_transaction(write=False) as tx:
                    existing = await list_vector_indexes(tx)
                for name in existing:
                    await drop_index(database, name)
                await _fill(owner, have, sizes.chunks * times)
                have = sizes.chunks * times
                await owner.execute("VACUUM ANALYZE document_search")
                begin = time.perf_counter()
                if not (await VectorIndexes(database, 1).keep()).build:
                    raise ValueError("No index was built.")
                built = time.perf_counter() - begin
                for readers, parts in READERS.items():
                    rows.append((have, readers, *await _compared(database, parts, sizes), built))
    finally:
        await owner.close()
    return rows


async def _fill(owner: asyncpg.Connection, have: int, total: int) -> None:
    for start in range(have, total, 2_000):
        end = min(start + 2_000, total)
        values = [f"[{','.join(map(str, row))}]" for row in made_vectors(start, end - start).tolist()]
        await owner.execute(_ROWS, list(range(start, end)), values)
    await owner.execute("UPDATE collection_part SET chunks = $1, revision = revision + 1", total // PARTS + 1)


async def _compared(database: Database, parts: tuple[int, ...], sizes: Sizes) -> tuple[str, str, float]:
    """Return the times of both ways in ms, and which part of the exact answer the index has."""
    exact_ms, near_ms, hits, wanted = [], [], 0, 0
    async with database.transaction(LARGE) as tx:
        for question in (row.tobytes() for row in made_vectors(_ASKED, QUESTIONS * sizes.rounds)):
            begin = time.perf_counter()
            exact = await compare_vectors(tx, LARGE, [*parts], question, limit=WANTED)
            then = time.perf_counter()
            near = await nearest_chunks(tx, LARGE, [*parts], question, EMBEDDER, limit=WANTED)
            near_ms.append((time.perf_counter() - then) * 1e3)
            exact_ms.append((then - begin) * 1e3)
            hits, wanted = hits + len(exact.keys() & near.keys()), wanted + len(exact)
    return _both(exact_ms), _both(near_ms), hits / wanted


def _both(milliseconds: list[float]) -> str:
    return f"{written(percentile(milliseconds, 0.5))} / {written(percentile(milliseconds, 0.95))}"
