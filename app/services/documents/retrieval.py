"""Retrieve passages of a tenant's documents: check access, collect candidates, score them."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from typing import Final, NamedTuple

from app.core.contracts.engines import (
    ChunkProposals,
    Embedder,
    EngineReport,
    Retrieval,
    RetrievalQuery,
    RetrievedPassage,
)
from app.core.errors import UpstreamUnavailableError
from app.core.events import Changed
from app.engines.documents.counts import CountMemory, ScopeKey
from app.engines.documents.passages import assembled_text
from app.engines.documents.scoring import (
    Statistics,
    fused,
    lexical_scores,
    relevance,
    semantic_score,
    weight_of,
)
from app.engines.documents.tantivy_index import TantivyIndex
from app.engines.documents.vectors import PartKey, PartVectors, VectorMemory, assembled, likeness, nearest
from app.engines.documents.votes import vote_of_meaning
from app.engines.documents.words import asked_words, rarest_words
from app.services.documents.indexed_search import NOTHING_PROPOSED, IndexedSearch, Mark
from app.services.documents.side_index import SideIndex
from app.services.documents.vector_indexes import VECTOR_INDEX_CHUNKS
from app.store.changes import EVERYTHING
from app.store.database import Database
from app.store.documents.collection_documents import CollectionTransaction
from app.store.documents.collections import StoredPart, list_held_parts
from app.store.documents.indexed import list_marks, read_some_vectors
from app.store.documents.search import (
    FoundChunk,
    compare_vectors,
    compares_vectors,
    count_matches,
    likeness_of,
    match_words,
    read_chunks,
    read_vectors,
)
from app.store.documents.vector_indexes import indexes_vectors, may_be_indexed, nearest_chunks
from app.store.replicas import Reads

DOCUMENTS_CHANGED = "documents"
LEXICAL: Final = EngineReport("embedded-lexical", "1")
HYBRID: Final = "embedded-hybrid"
INDEXED_LEXICAL: Final = "indexed-lexical"
INDEXED_HYBRID: Final = "indexed-hybrid"
"""The same engines, with chunks that an index on another server proposed."""
_BY_WORDS: Final = 40
_BY_VECTORS: Final = 20
"""The minimum number of chunks to propose by words and by vectors; the next is the number per wanted document."""
_CHUNKS_WANTED: Final = 3
_EMBEDDED_CHARACTERS: Final = 320
"""How much of a question's beginning is embedded: about 70 tokens, because the time depends on their number."""
_LOOKED_FOR: Final = 16
"""How many words of a question, the rarest ones, propose chunks; the others only count in the score."""
_LOOKED_UP_CHARACTERS: Final = 4000
_LANGUAGE_TOLD_BY: Final = 3
"""How many of the chunks that match best by words tell the language of what is searched."""
_CHUNKS_SHOWN: Final = 3
_CLOSE: Final = 0.8
"""Further chunks of a document are shown if their score is at least this part of its best chunk's."""

log = logging.getLogger("sluice.documents")


class _Question(NamedTuple):
    text: str
    wanted: int
    vector: bytes | None
    embedder: str


class _Candidates(NamedTuple):
    chunks: list[FoundChunk]
    words: tuple[str, ...]
    statistics: Statistics
    cosines: dict[int, float] | None


