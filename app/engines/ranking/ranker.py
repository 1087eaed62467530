"""The embedded tool ranker: words, parts of words and meaning, with what it knows of tools kept by content."""

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
_BYTES_HELD: Final = 96 * 2**20
"""What all remembered lists take together; 4,000 tools as servers define them take 12 MB."""
_LISTS_SEEN: Final = 16
_READ: Final = 2_000
_EMBEDDED: Final = 480
_STEP: Final = 200
"""How many characters of a request are read, and of it and of a step embedded: an encoding costs by the length."""
_REQUEST: Final = 1_000
"""What is longer is mostly material that goes with a request: its ends are looked at for steps."""
_ENDS: Final = 120
_PATIENCE_S: Final = 3.0
_COST: Final = 8
"""What one tool and one text weigh beside one character, for the decision to leave the event loop."""


@dataclass(slots=True, eq=False)
class _List:
    """What is known of one list of tools; ``vectors`` come later, from ``embedding``, and so does whose they are."""

    index: ToolIndex
    vectors: Floats | None = None
    space: tuple[str, str] | None = None
    embedding: "asyncio.Task[None] | None" = None


@dataclass(frozen=True, slots=True)
class _Request:
    """One text: its words, its steps, and what of both is embedded: the whole, where that is short, and each step."""

    text: str
    steps: list[str]
    embedded: list[str]

    @classmethod
    def of(cls, query: str) -> "_Request":
        """Read a text; of a long one its ends, since a request stands before or behind what goes with it."""
        text = query[:_READ]
        if len(text) <= _REQUEST:
            parts = steps(text)
            return cls(text, parts, [text[:_EMBEDDED], *(part[:_STEP] for part in parts)])
        ends = [text[:_ENDS], text[-_ENDS:]]
        return cls(text, ends, ends)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """How alike each tool (row) is to each text (column), where there are vectors, and which engine that makes."""

    likeness: Floats | None
    report: EngineReport


