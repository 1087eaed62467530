"""The embedded tool ranker: words, n-grams and meaning, with features of tools cached by content."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from app.core.contracts.engines import Embedder, EngineReport, ToolCandidate, ToolRanking
from app.core.errors import ServiceError
from app.core.offload import off_loop
from app.engines.encoder import EncoderUnavailableError
from app.engines.ranking import fusion
from app.engines.ranking.fusion import HYBRID, LEXICAL, calibrated, merged, scored
from app.engines.ranking.index import Query, ToolEvidence, ToolIndex
from app.engines.ranking.memory import KnownTools, digest_of, embedded_text
from app.engines.ranking.postings import Floats
from app.engines.ranking.steps import steps

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]
_CONSTANTS: Final = (
    fusion.WORDS,
    fusion.GRAMS,
    fusion.MEANING,
    fusion.STEPS,
    *astuple(HYBRID),
    *astuple(LEXICAL),
)
VERSION: Final = hashlib.sha256(repr(_CONSTANTS).encode()).hexdigest()[:12]
_BYTES_CACHED: Final = 96 * 2**20
"""Most bytes of all cached lists together; 4,000 typical tools take 12 MB."""
_LISTS_SEEN: Final = 16
_READ: Final = 2_000
_EMBEDDED: Final = 480
_STEP: Final = 200
"""Most characters of a request that are read, and of it and of a step that are embedded: the cost grows with length."""
_REQUEST: Final = 1_000
"""A longer text is mostly material that comes with a request: only its ends are used."""
_ENDS: Final = 120
_PATIENCE_S: Final = 3.0
_WHOLE: Final = 2_048
"""Most tools of a list that is embedded whole, in four seconds of a core; of a longer one what words rank well."""
_BEST_BY_WORDS: Final = 128
"""Tools that are embedded of a longer list, for a request and each of its steps. On the half of the open sets' queries
that chooses, .003 of the needed tools among the best ten are lost by it (BFCL), or .001 (Seal-Tools)."""
_COST: Final = 8
"""Cost of one tool and one text, in characters, for the decision to leave the event loop."""


@dataclass(slots=True, eq=False)
class _List:
    """One list of tools; a row of ``vectors`` for each, and ``space``, their encoder, come later from ``embedding``.

    ``embedded`` says which rows are there.
    """

    index: ToolIndex
    vectors: Floats | None = None
    embedded: Flags | None = None
    space: tuple[str, str] | None = None
    embedding: "asyncio.Task[None] | None" = None

    def has(self, wanted: Places) -> bool:
        """Return whether the vectors of the ``wanted`` tools are there."""
        return self.embedded is not None and bool(self.embedded[wanted].all())

    def learn(self, wanted: Places, vectors: Floats, space: tuple[str, str]) -> None:
        """Keep the vectors of the ``wanted`` tools; those of another encoder are dropped."""
        if self.vectors is None or self.embedded is None or self.space != space:
            self.vectors = np.zeros((self.index.count, vectors.shape[1]), dtype="<f4")
            self.embedded = np.zeros(self.index.count, dtype=bool)
            self.space = space
        self.vectors[wanted] = vectors
        self.embedded[wanted] = True

    def forget(self) -> None:
        """Drop the vectors."""
        self.vectors = self.embedded = self.space = None


@dataclass(frozen=True, slots=True)
class _Request:
    """One text: its words, its steps, and the texts to embed: the whole, where that is short, and each step."""

    text: str
    steps: list[str]
    embedded: list[str]

    @classmethod
    def of(cls, query: str) -> "_Request":
        """Read a text; of a long one only its ends, since a request comes before or after its material."""
        text = query[:_READ]
        if len(text) <= _REQUEST:
            parts = steps(text)
            return cls(text, parts, [text[:_EMBEDDED], *(part[:_STEP] for part in parts)])
        ends = [text[:_ENDS], text[-_ENDS:]]
        return cls(text, ends, ends)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The similarity of each tool (row) to each text (column), where there are vectors, and the resulting engine."""

    likeness: Floats | None
    report: EngineReport


