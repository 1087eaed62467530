"""Rerank the results of the embedded engine with a bigger model: tools, and passages of documents."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Protocol

from pydantic import ConfigDict, Field, RootModel

from app.core.contracts.engines import (
    EngineReport,
    Retrieval,
    RetrievalQuery,
    RetrievedPassage,
    Retriever,
    ToolCandidate,
    ToolRanker,
    ToolRanking,
)
from app.engines.remote.chat import ENGINE as CHAT_ENGINE
from app.engines.remote.chat import ChatJudge
from app.engines.remote.client import RemoteAnswer, RemoteClient
from app.engines.remote.judges import each
from app.engines.resilience import RemoteEngineError

ENGINE = "remote-rerank"
_TOOLS = 50
_PASSAGES_FOR_ONE = 4
_MOST_PASSAGES = 50
_LONGEST_TOOL = 2_000
_TASK = (
    "You choose tools for an assistant. Score from 0 to 1 how much each tool helps with the request, also where it "
    "does only one of several steps. Give every tool exactly once, by its index."
)

Score = Annotated[float, Field(ge=0, le=1)]
Index = Annotated[int, Field(ge=0)]


class Scorer(Protocol):
    """Scores texts against a query."""

    report: EngineReport

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score 0..1 for each of ``texts``, in their order; raises RemoteEngineError."""


class _Result(RemoteAnswer):
    index: Index
    relevance_score: Score


class _Results(RemoteAnswer):
    results: list[_Result]


class _TeiResult(RemoteAnswer):
    index: Index
    score: Score


class _TeiResults(RootModel[list[_TeiResult]]):
    model_config = ConfigDict(strict=True, frozen=True)


class RerankScorer:
    """Calls ``/rerank`` in the form of Cohere, Jina, vLLM and Infinity."""

    def __init__(self, client: RemoteClient) -> None:
        self._client = client
        self.report = EngineReport(ENGINE, client.options.model)

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the scores of one query."""
        body = {
            "model": self._client.options.model,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
        }
        results = (await self._client.post("/rerank", body, _Results)).results
        return _placed(len(texts), [(result.index, result.relevance_score) for result in results])


class TeiRerankScorer:
    """Calls ``/rerank`` in the form of Text Embeddings Inference: ``texts`` in, a bare list out."""

    def __init__(self, client: RemoteClient) -> None:
        self._client = client
        self.report = EngineReport(ENGINE, client.options.model)

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the scores of one query."""
        body = {"query": query, "texts": list(texts), "raw_scores": False, "truncate": True}
        results = (await self._client.post("/rerank", body, _TeiResults)).root
        return _placed(len(texts), [(result.index, result.score) for result in results])


class _Judged(RemoteAnswer):
    index: Index
    score: Score


class _AllJudged(RemoteAnswer):
    scores: list[_Judged]


class ChatScorer:
    """Asks a chat model to score tools."""

    def __init__(self, judge: ChatJudge) -> None:
        self._judge = judge
        self.report = EngineReport(CHAT_ENGINE, judge.model)

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the scores of one request."""
        data = {
            "request": query,
            "tools": [{"index": index, "tool": text} for index, text in enumerate(texts)],
        }
        form = '{"scores": [{"index": 0, "score": 0.0}]}'
        judged = (await self._judge.ask(_TASK, form, data, _AllJudged)).scores
        return _placed(len(texts), [(judgement.index, judgement.score) for judgement in judged])


class RerankedTools:
    """Scores the embedded ranker's best tools again; the others follow in its order with score 0."""

    def __init__(self, embedded: ToolRanker, scorer: Scorer) -> None:
        self._embedded = embedded
        self._scorer = scorer

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each query."""
        first = await self._embedded.rank(queries, tools)
        if not tools:
            return replace(first, report=self._scorer.report)

        async def rerank(position: int) -> tuple[list[float], list[int]]:
            order = first.order[position]
            best, rest = order[:_TOOLS], order[_TOOLS:]
            scores = await self._scorer.scores(queries[position], [_described(tools[each]) for each in best])
            row = [0.0] * len(tools)
            for place, score in zip(best, scores, strict=True):
                row[place] = score
            return row, [*sorted(best, key=lambda place: -row[place]), *rest]

        ranked = await each(range(len(queries)), rerank)
        return ToolRanking([row for row, _ in ranked], [order for _, order in ranked], self._scorer.report)


class RerankedRetriever:
    """Takes more passages from the embedded retriever, all of which this caller may read, and scores them again."""

    def __init__(self, embedded: Retriever, scorer: Scorer) -> None:
        self._embedded = embedded
        self._scorer = scorer

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        """Return the best passages for each query by the new scores."""
        wider = [
            replace(
                query,
                limit=min(query.limit * _PASSAGES_FOR_ONE, max(_MOST_PASSAGES, query.limit)),
                min_relevance=0.0,
            )
            for query in queries
        ]
        first = await self._embedded.retrieve(wider)

        async def rerank(position: int) -> list[RetrievedPassage]:
            query, passages = queries[position], first.passages[position]
            if not passages:
                return []
            scores = await self._scorer.scores(
                query.text, [f"{each.title}\n{each.text}" for each in passages]
            )
            scored = [replace(each, relevance=score) for each, score in zip(passages, scores, strict=True)]
            scored.sort(key=lambda each: -each.relevance)
            return [each for each in scored if each.relevance >= query.min_relevance][: query.limit]

        return Retrieval(await each(range(len(queries)), rerank), self._scorer.report)


def _placed(count: int, results: Sequence[tuple[int, float]]) -> list[float]:
    """Return scores in the order of the texts sent; each index must come back exactly once."""
    if sorted(index for index, _ in results) != list(range(count)):
        raise RemoteEngineError("wrong results")
    return [score for _, score in sorted(results)]


def _described(tool: ToolCandidate) -> str:
    return "\n".join([tool.name, tool.description, *tool.parameters])[:_LONGEST_TOOL]
