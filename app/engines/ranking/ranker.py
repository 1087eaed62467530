"""The embedded tool ranker: words, n-grams and meaning, with features of tools cached by content."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np

from app.core.contracts.engines import Embedder, EngineReport, ToolCandidate, ToolRanking
from app.core.errors import ServiceError
from app.core.offload import off_loop
from app.engines.encoder import EncoderUnavailableError
from app.engines.ranking import fusion
from app.engines.ranking.fusion import HYBRID, LEXICAL, calibrated, merged, scored
from app.engines.ranking.index import Query, ToolIndex
from app.engines.ranking.memory import KnownTools, digest_of, embedded_text
from app.engines.ranking.postings import Floats
from app.engines.ranking.steps import steps

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
_COST: Final = 8
"""Cost of one tool and one text, in characters, for the decision to leave the event loop."""


@dataclass(slots=True, eq=False)
class _List:
    """One list of tools; ``vectors`` and ``space``, their encoder, come later from ``embedding``."""

    index: ToolIndex
    vectors: Floats | None = None
    space: tuple[str, str] | None = None
    embedding: "asyncio.Task[None] | None" = None


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
    the background, and until then requests are ranked by words alone.
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
        meaning = await self._meaning(listed, tools, texts)
        size = _COST * len(tools) * sum(1 + len(request.steps) for request in texts)
        scores_by_text = await off_loop(size, _ranked, listed.index, texts, meaning.likeness)
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
        self, listed: _List, tools: Sequence[ToolCandidate], texts: Sequence[_Request]
    ) -> _Meaning:
        """Compare the tools with all texts, unless only words are available."""
        lexical = EngineReport("embedded-lexical", VERSION)
        if self._embedder is None:
            return _Meaning(None, lexical)
        try:
            of_tools = listed.vectors
            if of_tools is None:
                of_tools = await self._embedded(self._embedder, listed, tools)
            if of_tools is None:
                return _Meaning(None, lexical)
            embedded = await self._embedder.embed([text for request in texts for text in request.embedded])
        except EncoderUnavailableError:
            return _Meaning(None, lexical)
        except ServiceError:
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        report = embedded.report
        if (report.name, report.version) != listed.space:
            # Vectors of two encoders are not comparable: embed the list again for the next request.
            listed.vectors = None
            self._tools.forget_vectors()
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        version = f"{VERSION}+{report.version}"
        likeness = of_tools @ _matrix(embedded.vectors).T
        return _Meaning(likeness, EngineReport("embedded-hybrid", version, report.degraded))

    async def _embedded(
        self, embedder: Embedder, listed: _List, tools: Sequence[ToolCandidate]
    ) -> Floats | None:
        """Wait up to ``patience_s`` for the vectors of the tools; return them, or None where they are not ready."""
        task = listed.embedding
        if task is None:
            task = listed.embedding = asyncio.create_task(self._embed(embedder, listed, tools))
            task.add_done_callback(_mark_retrieved)
        done, _ = await asyncio.wait({task}, timeout=self._patience_s)
        if done:
            listed.embedding = None
            task.result()
        return listed.vectors

    async def _embed(self, embedder: Embedder, listed: _List, tools: Sequence[ToolCandidate]) -> None:
        missing = self._tools.without_vector(tools)
        # Where no tool is missing, embed one text to check that the vectors come from the present encoder.
        embedded = await embedder.embed([embedded_text(tool) for tool in missing] or [""])
        self._tools.learn(missing, embedded)
        listed.vectors, listed.space = self._tools.vectors(tools)


def _matrix(vectors: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def _mark_retrieved(task: "asyncio.Task[None]") -> None:
    """Mark the error of a task as retrieved; the next request for that list, if any, raises it again."""
    if not task.cancelled():
        task.exception()


def _ranked(index: ToolIndex, texts: Sequence[_Request], likeness: Floats | None) -> list[Floats]:
    """Return the scores of all tools for each text."""
    column = 0
    scores_by_text = []
    for request in texts:
        meanings = None if likeness is None else _meanings(request, likeness[:, column:])
        column += len(request.embedded)
        each = [
            scored(index.evidence(Query.of(text)), None if meanings is None else meanings[number])
            for number, text in enumerate((request.text, *request.steps))
        ]
        scores_by_text.append(calibrated(merged(each[0], each[1:]), LEXICAL if likeness is None else HYBRID))
    return scores_by_text


def _meanings(request: _Request, likeness: Floats) -> list[Floats]:
    """Return the similarity of the tools to the whole and to each step; for a long text, the whole is their mean."""
    columns = list(np.ascontiguousarray(likeness[:, : len(request.embedded)].T))
    return columns if len(columns) > len(request.steps) else [np.mean(columns, axis=0), *columns]
