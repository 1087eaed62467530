"""Import embedded engines with their first call, so that start-up does not pay for numpy and the weights.

Imports take a while, so they run in a thread; later calls have no extra cost.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from app.core.contracts.engines import (
    Embedder,
    InjectionDetector,
    InjectionJudgement,
    Moderation,
    Moderator,
    ToolCandidate,
    ToolRanker,
    ToolRanking,
)

E = TypeVar("E")


class Deferred(Generic[E]):
    """Builds an engine once, when it is first used."""

    def __init__(self, build: Callable[[], E]) -> None:
        self._build = build
        self._building = threading.Lock()
        self._engine: E | None = None

    async def get(self) -> E:
        """Return the engine; after a failure the next caller tries again."""
        return self._engine if self._engine is not None else await asyncio.to_thread(self._built)

    def _built(self) -> E:
        with self._building:
            if self._engine is None:
                self._engine = self._build()
            return self._engine


class DeferredToolRanker:
    """The embedded ToolRanker, imported with its first call."""

    def __init__(self, embedder: Embedder) -> None:
        def build() -> ToolRanker:
            from app.engines.ranking.ranker import EmbeddedToolRanker  # noqa: PLC0415 - see above

            return EmbeddedToolRanker(embedder)

        self._engine = Deferred(build)

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""
        return await (await self._engine.get()).rank(queries, tools)


class DeferredModerator:
    """The embedded Moderator, imported with its first call."""

    def __init__(self, embedder: Embedder) -> None:
        def build() -> Moderator:
            from app.engines.moderation.embedded import EmbeddedModerator  # noqa: PLC0415 - see above

            return EmbeddedModerator(embedder)

        self._engine = Deferred(build)

    async def moderate(self, texts: Sequence[str], policies: Sequence[str]) -> Moderation:
        """Score each of ``texts`` for each of ``policies``."""
        return await (await self._engine.get()).moderate(texts, policies)


class DeferredInjectionDetector:
    """The embedded InjectionDetector, imported with its first call."""

    def __init__(self) -> None:
        def build() -> InjectionDetector:
            from app.engines.injection.detector import EmbeddedInjectionDetector  # noqa: PLC0415 - see above

            return EmbeddedInjectionDetector()

        self._engine = Deferred(build)

    async def judge(self, texts: Sequence[str], *, documents: bool = False) -> InjectionJudgement:
        """Judge each of ``texts``."""
        return await (await self._engine.get()).judge(texts, documents=documents)
