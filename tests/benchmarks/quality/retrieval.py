"""How well documents are found, on SciFact where its folder is given; how long a question takes."""

import asyncio
import importlib.util
import json
import math
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from app.core.access import Caller, Role
from app.core.catalog.collections import CollectionDefinition, DocumentDetails
from app.core.contracts.engines import Embedder, RetrievalQuery
from app.engines.documents.words import asked_words, stems_of
from app.engines.encoder import Encoder
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from app.services.documents.collections import CollectionService
from app.services.documents.ingestion import IngestionService, Submitted
from app.services.documents.retrieval import RetrievalService
from app.store.database import Database
from app.store.documents.collection_documents import list_documents
from app.store.documents.collections import list_parts
from app.store.documents.search import count_matches, match_words, read_chunks
from app.store.migrate import upgrade
from tests.benchmarks.speed.report import percentile, table
from tests.benchmarks.speed.sizes import SMOKE, Sizes
from tests.factories import access_service, open_vault

FOLDER = "SLUICE_TEST_RETRIEVAL_DATA"
TENANT = "acme"
CALLER = Caller(TENANT, "bench", frozenset(Role))
EVERYBODY = frozenset({"*"})
TOP = 10

Found = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the ids of the best documents for a question."""


def tables(sizes: Sizes, folder: Path) -> Iterator[str]:
    """Yield the table of quality and speed on SciFact, or nothing where there is no such folder."""
    given = os.environ.get(FOLDER)
    if given:
        yield asyncio.run(scifact(Path(given), folder, 30 if sizes is SMOKE else None))


class RetrievalSet(NamedTuple):
    """Documents (``_id``, ``title``, ``text``) and questions (``query``, ``relevant``), all of it known."""

    documents: Sequence[Mapping[str, Any]]
    questions: Sequence[Mapping[str, Any]]

    @classmethod
    def scifact(cls, data: Path, limit: int | None) -> "RetrievalSet":
        """Read the first ``limit`` abstracts of SciFact, and the claims of which an abstract is among them."""
        corpus = _lines(data / "scifact_corpus.jsonl")[:limit]
        here = {one["_id"] for one in corpus}
        return cls(
            corpus, [one for one in _lines(data / "scifact_queries.jsonl") if here & set(one["relevant"])]
        )


class Answer(NamedTuple):
    """What was found for one claim, what is relevant, and how long it took."""

    documents: Sequence[str]
    relevant: frozenset[str]
    milliseconds: float


async def scifact(data: Path, folder: Path, limit: int | None, embedder: Embedder | None = None) -> str:
    """Return the table; the documents go in as users' documents do."""
    some = RetrievalSet.scifact(data, limit)
    answers_by_rival = await answers(some, folder, embedder)
    rows = []
    for name, given in answers_by_rival.items():
        scores = [ndcg(answer.documents, answer.relevant) for answer in given]
        took = [answer.milliseconds for answer in given]
        rows.append((name, f"{sum(scores) / len(scores):.3f}", percentile(took, 0.5), percentile(took, 0.95)))
    claims = len(next(iter(answers_by_rival.values())))
    return table(
        f"Document retrieval on SciFact: {len(some.documents):,} abstracts, {claims} claims",
        ("ranked by", "nDCG@10", "p50 ms", "p95 ms"),
        rows,
        "A test set: nothing was chosen on it but between fusions without constants. Times are those of one question "
        "on SQLite, in one process; rank-bm25 and bm25s are given the same stems and hold everything in memory.",
    )


async def answers(
    some: RetrievalSet, folder: Path, embedder: Embedder | None = None
) -> dict[str, list[Answer]]:
    """Return by rival what it finds for each question of ``some``, whose documents go into a database in ``folder``."""
    corpus, questions = some
    async with _filled(folder, corpus, embedder or Encoder(remembered=1)) as (database, encoder):
        words, both = RetrievalService(database), RetrievalService(database, encoder)
        names = await _names(database)
        rivals: dict[str, Found] = {
            "FTS5 alone": _fts5(database, names),
            "words alone (no encoder)": _service(words, names),
            "the encoder alone": _meaning(both, names, database),
            "document_retrieval": _service(both, names),
        }
        if importlib.util.find_spec("rank_bm25") is not None:
            rivals["rank-bm25"] = _rank_bm25(corpus)
        if importlib.util.find_spec("bm25s") is not None:
            rivals["bm25s"] = _bm25s(corpus)
        answers_by_rival: dict[str, list[Answer]] = {}
        for name, find in rivals.items():
            answers_by_rival[name] = []
            for one in questions:
                started = time.perf_counter()
                documents = await find(one["query"])
                took = (time.perf_counter() - started) * 1e3
                answers_by_rival[name].append(Answer(documents, frozenset(one["relevant"]), took))
    return answers_by_rival


