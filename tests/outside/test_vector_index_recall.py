"""25,000 vectors: the index finds what the exact comparison finds, for readers of all and of a tenth, and sooner."""

import time
from collections.abc import Iterator

import numpy as np
import pytest
from sqlalchemy import text

from app.services.documents.vector_indexes import VECTOR_INDEX_CHUNKS, VectorIndexes
from app.store.database import Database
from app.store.documents.search import compare_vectors
from app.store.documents.vector_indexes import nearest_chunks
from tests.conftest import Copies, connect

pytestmark = pytest.mark.outside

CHUNKS, QUESTIONS, WANTED = 25_000, 100, 10
DIMENSIONS, SUBJECTS, FREEDOM = 384, 400, 64
"""Texts lie around subjects, on a surface of far fewer dimensions than their vectors have."""
TENANT, EMBEDDER = "large", "embedded 1"
PARTS = 10
PART_ROW = """
INSERT INTO collection_part
    (tenant, id, collection, source, access_key, access, documents, chunks, words, embedder, revision)
SELECT 'large', part, 'notes', 'files', part::text, '[]', 1, $1, $1, 'embedded 1', 1 FROM generate_series(0, 9) part"""
COLLECTION = """
INSERT INTO collection (tenant, name, document, created, created_by, updated)
VALUES ('large', 'notes', '{"access": ["*"]}', now(), 'host', now())"""


@pytest.fixture(scope="module")
def url(migrated_postgres: Copies) -> Iterator[str]:
    with migrated_postgres() as url:
        yield url


def vectors(seed: int, count: int) -> np.ndarray:
    shape, chance = np.random.default_rng(0), np.random.default_rng(seed)
    subjects, surface = shape.normal(size=(SUBJECTS, FREEDOM)), shape.normal(size=(FREEDOM, DIMENSIONS))
    places = subjects[chance.integers(SUBJECTS, size=count)] + 0.7 * chance.normal(size=(count, FREEDOM))
    made = places @ surface + 0.5 * chance.normal(size=(count, DIMENSIONS))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("float32")


async def fill(url: str) -> None:
    owner = await connect(url)
    # The texts are not needed, nor the chunks that hold them.
    await owner.execute("ALTER TABLE document_search DROP CONSTRAINT fk_document_search_document_chunk")
    await owner.execute("INSERT INTO tenant (id, created, created_by) VALUES ('large', now(), 'host')")
    await owner.execute(COLLECTION)
    await owner.execute(PART_ROW, CHUNKS // PARTS)
    await owner.executemany(
        "INSERT INTO document_search (tenant, number, part, terms, embedder, embedding) "
        "VALUES ('large', $1, $2, '', 'embedded 1', $3::text::vector)",
        [(n, n % PARTS, f"[{','.join(map(str, row))}]") for n, row in enumerate(vectors(1, CHUNKS).tolist())],
    )
    await owner.execute("ANALYZE")
    await owner.close()


@pytest.mark.timeout(900)
async def test_the_index_finds_what_comparing_all_finds(url: str) -> None:
    await fill(url)
    questions = [row.tobytes() for row in vectors(2, QUESTIONS)]
    async with Database(url) as database:
        began = time.monotonic()
        assert len((await VectorIndexes(database, VECTOR_INDEX_CHUNKS).keep()).build) == 1
        print(f"built in {time.monotonic() - began:.1f} s")
        for parts in ([*range(PARTS)], [1, 2, 3], [4]):
            hits, exact_s, near_s = 0, [], []
            async with database.transaction(TENANT) as tx:
                for question in questions:
                    began = time.perf_counter()
                    exact = await compare_vectors(tx, TENANT, parts, question, limit=WANTED)
                    then = time.perf_counter()
                    near = await nearest_chunks(tx, TENANT, parts, question, EMBEDDER, limit=WANTED)
                    exact_s.append(then - began)
                    near_s.append(time.perf_counter() - then)
                    hits += len(exact.keys() & near.keys())
            recall = hits / (QUESTIONS * WANTED)
            print(
                f"{len(parts) * CHUNKS // PARTS:,} of {CHUNKS:,} readable: recall@10 {recall:.3f}, "
                f"p50 {np.median(near_s) * 1e3:.1f} ms, exact {np.median(exact_s) * 1e3:.1f} ms"
            )
            assert recall >= 0.98
        async with database.transaction(TENANT) as tx:
            # The walk goes on behind what it keeps at once, of which a tenth may be read.
            assert len(await nearest_chunks(tx, TENANT, [4], questions[0], EMBEDDER, limit=150)) == 150
        async with database.transaction(TENANT) as tx:
            # The control: without the index the same question compares all.
            await tx.execute(text("SET LOCAL enable_indexscan = off"))
            near = await nearest_chunks(tx, TENANT, [4], questions[0], EMBEDDER, limit=WANTED)
            assert near.keys() == (await compare_vectors(tx, TENANT, [4], questions[0], limit=WANTED)).keys()