@dataclass(eq=False, slots=True)
class RetrievalService:
    """Implements Retriever on the database; subscribe ``changed`` to the announcements of other processes.

    Without an embedder, or if it fails or has not embedded everything yet, only words decide and the report's engine
    is ``embedded-lexical``.
    """

    database: Database
    embedder: Embedder | None = None
    side: SideIndex | None = None
    index: IndexedSearch | None = None
    compared_most: int = VECTOR_INDEX_CHUNKS
    """Above so many readable chunks, an index of the database proposes those near to a question."""
    vectors: VectorMemory = field(default_factory=VectorMemory)
    counts: CountMemory = field(default_factory=CountMemory)
    compares: bool | None = None
    """Whether the database compares vectors itself; None: not known yet."""
    reads: Reads | None = None
    """Where chunks are searched; None: in ``database``."""
    indexes: bool | None = None
    """Whether the database can have such indexes; None: not known yet."""

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        """Return for each query the best passages of the documents that its principals may read, best first."""
        reports: list[EngineReport] = []
        passages_of_queries: list[list[RetrievedPassage]] = []
        for query in queries:
            passages, report = await self._retrieve_one(query)
            passages_of_queries.append(passages)
            reports.append(report)
        return Retrieval(passages_of_queries, _merged_report(reports))

    def changed(self, changed: Changed) -> None:
        """Forget cached vectors and word counts after documents were announced as changed or deleted."""
        if changed.kind in (DOCUMENTS_CHANGED, EVERYTHING):
            self.vectors.forget(changed.tenant)
            self.counts.forget(changed.tenant)

    async def _retrieve_one(self, query: RetrievalQuery) -> tuple[list[RetrievedPassage], EngineReport]:
        if not query.text.strip():
            return [], LEXICAL
        parts: list[StoredPart] = []
        marks: list[Mark] = []
        if self.embedder is not None or self.index is not None:
            # Neither is asked for somebody who may read nothing.
            async with self.database.transaction(query.tenant, write=False) as tx:
                parts = await readable_parts(tx, query)
                marks = [Mark(*mark) for mark in await list_marks(tx, query.tenant)] if self.index else []
            if not parts:
                return [], LEXICAL
        question, embedded = await self._embed_question(query)
        proposed = await self._propose(query.tenant, parts, marks, question)
        candidates = await self._searched(query, question, proposed)
        passages = await asyncio.to_thread(_ranked, candidates, query, question.embedder)
        degraded = (embedded is not None and embedded.degraded) or proposed.report.degraded
        if candidates.cosines is None or embedded is None:
            name = INDEXED_LEXICAL if proposed.parts else LEXICAL.name
            return passages, EngineReport(name, LEXICAL.version, degraded)
        version = f"{LEXICAL.version}+{embedded.version}"
        return passages, EngineReport(INDEXED_HYBRID if proposed.parts else HYBRID, version, degraded)

    async def _searched(
        self, query: RetrievalQuery, question: _Question, proposed: ChunkProposals
    ) -> _Candidates:
        """Search the parts that may be read now: what was removed while the question was embedded is not searched.

        Access is read from the primary; a replica searches once it has all that was written before.
        """
        reads = self.reads or Reads(self.database)
        mark = await reads.mark()
        async with self.database.transaction(query.tenant, write=False) as tx:
            parts = await readable_parts(tx, query)
            if mark is None:
                return await self._candidates(tx, query.tenant, parts, question, proposed)
        return await reads.run(
            query.tenant, mark, lambda tx: self._candidates(tx, query.tenant, parts, question, proposed)
        )

    async def _embed_question(self, query: RetrievalQuery) -> tuple[_Question, EngineReport | None]:
        text, wanted = query.text[:_LOOKED_UP_CHARACTERS], _CHUNKS_WANTED * query.limit
        if self.embedder is None:
            return _Question(text, wanted, None, ""), None
        try:
            embeddings = await self.embedder.embed([text[:_EMBEDDED_CHARACTERS]])
        except UpstreamUnavailableError as error:
            log.info("retrieval goes by words alone: %s", type(error).__name__)
            return _Question(text, wanted, None, ""), None
        return _Question(
            text, wanted, embeddings.vectors[0], embedder_name(embeddings.report)
        ), embeddings.report

    async def _propose(
        self, tenant: str, parts: Sequence[StoredPart], marks: Sequence[Mark], question: _Question
    ) -> ChunkProposals:
        if self.index is None:
            return NOTHING_PROPOSED
        most = max(_BY_WORDS, question.wanted)
        return await self.index.propose(
            tenant, parts, marks, question.text, question.vector, question.embedder, most
        )

    async def _candidates(
        self,
        tx: CollectionTransaction,
        tenant: str,
        parts: Sequence[StoredPart],
        question: _Question,
        proposed: ChunkProposals,
    ) -> _Candidates:
        ids = [part.id for part in parts]
        if not proposed.parts <= set(ids):
            proposed = NOTHING_PROPOSED  # a part was removed meanwhile: none of its chunks may count
        rest = [part for part in parts if part.id not in proposed.parts]
        words = asked_words(question.text)
        index = await asyncio.to_thread(self.side.find, tenant, rest) if self.side is not None else None
        matches = await self._matches(tx, tenant, rest, words, index)
        counts = {word: count + proposed.matches.get(word, 0) for word, count in matches.items()}
        statistics = Statistics(sum(part.chunks for part in parts), sum(part.words for part in parts), counts)
        numbers = await self._matching(tx, tenant, rest, statistics, matches, question, index)
        cosines: dict[int, float] | None = None
        whole = all(part.embedder == question.embedder for part in parts)
        if question.vector is not None and whole:
            cosines = await self._cosines(tx, tenant, rest, question, numbers)
            cosines |= await _cosines_of(tx, tenant, proposed.numbers, question)
        found_numbers = {*numbers, *proposed.numbers, *(cosines or ())}
        return _Candidates(await read_chunks(tx, tenant, ids, [*found_numbers]), words, statistics, cosines)

    async def _matching(
        self,
        tx: CollectionTransaction,
        tenant: str,
        parts: Sequence[StoredPart],
        statistics: Statistics,
        matches: Mapping[str, int],
        question: _Question,
        index: TantivyIndex | None,
    ) -> list[int]:
        """Return the chunks of ``parts`` that the database, or the index beside it, proposes by words."""
        ids, most = [part.id for part in parts], max(_BY_WORDS, question.wanted)
        words = rarest_words(matches, _LOOKED_FOR)
        if index is not None:
            return await asyncio.to_thread(index.match_words, ids, words, most)
        weights = [weight_of(statistics, word) for word in words]
        return await match_words(tx, tenant, ids, words, weights, limit=most)

    async def _matches(
        self,
        tx: CollectionTransaction,
        tenant: str,
        parts: Sequence[StoredPart],
        words: Sequence[str],
        index: TantivyIndex | None,
    ) -> dict[str, int]:
        """Return for each of ``words`` how many chunks of ``parts`` have it."""
        if not parts:
            return dict.fromkeys(words, 0)
        scope = ScopeKey(tenant, tuple((part.id, part.revision) for part in parts))
        counts_by_word = self.counts.known(scope, words)
        missing = [word for word in words if word not in counts_by_word]
        if missing:
            ids = [part.id for part in parts]
            if index is not None:
                counts = await asyncio.to_thread(index.count_matches, ids, missing)
            else:
                counts = await count_matches(tx, tenant, ids, missing)
            counted = dict(zip(missing, counts, strict=True))
            self.counts.learn(scope, counted)
            counts_by_word |= counted
        return counts_by_word

    async def _cosines(
        self,
        tx: CollectionTransaction,
        tenant: str,
        parts: Sequence[StoredPart],
        question: _Question,
        numbers: Sequence[int],
    ) -> dict[int, float]:
        """Return the cosines of the nearest chunks and of those that ``numbers`` name."""
        if not parts:
            return {}
        vector, most = question.vector or b"", max(_BY_VECTORS, question.wanted)
        if self.compares is None:
            self.compares = await compares_vectors(tx)
        if self.compares:
            cosines = await self._compared_there(tx, tenant, parts, question, most)
            missing = [number for number in numbers if number not in cosines]
            return cosines | (await likeness_of(tx, tenant, missing, vector) if missing else {})
        vectors_of_parts = [await self._part_vectors(tx, tenant, part) for part in parts]
        return await asyncio.to_thread(_compared, vectors_of_parts, vector, numbers, most)

    async def _compared_there(
        self,
        tx: CollectionTransaction,
        tenant: str,
        parts: Sequence[StoredPart],
        question: _Question,
        most: int,
    ) -> dict[int, float]:
        """Return the cosines of the nearest chunks: all are compared, or many are looked up in the tenant's index."""
        vector, ids = question.vector or b"", [part.id for part in parts]
        if sum(part.chunks for part in parts) > self.compared_most and may_be_indexed(vector):
            if self.indexes is None:
                self.indexes = await indexes_vectors(tx)
            if self.indexes:
                return await nearest_chunks(tx, tenant, ids, vector, question.embedder, limit=most)
        return await compare_vectors(tx, tenant, ids, vector, limit=most)

    async def _part_vectors(self, tx: CollectionTransaction, tenant: str, part: StoredPart) -> PartVectors:
        key = PartKey(tenant, part.id, part.revision, part.embedder)
        vectors = self.vectors.get(key)
        if vectors is None:
            read = await read_vectors(tx, tenant, part.id, part.embedder)
            vectors = await asyncio.to_thread(assembled, read)
            self.vectors.put(key, vectors)
        return vectors


