"""Choose the engine of a capability: the embedded one, or the configured one with the embedded one as a fallback."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.core.contracts.engines import (
    Claim,
    Embedder,
    Embeddings,
    Grounding,
    GroundingJudge,
    InjectionDetector,
    InjectionJudgement,
    Moderation,
    Moderator,
    Retrieval,
    RetrievalQuery,
    Retriever,
    SecretFindings,
    SecretOptions,
    SecretScanner,
    ToolCandidate,
    ToolRanker,
    ToolRanking,
)
from app.engines.remote import RemoteOptions
from app.engines.remote.chat import ChatJudge
from app.engines.remote.client import RemoteClient
from app.engines.remote.embeddings import TEXTS_AT_ONCE, RemoteEmbedder
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


@dataclass(frozen=True, slots=True)
class Guarded(Generic[E, R]):
    """The configured engine of one capability, with the embedded one as a fallback; subclasses define the calls."""

    remote: E
    embedded: E
    guard: EngineFallback[R]

    async def either(self, ask: Callable[[E], Awaitable[R]], *, parts: int = 1) -> R:
        """Call the configured engine, or the embedded one where the guard decides so (see `EngineFallback.call`)."""
        return await self.guard.call(lambda: ask(self.remote), lambda: ask(self.embedded), parts=parts)


class GuardedEmbedder(Guarded[Embedder, Embeddings]):
    """Embeds with the configured model; the fallback's report names another model, whose vectors are not comparable."""

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Return a vector for each text, all of one model."""
        parts = max(1, -(-len(texts) // TEXTS_AT_ONCE))
        return await self.either(lambda engine: engine.embed(texts), parts=parts)


class GuardedToolRanker(Guarded[ToolRanker, ToolRanking]):
    """Ranks tools with the configured engine."""

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""
        return await self.either(lambda engine: engine.rank(queries, tools))


class GuardedModerator(Guarded[Moderator, Moderation]):
    """Moderates texts with the configured engine."""

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Score each of ``texts`` for each of ``policies``."""
        return await self.either(lambda engine: engine.moderate(texts, policies))


class GuardedInjectionDetector(Guarded[InjectionDetector, InjectionJudgement]):
    """Judges texts with the configured engine."""

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        """Judge each of ``texts`` separately."""
        return await self.either(lambda engine: engine.judge(texts, documents=documents))


class GuardedSecretScanner(Guarded[SecretScanner, SecretFindings]):
    """Scans texts with the configured engine and with the rules."""

    async def scan(self, texts: Sequence[str], options: SecretOptions) -> SecretFindings:
        """Scan each of ``texts``."""
        return await self.either(lambda engine: engine.scan(texts, options))

    def providers(self) -> frozenset[str]:
        """Return the providers that either of them knows."""
        return self.remote.providers()


class GuardedRetriever(Guarded[Retriever, Retrieval]):
    """Reranks passages with the configured engine."""

    async def retrieve(self, queries: Sequence[RetrievalQuery]) -> Retrieval:
        """Return the best passages for each of ``queries``."""
        return await self.either(lambda engine: engine.retrieve(queries))


class GuardedGroundingJudge(Guarded[GroundingJudge, Grounding]):
    """Judges statements with the configured engine."""

    async def judge(self, claims: Sequence[Claim]) -> Grounding:
        """Judge each of ``claims`` separately."""
        return await self.either(lambda engine: engine.judge(claims))


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
        return GuardedEmbedder(RemoteEmbedder(self._client(options)), embedded, guard)

    def tools(self, options: RemoteOptions | None, embedded: ToolRanker) -> ToolRanker:
        """Return the ranker of tools."""
        if options is None:
            return embedded
        remote = RerankedTools(embedded, self._scorer(options))
        return GuardedToolRanker(remote, embedded, self._guard("tools", options, _same_first_tool))

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
        return GuardedModerator(remote, embedded, self._guard("moderator", options, _same_flags))

    def injection(self, options: RemoteOptions | None, embedded: InjectionDetector) -> InjectionDetector:
        """Return the injection detector."""
        if options is None:
            return embedded
        remote = ChatInjectionDetector(ChatJudge(self._client(options)))
        return GuardedInjectionDetector(remote, embedded, self._guard("injection", options, _same_sides))

    def secrets(self, options: RemoteOptions | None, embedded: SecretScanner) -> SecretScanner:
        """Return the secret scanner."""
        if options is None:
            return embedded
        remote = ChatSecretScanner(embedded, ChatJudge(self._client(options)))
        return GuardedSecretScanner(remote, embedded, self._guard("secrets", options, _same_spans))

    def retriever(self, options: RemoteOptions | None, embedded: Retriever) -> Retriever:
        """Return the retriever."""
        if options is None:
            return embedded
        remote = RerankedRetriever(embedded, self._scorer(options))
        return GuardedRetriever(remote, embedded, self._guard("retriever", options, _same_first_passage))

    def grounding(self, options: RemoteOptions | None, embedded: GroundingJudge) -> GroundingJudge:
        """Return the grounding judge."""
        if options is None:
            return embedded
        remote = ChatGroundingJudge(ChatJudge(self._client(options)))
        return GuardedGroundingJudge(remote, embedded, self._guard("grounding", options, _same_sides))

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