class EmbeddedToolRanker:
    """Ranks by shared words and n-grams, and by meaning where there is an encoder.

    A list is indexed once. A request waits up to ``patience_s`` for the vectors of a new list; they are completed in
    the background, and until then requests are ranked by words alone. Of a list of more than some thousand tools only
    those are embedded that words rank among the best for a request.
    """

    def __init__(self, embedder: Embedder | None = None, *, patience_s: float = _PATIENCE_S) -> None:
        self._embedder = embedder
        self._patience_s = patience_s
        self._lists: OrderedDict[bytes, _List] = OrderedDict()
        self._seen: OrderedDict[int, tuple[Sequence[ToolCandidate], _List]] = OrderedDict()
        self._tools = KnownTools()
        self._building = asyncio.Lock()

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""
        if not tools or not queries:
            every = list(range(len(tools)))
            report = EngineReport("embedded-lexical", VERSION)
            return ToolRanking([[0.0] * len(tools) for _ in queries], [every for _ in queries], report)
        listed = await self._list(tools)
        texts = [_Request.of(query) for query in queries]
        size = _COST * len(tools) * sum(1 + len(request.steps) for request in texts)
        evidence = await off_loop(size, _evidence, listed.index, texts)
        meaning = await self._meaning(listed, tools, texts, _wanted(evidence, len(tools)))
        scores_by_text = await off_loop(size, _ranked, texts, evidence, meaning.likeness)
        order = [np.argsort(-scores, kind="stable").tolist() for scores in scores_by_text]
        return ToolRanking([scores.tolist() for scores in scores_by_text], order, meaning.report)

    async def _list(self, tools: Sequence[ToolCandidate]) -> _List:
        # The tools behind this server come as the same tuple until they change; hashing them is slower than ranking.
        seen = self._seen.get(id(tools))
        if seen is not None and seen[0] is tools:
            self._seen.move_to_end(id(tools))
            return seen[1]
        key = await off_loop(_COST * len(tools), digest_of, tools)
        listed = self._lists.get(key) or await self._built(key, tools)
        if key in self._lists:
            self._lists.move_to_end(key)
        if isinstance(tools, tuple):
            self._seen[id(tools)] = tools, listed
            while len(self._seen) > _LISTS_SEEN:
                self._seen.popitem(last=False)
        return listed

    async def _built(self, key: bytes, tools: Sequence[ToolCandidate]) -> _List:
        async with self._building:
            listed = self._lists.get(key)
            if listed is None:
                features = await asyncio.to_thread(self._tools.features, tools)
                listed = self._lists[key] = _List(await asyncio.to_thread(ToolIndex.build, features))
                self._forget()
        return listed

    def _forget(self) -> None:
        while (
            len(self._lists) > 1 and sum(listed.index.size for listed in self._lists.values()) > _BYTES_CACHED
        ):
            _, oldest = self._lists.popitem(last=False)
            for key in [key for key, (_, seen_list) in self._seen.items() if seen_list is oldest]:
                del self._seen[key]

    async def _meaning(
        self, listed: _List, tools: Sequence[ToolCandidate], texts: Sequence[_Request], wanted: Places
    ) -> _Meaning:
        """Compare the ``wanted`` tools with all texts, unless only words are available."""
        lexical = EngineReport("embedded-lexical", VERSION)
        if self._embedder is None:
            return _Meaning(None, lexical)
        try:
            if not await self._embedded(self._embedder, listed, tools, wanted):
                return _Meaning(None, lexical)
            embedded = await self._embedder.embed([text for request in texts for text in request.embedded])
        except EncoderUnavailableError:
            return _Meaning(None, lexical)
        except ServiceError:
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        report, vectors = embedded.report, listed.vectors
        if vectors is None or (report.name, report.version) != listed.space:
            # Vectors of two encoders are not comparable: embed the list again for the next request.
            listed.forget()
            self._tools.forget_vectors()
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        version = f"{VERSION}+{report.version}"
        likeness = _likeness(vectors, wanted, _matrix(embedded.vectors))
        return _Meaning(likeness, EngineReport("embedded-hybrid", version, report.degraded))

    async def _embedded(
        self, embedder: Embedder, listed: _List, tools: Sequence[ToolCandidate], wanted: Places
    ) -> bool:
        """Wait up to ``patience_s`` for the vectors of the ``wanted`` tools; return whether they are there.

        What another request has begun is waited for first, so that no tool is embedded twice.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + self._patience_s
        own = None
        while own is None and not listed.has(wanted):
            task = listed.embedding
            if task is None:
                task = own = listed.embedding = asyncio.create_task(
                    self._embed(embedder, listed, tools, wanted)
                )
                task.add_done_callback(_mark_retrieved)
            done, _ = await asyncio.wait({task}, timeout=max(0.0, until - clock()))
            if not done:
                return False
            if listed.embedding is task:
                listed.embedding = None
            task.result()
        return listed.has(wanted)

    async def _embed(
        self, embedder: Embedder, listed: _List, tools: Sequence[ToolCandidate], wanted: Places
    ) -> None:
        chosen = [tools[place] for place in wanted.tolist()]
        missing = self._tools.without_vector(chosen)
        # Where no tool is missing, embed one text to check that the vectors come from the present encoder.
        embedded = await embedder.embed([embedded_text(tool) for tool in missing] or [""])
        self._tools.learn(missing, embedded)
        vectors, space = self._tools.vectors(chosen)
        if vectors is not None and space is not None:
            listed.learn(wanted, vectors, space)


def _likeness(vectors: Floats, wanted: Places, texts: Floats) -> Floats:
    """Return how like each tool (row) is to each text (column); those that are not wanted are like none."""
    if len(wanted) == len(vectors):
        return vectors @ texts.T
    near = vectors[wanted] @ texts.T
    likeness = np.tile(np.minimum(near.min(axis=0), np.float32(0)), (len(vectors), 1))
    likeness[wanted] = near
    return likeness


def _matrix(vectors: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def _mark_retrieved(task: "asyncio.Task[None]") -> None:
    """Mark the error of a task as retrieved; the next request for that list, if any, raises it again."""
    if not task.cancelled():
        task.exception()


def _evidence(index: ToolIndex, texts: Sequence[_Request]) -> list[list[ToolEvidence]]:
    """Return for each request what words say of the tools, for the whole and for each step."""
    return [[index.evidence(Query.of(text)) for text in (each.text, *each.steps)] for each in texts]


def _wanted(evidence: Sequence[Sequence[ToolEvidence]], count: int) -> Places:
    """Return the places of the tools whose meaning counts: all of a short list, of a longer one the best by words."""
    if count <= _WHOLE:
        return np.arange(count)
    by_words = (scored(each, None).fused for whole_and_steps in evidence for each in whole_and_steps)
    return np.unique([np.argpartition(-fused, _BEST_BY_WORDS)[:_BEST_BY_WORDS] for fused in by_words])


def _ranked(
    texts: Sequence[_Request], evidence: Sequence[Sequence[ToolEvidence]], likeness: Floats | None
) -> list[Floats]:
    """Return the scores of all tools for each text."""
    column = 0
    scores_by_text = []
    for request, of_texts in zip(texts, evidence, strict=True):
        meanings = None if likeness is None else _meanings(request, likeness[:, column:])
        column += len(request.embedded)
        each = [
            scored(words, None if meanings is None else meanings[number])
            for number, words in enumerate(of_texts)
        ]
        scores_by_text.append(calibrated(merged(each[0], each[1:]), LEXICAL if likeness is None else HYBRID))
    return scores_by_text


def _meanings(request: _Request, likeness: Floats) -> list[Floats]:
    """Return the similarity of the tools to the whole and to each step; for a long text, the whole is their mean."""
    columns = list(np.ascontiguousarray(likeness[:, : len(request.embedded)].T))
    return columns if len(columns) > len(request.steps) else [np.mean(columns, axis=0), *columns]