async def readable_parts(tx: CollectionTransaction, query: RetrievalQuery) -> list[StoredPart]:
    """Return the parts that these principals may read, of the requested sources; access is decided here."""
    return [
        part
        for part, readers in await list_held_parts(tx, query.tenant)
        if _may_read(query.principals, readers, part.access)
        and (query.sources is None or part.collection in query.sources or part.source in query.sources)
    ]


def embedder_name(report: EngineReport) -> str:
    """Return the label of an engine's vectors: those of another engine or version cannot be compared."""
    return f"{report.name} {report.version}"


def _may_read(principals: frozenset[str], collection: frozenset[str], own: Iterable[str]) -> bool:
    own = frozenset(own)
    return not principals.isdisjoint(collection) and (not own or not principals.isdisjoint(own))


async def _cosines_of(
    tx: CollectionTransaction, tenant: str, numbers: Sequence[int], question: _Question
) -> dict[int, float]:
    """Return the exact cosines of these chunks, independent of an index's approximation."""
    if not numbers or question.vector is None:
        return {}
    read = await read_some_vectors(tx, tenant, numbers, question.embedder)
    return likeness([assembled(read)], question.vector, numbers)


def _compared(
    vectors_of_parts: Sequence[PartVectors], vector: bytes, numbers: Sequence[int], limit: int
) -> dict[int, float]:
    return likeness(vectors_of_parts, vector, numbers) | nearest(vectors_of_parts, vector, limit)


