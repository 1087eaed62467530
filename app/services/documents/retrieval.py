"""Finding passages of a tenant's documents: access first, then candidates of both kinds, then one score for all."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from app.engines.documents.scoring import Statistics, fused, lexical_scores, rarity, relevance, semantic_score
from app.engines.documents.tantivy_index import TantivyIndex
from app.engines.documents.vectors import PartKey, PartVectors, VectorMemory, assembled, likeness, nearest
from app.engines.documents.words import asked_words
from app.services.documents.indexed_search import NOTHING_PROPOSED, IndexedSearch, Mark
from app.services.documents.side_index import SideIndex
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

DOCUMENTS_CHANGED = "documents"
LEXICAL: Final = EngineReport("embedded-lexical", "1")
HYBRID: Final = "embedded-hybrid"
INDEXED_LEXICAL: Final = "indexed-lexical"
INDEXED_HYBRID: Final = "indexed-hybrid"
"""As above, with chunks that an index on another server proposed."""
_BY_WORDS: Final = 40
_BY_VECTORS: Final = 20
"""How many chunks are proposed at least, by words and by vectors; and for each document that is wanted:"""
_CHUNKS_WANTED: Final = 3
_EMBEDDED_CHARACTERS: Final = 320
"""The beginning of a question is what is embedded: about 70 tokens, and the time goes by their number."""
_LOOKED_FOR: Final = 16
"""Words of a question that propose chunks, the rarest ones; the others only count in the score of what is found."""
_LOOKED_UP_CHARACTERS: Final = 4000
_CHUNKS_SHOWN: Final = 3
_CLOSE: Final = 0.8
"""Further chunks of a document are shown where they are about as relevant as its best."""

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

    Without an embedder, or where it fails or has not embedded everything yet, words alone decide and the report says
    ``embedded-lexical``.
    """

    database: Database
    embedder: Embedder | None = None
    side: SideIndex | None = None
    index: IndexedSearch | None = None
    vectors: VectorMemory = field(default_factory=VectorMemory)
    counts: CountMemory = field(default_factory=CountMemory)
    compares: bool | None = None
    """Whether the database compares vectors itself; None: not known yet."""

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        """Return for each query the best passages of the documents that its principals may read, best first."""
        reports: list[EngineReport] = []
        found: list[list[RetrievedPassage]] = []
        for query in queries:
            passages, report = await self._one(query)
            found.append(passages)
            reports.append(report)
        return Retrieval(found, _together(reports))

    def changed(self, changed: Changed) -> None:
        """Forget vectors and words of what was announced as changed or deleted."""
        if changed.kind in (DOCUMENTS_CHANGED, EVERYTHING):
            self.vectors.forget(changed.tenant)
            self.counts.forget(changed.tenant)

    async def _one(self, query: RetrievalQuery) -> tuple[list[RetrievedPassage], EngineReport]:
        async with self.database.transaction(query.tenant, write=False) as tx:
            parts = await readable_parts(tx, query)
            marks = [Mark(*one) for one in await list_marks(tx, query.tenant)] if self.index else []
        if not parts or not query.text.strip():
            return [], LEXICAL
        question, embedded = await self._asked(query)
        proposed = await self._proposed(query.tenant, parts, marks, question)
        async with self.database.transaction(query.tenant, write=False) as tx:
            # Read again: what was taken away meanwhile is not searched.
            parts = await readable_parts(tx, query)
            candidates = await self._candidates(tx, query.tenant, parts, question, proposed)
        passages = await asyncio.to_thread(_ranked, candidates, query)
        degraded = (embedded is not None and embedded.degraded) or proposed.report.degraded
        if candidates.cosines is None or embedded is None:
            name = INDEXED_LEXICAL if proposed.parts else LEXICAL.name
            return passages, EngineReport(name, LEXICAL.version, degraded)
        version = f"{LEXICAL.version}+{embedded.version}"
        return passages, EngineReport(INDEXED_HYBRID if proposed.parts else HYBRID, version, degraded)

    async def _asked(self, query: RetrievalQuery) -> tuple[_Question, EngineReport | None]:
        text, wanted = query.text[:_LOOKED_UP_CHARACTERS], _CHUNKS_WANTED * query.limit
        if self.embedder is None:
            return _Question(text, wanted, None, ""), None
        try:
            made = await self.embedder.embed([text[:_EMBEDDED_CHARACTERS]])
        except UpstreamUnavailableError as error:
            log.info("retrieval goes by words alone: %s", type(error).__name__)
            return _Question(text, wanted, None, ""), None
        return _Question(text, wanted, made.vectors[0], embedder_name(made.report)), made.report

    async def _proposed(
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
            proposed = NOTHING_PROPOSED  # something was taken away meanwhile: nothing of it may count
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
        found = {*numbers, *proposed.numbers, *(cosines or ())}
        return _Candidates(await read_chunks(tx, tenant, ids, [*found]), words, statistics, cosines)

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
        found = [word for word in matches if matches[word]]
        known = sorted(found, key=lambda word: matches[word])[:_LOOKED_FOR]
        if index is not None:
            return await asyncio.to_thread(index.match_words, ids, known, most)
        weights = [rarity(statistics, word) for word in known]
        return await match_words(tx, tenant, ids, known, weights, limit=most)

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
        known = self.counts.known(scope, words)
        missing = [word for word in words if word not in known]
        if missing:
            ids = [part.id for part in parts]
            if index is not None:
                counts = await asyncio.to_thread(index.count_matches, ids, missing)
            else:
                counts = await count_matches(tx, tenant, ids, missing)
            counted = dict(zip(missing, counts, strict=True))
            self.counts.learn(scope, counted)
            known |= counted
        return known

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
            found = await compare_vectors(tx, tenant, [part.id for part in parts], vector, limit=most)
            missing = [number for number in numbers if number not in found]
            return found | (await likeness_of(tx, tenant, missing, vector) if missing else {})
        held = [await self._held(tx, tenant, part) for part in parts]
        return await asyncio.to_thread(_compared, held, vector, numbers, most)

    async def _held(self, tx: CollectionTransaction, tenant: str, part: StoredPart) -> PartVectors:
        key = PartKey(tenant, part.id, part.revision, part.embedder)
        held = self.vectors.get(key)
        if held is None:
            read = await read_vectors(tx, tenant, part.id, part.embedder)
            held = await asyncio.to_thread(assembled, read)
            self.vectors.put(key, held)
        return held


async def readable_parts(tx: CollectionTransaction, query: RetrievalQuery) -> list[StoredPart]:
    """Return the parts that these principals may read, of the sources asked for; this is where access is decided."""
    return [
        part
        for part, readers in await list_held_parts(tx, query.tenant)
        if _may_read(query.principals, readers, part.access)
        and (query.sources is None or part.collection in query.sources or part.source in query.sources)
    ]


def embedder_name(report: EngineReport) -> str:
    """Return what vectors are marked with: those of another engine or version cannot be compared."""
    return f"{report.name} {report.version}"


def _may_read(principals: frozenset[str], collection: frozenset[str], own: Iterable[str]) -> bool:
    own = frozenset(own)
    return not principals.isdisjoint(collection) and (not own or not principals.isdisjoint(own))


async def _cosines_of(
    tx: CollectionTransaction, tenant: str, numbers: Sequence[int], question: _Question
) -> dict[int, float]:
    """Return the cosines of these chunks, exactly, whatever an index thinks of them."""
    if not numbers or question.vector is None:
        return {}
    read = await read_some_vectors(tx, tenant, numbers, question.embedder)
    return likeness([assembled(read)], question.vector, numbers)


def _compared(
    held: Sequence[PartVectors], vector: bytes, numbers: Sequence[int], limit: int
) -> dict[int, float]:
    return likeness(held, vector, numbers) | nearest(held, vector, limit)


def _ranked(candidates: _Candidates, query: RetrievalQuery) -> list[RetrievedPassage]:
    """Return a passage for each of the best documents: its most relevant chunks, in the order of the document."""
    chunks, cosines = candidates.chunks, candidates.cosines
    texts = [(one.title, one.headings, one.text) for one in chunks]
    lexical = lexical_scores(candidates.words, candidates.statistics, texts)
    by_document: dict[str, list[tuple[float, FoundChunk]]] = {}
    for chunk, score in zip(chunks, lexical, strict=True):
        semantic = semantic_score(cosines.get(chunk.number, 0.0)) if cosines is not None else None
        by_document.setdefault(chunk.document, []).append((round(fused(score, semantic), 4), chunk))
    for found in by_document.values():
        found.sort(key=lambda one: (-one[0], one[1].ordinal))
    best = sorted(by_document.values(), key=lambda one: (-one[0][0], one[0][1].title, one[0][1].document))
    wanted = [one for one in best if one[0][0] > 0 and one[0][0] >= query.min_relevance]
    return [_passage(found) for found in wanted[: query.limit]]


def _passage(found: list[tuple[float, FoundChunk]]) -> RetrievedPassage:
    top, first = found[0]
    shown = [chunk for score, chunk in found[:_CHUNKS_SHOWN] if score >= top * _CLOSE]
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


def _together(reports: Sequence[EngineReport]) -> EngineReport:
    """Return what is true of all answers: the weakest engine, degraded where one was."""
    degraded = any(report.degraded for report in reports)
    weakest = next((report for report in reports if report.name in (LEXICAL.name, INDEXED_LEXICAL)), None)
    return replace(weakest or (reports[0] if reports else LEXICAL), degraded=degraded)