class EmbeddedToolRanker:
    """Ranks by shared words and n-grams, and by meaning where there is an encoder.

    A list is indexed once; the vectors of a new list are waited for ``patience_s`` and completed behind the requests,
    which the words alone serve until then.
    """

    def __init__(self, embedder: Embedder | None = None, *, patience_s: float = _PATIENCE_S) -> None:
        self._embedder = embedder
        self._patience_s = patience_s
        self._lists: OrderedDict[bytes, _List] = OrderedDict()
        self._seen: OrderedDict[int, tuple[Sequence[ToolCandidate], _List]] = OrderedDict()
        self._known = KnownTools()
        self._building = asyncio.Lock()

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""
        if not tools or not queries:
            every = list(range(len(tools)))
            report = EngineReport("embedded-lexical", VERSION)
            return ToolRanking([[0.0] * len(tools) for _ in queries], [every for _ in queries], report)
        held = await self._list(tools)
        texts = [_Request.of(query) for query in queries]
        meaning = await self._meaning(held, tools, texts)
        size = _COST * len(tools) * sum(1 + len(one.steps) for one in texts)
        found = await off_loop(size, _ranked, held.index, texts, meaning.likeness)
        order = [np.argsort(-scores, kind="stable").tolist() for scores in found]
        return ToolRanking([scores.tolist() for scores in found], order, meaning.report)

    async def _list(self, tools: Sequence[ToolCandidate]) -> _List:
        # The tools behind this server come as one tuple until they change; to hash them takes longer than to rank.
        seen = self._seen.get(id(tools))
        if seen is not None and seen[0] is tools:
            self._seen.move_to_end(id(tools))
            return seen[1]
        key = await off_loop(_COST * len(tools), digest_of, tools)
        held = self._lists.get(key) or await self._built(key, tools)
        if key in self._lists:
            self._lists.move_to_end(key)
        if isinstance(tools, tuple):
            self._seen[id(tools)] = tools, held
            while len(self._seen) > _LISTS_SEEN:
                self._seen.popitem(last=False)
        return held

    async def _built(self, key: bytes, tools: Sequence[ToolCandidate]) -> _List:
        async with self._building:
            held = self._lists.get(key)
            if held is None:
                features = await asyncio.to_thread(self._known.features, tools)
                held = self._lists[key] = _List(await asyncio.to_thread(ToolIndex.build, features))
                self._forget()
        return held

    def _forget(self) -> None:
        while len(self._lists) > 1 and sum(one.index.size for one in self._lists.values()) > _BYTES_HELD:
            _, oldest = self._lists.popitem(last=False)
            for key in [key for key, (_, held) in self._seen.items() if held is oldest]:
                del self._seen[key]

    async def _meaning(
        self, held: _List, tools: Sequence[ToolCandidate], texts: Sequence[_Request]
    ) -> _Meaning:
        """Compare the tools with all texts, unless words must do."""
        lexical = EngineReport("embedded-lexical", VERSION)
        if self._embedder is None:
            return _Meaning(None, lexical)
        try:
            of_tools = held.vectors
            if of_tools is None:
                of_tools = await self._embedded(self._embedder, held, tools)
            if of_tools is None:
                return _Meaning(None, lexical)
            embedded = await self._embedder.embed([text for one in texts for text in one.embedded])
        except EncoderUnavailableError:
            return _Meaning(None, lexical)
        except ServiceError:
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        report = embedded.report
        if (report.name, report.version) != held.space:
            # Vectors of two encoders say nothing of each other: the list is embedded again for the next request.
            held.vectors = None
            self._known.forget_vectors()
            return _Meaning(None, EngineReport(lexical.name, VERSION, degraded=True))
        version = f"{VERSION}+{report.version}"
        likeness = of_tools @ _matrix(embedded.vectors).T
        return _Meaning(likeness, EngineReport("embedded-hybrid", version, report.degraded))

    async def _embedded(
        self, embedder: Embedder, held: _List, tools: Sequence[ToolCandidate]
    ) -> Floats | None:
        """Wait a while for the vectors of the tools; return them if they are there."""
        task = held.embedding
        if task is None:
            task = held.embedding = asyncio.create_task(self._embed(embedder, held, tools))
            task.add_done_callback(_heard)
        done, _ = await asyncio.wait({task}, timeout=self._patience_s)
        if done:
            held.embedding = None
            task.result()
        return held.vectors

    async def _embed(self, embedder: Embedder, held: _List, tools: Sequence[ToolCandidate]) -> None:
        missing = self._known.without_vector(tools)
        # Where no tool is missing, one text says whether the vectors are those of the encoder that answers now.
        embedded = await embedder.embed([embedded_text(tool) for tool in missing] or [""])
        self._known.learn(missing, embedded)
        held.vectors, held.space = self._known.vectors(tools)


def _matrix(vectors: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(vectors), dtype="<f4").reshape(len(vectors), -1)


def _heard(task: "asyncio.Task[None]") -> None:
    """Take note of how a task ended: the next request for that list raises it again, if there is one."""
    if not task.cancelled():
        task.exception()


def _ranked(index: ToolIndex, texts: Sequence[_Request], likeness: Floats | None) -> list[Floats]:
    """Return the scores of all tools for each text."""
    column = 0
    found = []
    for one in texts:
        meanings = None if likeness is None else _meanings(one, likeness[:, column:])
        column += len(one.embedded)
        each = [
            scored(index.evidence(Query.of(text)), None if meanings is None else meanings[number])
            for number, text in enumerate((one.text, *one.steps))
        ]
        found.append(calibrated(merged(each[0], each[1:]), LEXICAL if likeness is None else HYBRID))
    return found


def _meanings(one: _Request, likeness: Floats) -> list[Floats]:
    """Return how alike the tools are to the whole and to each step; to a whole of ends as to these on the average."""
    columns = list(np.ascontiguousarray(likeness[:, : len(one.embedded)].T))
    return columns if len(columns) > len(one.steps) else [np.mean(columns, axis=0), *columns]