def _ranked(candidates: _Candidates, query: RetrievalQuery, embedder: str) -> list[RetrievedPassage]:
    """Return a passage for each of the best documents: its most relevant chunks, in the order of the document."""
    chunks, cosines = candidates.chunks, candidates.cosines
    texts = [(item.title, item.headings, item.text) for item in chunks]
    lexical = lexical_scores(candidates.words, candidates.statistics, texts)
    vote = 0.0
    if cosines is not None:
        best_by_words = nlargest(
            _LANGUAGE_TOLD_BY, zip(lexical, chunks, strict=True), key=lambda item: item[0]
        )
        telling = [chunk.text for score, chunk in best_by_words if score > 0]
        vote = vote_of_meaning(embedder, query.text[:_EMBEDDED_CHARACTERS], telling)
    by_document: dict[str, list[tuple[float, FoundChunk]]] = {}
    for chunk, score in zip(chunks, lexical, strict=True):
        semantic = semantic_score(cosines.get(chunk.number, 0.0)) if cosines is not None else None
        by_document.setdefault(chunk.document, []).append((round(fused(score, semantic, vote), 4), chunk))
    for scored_chunks in by_document.values():
        scored_chunks.sort(key=lambda item: (-item[0], item[1].ordinal))
    best = sorted(by_document.values(), key=lambda item: (-item[0][0], item[0][1].title, item[0][1].document))
    wanted = [item for item in best if item[0][0] > 0 and item[0][0] >= query.min_relevance]
    return [_passage(scored_chunks) for scored_chunks in wanted[: query.limit]]


def _passage(scored_chunks: list[tuple[float, FoundChunk]]) -> RetrievedPassage:
    top, first = scored_chunks[0]
    shown = [chunk for score, chunk in scored_chunks[:_CHUNKS_SHOWN] if score >= top * _CLOSE]
    shown.sort(key=lambda chunk: chunk.ordinal)
    return RetrievedPassage(
        document=first.document,
        title=first.title,
        collection=first.collection,
        source=first.source,
        text=assembled_text([(chunk.ordinal, chunk.text) for chunk in shown]),
        relevance=relevance(top),
        uri=first.uri,
        written=first.written,
    )


def _merged_report(reports: Sequence[EngineReport]) -> EngineReport:
    """Return a report for all answers: the weakest engine, degraded if any was."""
    degraded = any(report.degraded for report in reports)
    weakest = next((report for report in reports if report.name in (LEXICAL.name, INDEXED_LEXICAL)), None)
    return replace(weakest or (reports[0] if reports else LEXICAL), degraded=degraded)
