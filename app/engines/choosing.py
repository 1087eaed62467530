"""Choose the engine of a capability: the embedded one, or the configured one with the embedded one as a fallback."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Concatenate, ParamSpec, TypeVar, cast

from app.core.contracts.engines import (
    Embedder,
    Embeddings,
    Grounding,
    GroundingJudge,
    InjectionDetector,
    InjectionJudgement,
    Moderation,
    Moderator,
    Retrieval,
    Retriever,
    SecretFindings,
    SecretScanner,
    ToolRanker,
    ToolRanking,
)
from app.engines.remote import RemoteOptions
from app.engines.remote.chat import ChatJudge
from app.engines.remote.client import RemoteClient
from app.engines.remote.embeddings import RemoteEmbedder, requests_for
from app.engines.remote.judges import ChatGroundingJudge, ChatInjectionDetector, ChatModerator, LlamaGuard
from app.engines.remote.moderations import RemoteModerations
from app.engines.remote.ranking import (
    ChatScorer,
    RerankedRetriever,
    RerankedTools,
    RerankScorer,
    Scorer,
    TeiRerankScorer,
)
from app.engines.remote.secrets import ChatSecretScanner
from app.engines.resilience import EngineFallback, Observer, R, unobserved

_LINE = 0.5
"""Scores on the same side of this line count as equal."""


E = TypeVar("E")
P = ParamSpec("P")


class _Guarded:
    """Stands for an engine: the guarded ``methods`` are its own, all other members those of the remote engine."""

    def __init__(self, remote: object, guard: object, **methods: object) -> None:
        self.guard = guard
        self._remote = remote
        vars(self).update(methods)

    def __getattr__(self, name: str) -> object:
        return getattr(self._remote, name)


def guarded(
    method: Callable[Concatenate[E, P], Awaitable[R]],
    remote: E,
    embedded: E,
    guard: EngineFallback[R],
    parts: Callable[P, int] | None = None,
) -> E:
    """Return an engine that calls ``remote``, or ``embedded`` where ``guard`` decides so.

    ``method`` is the coroutine of their contract, such as ``Moderator.moderate``: it determines which arguments and
    which result the guard handles. ``parts`` returns how many requests one call makes in sequence (default: one).
    """
    name: str = method.__name__

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        def ask(engine: E) -> Awaitable[R]:
            bound: Callable[P, Awaitable[R]] = getattr(engine, name)
            return bound(*args, **kwargs)

        count = 1 if parts is None else parts(*args, **kwargs)
        return await guard.call(lambda: ask(remote), lambda: ask(embedded), parts=count)

    return cast("E", _Guarded(remote, guard, **{name: call}))


class Chooser:
    """Builds the engine of each capability; without options that is the embedded one. Close it at the end."""

    def __init__(self, observe: Observer = unobserved) -> None:
        self._observe = observe
        self._closing = AsyncExitStack()

    async def close(self) -> None:
        """End background calls and close connections."""
        await self._closing.aclose()

    def embedder(self, options: RemoteOptions | None, embedded: Embedder) -> Embedder:
        """Return the embedder."""
        if options is None:
            return embedded
        # Vectors of two models cannot be compared, so in shadow mode any answer counts as agreement.
        guard: EngineFallback[Embeddings] = self._guard("embedder", options, lambda expected, result: True)  # noqa: ARG005
        return guarded(Embedder.embed, RemoteEmbedder(self._client(options)), embedded, guard, requests_for)

    def tools(self, options: RemoteOptions | None, embedded: ToolRanker) -> ToolRanker:
        """Return the ranker of tools."""
        if options is None:
            return embedded
        remote = RerankedTools(embedded, self._scorer(options))
        return guarded(ToolRanker.rank, remote, embedded, self._guard("tools", options, _same_first_tool))

    def moderator(self, options: RemoteOptions | None, embedded: Moderator) -> Moderator:
        """Return the moderator."""
        if options is None:
            return embedded
        client = self._client(options)
        remote: Moderator = RemoteModerations(client, embedded)
        if options.kind == "chat":
            remote = ChatModerator(ChatJudge(client))
        elif options.kind == "llama-guard":
            remote = LlamaGuard(ChatJudge(client))
        return guarded(Moderator.moderate, remote, embedded, self._guard("moderator", options, _same_flags))

    def injection(self, options: RemoteOptions | None, embedded: InjectionDetector) -> InjectionDetector:
        """Return the injection detector."""
        if options is None:
            return embedded
        remote = ChatInjectionDetector(ChatJudge(self._client(options)))
        guard: EngineFallback[InjectionJudgement] = self._guard("injection", options, _same_sides)
        return guarded(InjectionDetector.judge, remote, embedded, guard)

    def secrets(self, options: RemoteOptions | None, embedded: SecretScanner) -> SecretScanner:
        """Return the secret scanner."""
        if options is None:
            return embedded
        remote = ChatSecretScanner(embedded, ChatJudge(self._client(options)))
        return guarded(SecretScanner.scan, remote, embedded, self._guard("secrets", options, _same_spans))

    def retriever(self, options: RemoteOptions | None, embedded: Retriever) -> Retriever:
        """Return the retriever."""
        if options is None:
            return embedded
        remote = RerankedRetriever(embedded, self._scorer(options))
        return guarded(
            Retriever.retrieve, remote, embedded, self._guard("retriever", options, _same_first_passage)
        )

    def grounding(self, options: RemoteOptions | None, embedded: GroundingJudge) -> GroundingJudge:
        """Return the grounding judge."""
        if options is None:
            return embedded
        remote = ChatGroundingJudge(ChatJudge(self._client(options)))
        guard: EngineFallback[Grounding] = self._guard("grounding", options, _same_sides)
        return guarded(GroundingJudge.judge, remote, embedded, guard)

    def _scorer(self, options: RemoteOptions) -> Scorer:
        client = self._client(options)
        if options.kind == "chat":
            return ChatScorer(ChatJudge(client))
        return TeiRerankScorer(client) if options.kind == "tei-rerank" else RerankScorer(client)

    def _client(self, options: RemoteOptions) -> RemoteClient:
        client = RemoteClient(options)
        self._closed_by(client.close)
        return client

    def _guard(
        self, capability: str, options: RemoteOptions, agree: Callable[[R, R], bool]
    ) -> EngineFallback[R]:
        guard = EngineFallback(capability, options.rules, agree, self._observe)
        self._closed_by(guard.close)
        return guard

    def _closed_by(self, close: Callable[[], Awaitable[None]]) -> None:
        self._closing.push_async_callback(close)


def _same_flags(expected: Moderation, result: Moderation) -> bool:
    return all(
        (row[policy] >= _LINE) == (theirs.get(policy, 0.0) >= _LINE)
        for row, theirs in zip(expected.scores, result.scores, strict=True)
        for policy in row
    )


def _same_sides(expected: InjectionJudgement | Grounding, result: InjectionJudgement | Grounding) -> bool:
    return all(
        (score >= _LINE) == (theirs >= _LINE)
        for score, theirs in zip(expected.scores, result.scores, strict=True)
    )


def _same_spans(expected: SecretFindings, result: SecretFindings) -> bool:
    return [[(span.start, span.end) for span in spans] for spans in expected.spans] == [
        [(span.start, span.end) for span in spans] for spans in result.spans
    ]


def _same_first_tool(expected: ToolRanking, result: ToolRanking) -> bool:
    return [row[:1] for row in expected.order] == [row[:1] for row in result.order]


def _same_first_passage(expected: Retrieval, result: Retrieval) -> bool:
    return [[each.document for each in passages[:1]] for passages in expected.passages] == [
        [each.document for each in passages[:1]] for passages in result.passages
    ]
