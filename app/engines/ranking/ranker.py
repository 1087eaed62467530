"""The embedded tool ranker."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from app.core.engines import Embedder, EngineReport, ToolCandidate, ToolRanking
from app.engines.ranking.fusion import fused
from app.engines.ranking.index import Features, Query, ToolIndex

VERSION = "1"
_TOOLS_HELD = 65_536
_QUERY = 2_000


class EmbeddedToolRanker:
    """Ranks by shared words, names and n-grams, and by meaning where there is an encoder."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._indexes: OrderedDict[bytes, ToolIndex] = OrderedDict()
        self._features: OrderedDict[bytes, Features] = OrderedDict()
        self._building = asyncio.Lock()

    async def rank(self, queries: Sequence[str], tools: Sequence[ToolCandidate]) -> ToolRanking:
        """Rank all ``tools`` for each of ``queries``."""
        report = EngineReport("embedded-lexical", VERSION)
        if not tools or not queries:
            return ToolRanking(
                [[0.0] * len(tools) for _ in queries], [list(range(len(tools)))] * len(queries), report
            )
        index = await self._index(tools)
        scores, order = [], []
        for query in queries:
            found = fused(index.evidence(Query.of(query[:_QUERY])), None)
            scores.append(found.tolist())
            order.append(np.argsort(-found, kind="stable").tolist())
        return ToolRanking(scores, order, report)

    async def _index(self, tools: Sequence[ToolCandidate]) -> ToolIndex:
        digests = [_digest(tool) for tool in tools]
        key = hashlib.blake2b(b"".join(digests), digest_size=16).digest()
        async with self._building:
            index = self._indexes.get(key)
            if index is None:
                index = await asyncio.to_thread(self._built, tools, digests)
                self._indexes[key] = index
        return index

    def _built(self, tools: Sequence[ToolCandidate], digests: Sequence[bytes]) -> ToolIndex:
        features = []
        for tool, digest in zip(tools, digests, strict=True):
            known = self._features.get(digest)
            features.append(known or self._features.setdefault(digest, Features.of(tool)))
        return ToolIndex.build(features)


def _digest(tool: ToolCandidate) -> bytes:
    text = "\0".join((tool.name, tool.description, *tool.parameters))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
