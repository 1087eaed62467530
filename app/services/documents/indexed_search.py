"""Search an index on another server for chunks, if it has the present state of what a caller may read."""

import asyncio
import hashlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from app.core.contracts.engines import ChunkProposals, EngineReport
from app.engines.documents.chunk_index import FORMAT, MOST_PARTS, ChunkIndex, SearchScope
from app.engines.documents.scoring import Statistics, weight_of
from app.engines.documents.words import asked_words, rarest_words
from app.engines.grounding.stemming import stem
from app.engines.resilience import EngineFallback
from app.store.documents.collections import StoredPart

_LOOKED_FOR: Final = 24
"""How many words propose chunks: the rarest ones."""
NOTHING_PROPOSED: Final = ChunkProposals(frozenset(), {}, (), EngineReport("embedded", "1"))


class Mark(NamedTuple):
    """A record that an index has a part at a revision."""

    target: str
    part: int
    revision: int


def index_name(prefix: str, embedder: str) -> str:
    """Return the name of the index with vectors of ``embedder`` (empty: without vectors)."""
    digest = hashlib.blake2b(f"{FORMAT}\n{embedder}".encode(), digest_size=8).hexdigest()
    return f"{prefix}-{digest}"


@dataclass(frozen=True, slots=True)
class IndexedSearch:
    """Proposes chunks of the parts that an index has; the database proposes those of other parts."""

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
        """Return up to ``limit`` chunks by words and as many by meaning; no transaction may be open during the call.

        If the server does not answer, nothing is proposed and the report is ``degraded``.
        """
        name, parts_in_index = _choose_index(parts, marks, index_name(self.prefix, embedder))
        if not parts_in_index or len(parts_in_index) > MOST_PARTS:
            return NOTHING_PROPOSED
        same = all(part.embedder == embedder for part in parts_in_index)
        near = vector if same else None

        async def nothing_proposed() -> ChunkProposals:
            return NOTHING_PROPOSED

        return await self.guard.call(
            lambda: self._search(
                name,
                SearchScope(tenant, [part.id for part in parts_in_index]),
                parts_in_index,
                text,
                near,
                limit,
            ),
            nothing_proposed,
            parts=2,
        )

    async def _search(
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
        looked_for = rarest_words(matches, _LOOKED_FOR)
        weights = {stem(word): round(weight_of(statistics, word), 4) for word in looked_for}
        numbers: dict[int, None] = {}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = []
                if weights:
                    matching = self.index.match_words(name, scope, weights, limit)
                    tasks.append(group.create_task(matching))
                if vector is not None:
                    near = self.index.nearest(name, scope, array("f", vector).tolist(), limit)
                    tasks.append(group.create_task(near))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        for task in tasks:
            numbers |= dict.fromkeys(task.result())
        report = EngineReport("index", FORMAT)
        return ChunkProposals(frozenset(scope.parts), matches, list(numbers), report)


def _choose_index(
    parts: Sequence[StoredPart], marks: Sequence[Mark], wanted: str
) -> tuple[str, list[StoredPart]]:
    """Return the index to search and its up-to-date parts: ``wanted`` if it has any, else the index with the most."""
    whole: dict[str, dict[int, int]] = {}
    for mark in marks:
        whole.setdefault(mark.target, {})[mark.part] = mark.revision
    parts_by_index = {
        name: [part for part in parts if revisions.get(part.id) == part.revision]
        for name, revisions in whole.items()
    }
    if parts_by_index.get(wanted):
        return wanted, parts_by_index[wanted]
    return max(parts_by_index.items(), key=lambda entry: (len(entry[1]), entry[0]), default=("", []))