def ndcg(answer: Sequence[str], relevant: AbstractSet[str]) -> float:
    """Return nDCG@10 for documents that are relevant or not."""
    gain = sum(1 / math.log2(place + 2) for place, one in enumerate(answer[:TOP]) if one in relevant)
    return gain / sum(1 / math.log2(place + 2) for place in range(min(TOP, len(relevant))))


@asynccontextmanager
async def _filled(folder: Path, corpus: Sequence[Mapping[str, Any]], encoder: Embedder) -> Any:
    url = f"sqlite:///{folder}/retrieval.db"
    await asyncio.to_thread(upgrade, url)
    database = Database(url)
    try:
        async with open_vault(database) as vault:
            await TenantService(access_service(database, vault.audit)).create(HOST, TENANT)
            await CollectionService(database, vault.audit).put(CALLER, CollectionDefinition(name="scifact"))
            ingestion = IngestionService(database, vault.audit, encoder)
            for one in corpus:
                said = DocumentDetails(external_id=one["_id"], title=one["title"][:500])
                body = one["text"].encode()
                await ingestion.add(CALLER, Submitted("scifact", said, body, "text/plain"), background=False)
            yield database, encoder
    finally:
        await database.close()


async def _names(database: Database) -> dict[str, str]:
    async with database.transaction(TENANT, write=False) as tx:
        return {one.id: one.external_id for one in await list_documents(tx, TENANT, "scifact", limit=10**6)}


def _service(service: RetrievalService, names: Mapping[str, str]) -> Found:
    async def found(question: str) -> Sequence[str]:
        answer = await service.retrieve([RetrievalQuery(TENANT, EVERYBODY, question, None, TOP)])
        return [names[one.document] for one in answer.passages[0]]

    return found


def _fts5(database: Database, names: Mapping[str, str]) -> Found:
    async def found(question: str) -> Sequence[str]:
        words = asked_words(question)
        async with database.transaction(TENANT, write=False) as tx:
            parts = [part.id for part in await list_parts(tx, TENANT)]
            known = [
                w for w, n in zip(words, await count_matches(tx, TENANT, parts, words), strict=True) if n
            ]
            numbers = await match_words(tx, TENANT, parts, known, [1.0] * len(known), limit=4 * TOP)
            chunks = {one.number: one.document for one in await read_chunks(tx, TENANT, parts, numbers)}
        return [names[one] for one in dict.fromkeys(chunks[number] for number in numbers)][:TOP]

    return found


def _meaning(service: RetrievalService, names: Mapping[str, str], database: Database) -> Found:
    from app.engines.documents.vectors import nearest

    async def found(question: str) -> Sequence[str]:
        vector = (await service.embedder.embed([question])).vectors[0]  # type: ignore[union-attr]
        async with database.transaction(TENANT, write=False) as tx:
            parts = await list_parts(tx, TENANT)
            held = [await service._part_vectors(tx, TENANT, part) for part in parts]
            best = nearest(held, vector, 4 * TOP)
            ids = [part.id for part in parts]
            chunks = {one.number: one.document for one in await read_chunks(tx, TENANT, ids, [*best])}
        return [names[one] for one in dict.fromkeys(chunks[number] for number in best)][:TOP]

    return found


def _rank_bm25(corpus: Sequence[Mapping[str, Any]]) -> Found:
    from rank_bm25 import BM25Okapi

    ids = [one["_id"] for one in corpus]
    index = BM25Okapi([stems_of(f"{one['title']} {one['title']} {one['text']}") for one in corpus])

    async def found(question: str) -> Sequence[str]:
        scores = index.get_scores([stem for word in asked_words(question) for stem in stems_of(word)])
        return [ids[at] for at in (-scores).argsort(kind="stable")[:TOP]]

    return found


def _bm25s(corpus: Sequence[Mapping[str, Any]]) -> Found:
    import bm25s

    ids = [one["_id"] for one in corpus]
    index = bm25s.BM25()
    index.index(
        [stems_of(f"{one['title']} {one['title']} {one['text']}") for one in corpus], show_progress=False
    )

    async def found(question: str) -> Sequence[str]:
        stems = [stem for word in asked_words(question) for stem in stems_of(word)]
        places, _ = index.retrieve([stems], k=min(TOP, len(ids)), show_progress=False)
        return [ids[at] for at in places[0]]

    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
