"""Asking an index on another server for chunks, where it has what a caller may read as it is now."""

import asyncio
import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.contracts.engines import ChunkProposals, EngineReport
from app.engines.documents.chunk_index import FORMAT, MOST_PARTS, ChunkIndex, SearchScope
from app.engines.documents.scoring import Statistics, rarity
from app.engines.documents.words import asked_words
from app.engines.grounding.stemming import stem
from app.engines.resilience import EngineFallback
from app.store.documents.collections import StoredPart

_LOOKED_FOR: Final = 24
"""Words that propose chunks, the rarest ones."""
NOTHING_PROPOSED: Final = ChunkProposals(frozenset(), {}, (), EngineReport("embedded", "1"))


class Mark(NamedTuple):
    """An index has a part as it is at a revision."""

    target: str
    part: int
    revision: int


def index_name(prefix: str, embedder: str) -> str:
    """Return the name of the index with vectors of ``embedder`` (empty: without vectors)."""
    digest = hashlib.blake2b(f"{FORMAT}\n{embedder}".encode(), digest_size=8).hexdigest()
    return f"{prefix}-{digest}"


@dataclass(frozen=True, slots=True)
class IndexedSearch:
    """Proposes chunks of the parts that an index has; those of other parts the database proposes."""

    index: ChunkIndex
    guard: EngineFallback[ChunkProposals]
    prefix: str

    async def propose(
        self,
        tenant: str,
        parts: Sequence[StoredPart],
        marks: Sequence[Mark],
        text: str,
        vector: bytes | None,
        embedder: str,
        limit: int,
    ) -> ChunkProposals:
        """Return up to ``limit`` chunks by words and as many by meaning; no transaction may be open meanwhile.

        Where the server does not answer, nothing is proposed and the report says ``degraded``.
        """
        name, held = _held(parts, marks, index_name(self.prefix, embedder))
        if not held or len(held) > MOST_PARTS:
            return NOTHING_PROPOSED
        same = all(part.embedder == embedder for part in held)
        near = vector if same else None

        async def unasked() -> ChunkProposals:
            return NOTHING_PROPOSED

        return await self.guard.call(
            lambda: self._asked(
                name, SearchScope(tenant, [part.id for part in held]), held, text, near, limit
            ),
            unasked,
            parts=2,
        )

    async def _asked(
        self,
        name: str,
        scope: SearchScope,
        parts: Sequence[StoredPart],
        text: str,
        vector: bytes | None,
        limit: int,
    ) -> ChunkProposals:
        words = asked_words(text)
        counts = await self.index.count_matches(name, scope, [stem(word) for word in words]) if words else []
        matches = dict(zip(words, counts, strict=True))
        statistics = Statistics(
            sum(part.chunks for part in parts), sum(part.words for part in parts), matches
        )
        known = sorted((word for word in words if matches[word]), key=lambda word: matches[word])
        weights = {stem(word): round(rarity(statistics, word), 4) for word in known[:_LOOKED_FOR]}
        numbers: dict[int, None] = {}
        try:
            async with asyncio.TaskGroup() as group:
                asked = []
                if weights:
                    matching = self.index.match_words(name, scope, weights, limit)
                    asked.append(group.create_task(matching))
                if vector is not None:
                    near = self.index.nearest(name, scope, array("f", vector).tolist(), limit)
                    asked.append(group.create_task(near))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        for task in asked:
            numbers |= dict.fromkeys(task.result())
        report = EngineReport("index", FORMAT)
        return ChunkProposals(frozenset(scope.parts), matches, list(numbers), report)


def _held(parts: Sequence[StoredPart], marks: Sequence[Mark], wanted: str) -> tuple[str, list[StoredPart]]:
    """Return the index to ask, and the parts that it has as they are: ``wanted``, else the one that has most."""
    whole: dict[str, dict[int, int]] = {}
    for mark in marks:
        whole.setdefault(mark.target, {})[mark.part] = mark.revision
    found = {
        name: [part for part in parts if held.get(part.id) == part.revision] for name, held in whole.items()
    }
    if found.get(wanted):
        return wanted, found[wanted]
    return max(found.items(), key=lambda one: (len(one[1]), one[0]), default=("", []))
