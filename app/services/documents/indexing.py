"""Keep an index on another server in sync with the database, which records what the index has.

A document is recorded before it is sent, and the record is removed after the index confirmed its removal. Whatever
fails is found in the next round, by comparing these records with the documents.
"""

import asyncio
import logging
from array import array
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from app.core.contracts.engines import Embedder
from app.core.errors import UpstreamUnavailableError
from app.engines.documents.chunk_index import CHUNKS_AT_ONCE, ChunkIndex, IndexedChunk, term_weights
from app.engines.resilience import RemoteEngineError
from app.services.documents.indexed_search import index_name
from app.services.documents.retrieval import embedder_name
from app.store.database import Database
from app.store.documents.collections import StoredPart, find_unembedded, list_parts
from app.store.documents.indexed import (
    ChunkRow,
    PendingDocument,
    begin_indexing,
    count_indexed,
    finish_indexing,
    forget_index,
    forget_indexed,
    list_document_chunks,
    list_marks,
    list_pending,
    list_stale,
    list_targets,
    list_tenants_behind,
    list_tenants_of,
    set_marks,
)
from app.store.locks import only_here

_LOCK: Final = "sluice index documents"
_DOCUMENTS_AT_ONCE: Final = 100
_FAILURES: Final = 3
"""A round ends after so many tenants failed, so that a failing server is not called for all the others."""

log = logging.getLogger("sluice.documents")


class Target(NamedTuple):
    """An index: its name, the embedder of its vectors, and their dimensions (None: no vectors)."""

    name: str
    embedder: str
    dimensions: int | None


@dataclass(eq=False, slots=True)
class DocumentIndexing:
    """Brings the index up to date, whether it is empty, lacks changes or has vectors of another embedder."""

    database: Database
    index: ChunkIndex
    prefix: str
    embedder: Embedder | None
    target: Target | None = None
    counted: set[str] = field(default_factory=set)
    """Tenants whose chunks were counted in the index since this process started or their documents changed."""
    failed: set[str] = field(default_factory=set)

    async def keep(self) -> None:
        """Do all pending work; after an interruption or a failure of the server, the next call continues."""
        try:
            async with only_here(self.database, _LOCK) as mine:
                if mine:
                    await self._keep()
        except RemoteEngineError as error:
            log.warning("the index of documents failed: %s", error.reason)

    async def forget(self, tenant: str) -> None:
        """Remove what was deleted at once; if the server does not answer, ``keep`` does it later."""
        try:
            async with self.database.transaction(tenant, write=False) as tx:
                targets = sorted({target for target, _, _ in await list_marks(tx, tenant)})
            for target in targets:
                await self._remove(target, tenant, deleted=True)
        except RemoteEngineError as error:
            log.warning("documents are removed from the index later: %s", error.reason)

    async def rebuild(self) -> bool:
        """Delete all indexes and build the present one anew; False if another process is doing so already."""
        async with only_here(self.database, _LOCK) as mine:
            if mine:
                async with self.database.system_transaction(write=False) as tx:
                    targets = await list_targets(tx)
                try:
                    for name in targets:
                        await self._drop(name)
                    await self._keep()
                except RemoteEngineError as error:
                    message = f"The index failed ({error.reason}); what is missing will be indexed later."
                    raise UpstreamUnavailableError(message) from None
            return mine

    async def _keep(self) -> None:
        target = await self._choose_target()
        if target is None:
            return
        if await self.index.ensure(target.name, target.dimensions):
            async with self.database.system_transaction() as tx:
                await forget_index(tx, target.name)
        async with self.database.system_transaction(write=False) as tx:
            behind = await list_tenants_behind(tx, target.name)
            tenants_in_index = await list_tenants_of(tx, target.name)
            others = [name for name in await list_targets(tx) if name != target.name]
            moving = bool(await find_unembedded(tx, target.embedder, limit=1))
        waiting = {*behind, *(tenant for tenant in tenants_in_index if tenant not in self.counted)}
        self.counted.difference_update(behind)
        failures = 0
        for tenant in sorted(waiting, key=lambda tenant_name: (tenant_name in self.failed, tenant_name)):
            try:
                await self._update(target, tenant)
                self.failed.discard(tenant)
            except RemoteEngineError as error:
                log.warning("the index of documents failed for a tenant: %s", error.reason)
                self.failed.add(tenant)
                failures += 1
                if failures == _FAILURES:
                    return
        for name in others:
            if moving or failures:
                await self._remove_deleted(name)
            else:
                await self._drop(name)

    async def _choose_target(self) -> Target | None:
        """Return the index to keep; None while it is unknown which embedder its vectors should have."""
        if self.target is not None:
            return self.target
        async with self.database.system_transaction(write=False) as tx:
            empty = not await find_unembedded(tx, "-", limit=1) and not await list_targets(tx)
            vectors = bool(await find_unembedded(tx, "", limit=1))
        if empty:
            return None
        words = Target(index_name(self.prefix, ""), "", None)
        if self.embedder is None:
            self.target = words
            return words
        try:
            embeddings = await self.embedder.embed(["?"])
        except UpstreamUnavailableError:
            return None if vectors else words  # only words are indexed if there never was an embedder
        if embeddings.report.degraded:
            return None
        name = embedder_name(embeddings.report)
        self.target = Target(index_name(self.prefix, name), name, len(array("f", embeddings.vectors[0])))
        return self.target

    async def _update(self, target: Target, tenant: str) -> None:
        """Remove what a tenant no longer has, send what is missing, and record which parts are complete."""
        await self._remove(target.name, tenant)
        async with self.database.transaction(tenant, write=False) as tx:
            parts = [part for part in await list_parts(tx, tenant) if part.chunks]
            marks = await list_marks(tx, tenant)
        indexed = {(part, revision) for name, part, revision in marks if name == target.name}
        # Missing vectors and those of another embedder are made elsewhere; until then the database is searched.
        ready = [part for part in parts if part.embedder == target.embedder]
        for part in ready:
            if (part.id, part.revision) not in indexed:
                await self._fill(target.name, tenant, part)
        async with self.database.transaction(tenant) as tx:
            await set_marks(tx, tenant, target.name, _revisions(ready), _revisions(parts))
            expected = await count_indexed(tx, tenant, target.name)
        if await self.index.count(target.name, tenant) != expected:
            # Chunks of a request that arrived after it was abandoned, or an index that lost some: start over.
            log.warning(
                "the index of documents has not the expected number of chunks; it is built anew for a tenant"
            )
            await self._start_over(target.name, tenant)
            return
        self.counted.add(tenant)

    async def _start_over(self, name: str, tenant: str) -> None:
        async with self.database.transaction(tenant) as tx:
            await forget_index(tx, name, tenant)
        await self.index.remove(name, tenant, None)

    async def _remove(self, name: str, tenant: str, *, deleted: bool = False) -> None:
        while True:
            async with self.database.transaction(tenant, write=False) as tx:
                stale = await list_stale(tx, tenant, name, limit=_DOCUMENTS_AT_ONCE, deleted=deleted)
            if not stale:
                return
            await self.index.remove(name, tenant, stale)
            async with self.database.transaction(tenant) as tx:
                await forget_indexed(tx, tenant, name, stale)

    async def _remove_deleted(self, name: str) -> None:
        """Remove deleted documents from an older index, which is searched until the present one is complete."""
        async with self.database.system_transaction(write=False) as tx:
            tenants = await list_tenants_of(tx, name)
        for tenant in tenants:
            await self._remove(name, tenant, deleted=True)

    async def _drop(self, name: str) -> None:
        await self.index.drop(name)
        self.counted.clear()
        async with self.database.system_transaction() as tx:
            await forget_index(tx, name)

    async def _fill(self, name: str, tenant: str, part: StoredPart) -> None:
        while True:
            async with self.database.transaction(tenant) as tx:
                pending = await list_pending(tx, tenant, name, part.id, limit=_DOCUMENTS_AT_ONCE)
                if not pending:
                    return
                await begin_indexing(tx, tenant, name, part.id, pending)
            async for rows in self._batches(tenant, pending):
                await self.index.put(name, await asyncio.to_thread(_chunks, tenant, rows))
            async with self.database.transaction(tenant) as tx:
                await finish_indexing(tx, tenant, name, [document.id for document in pending])

    async def _batches(
        self, tenant: str, documents: Sequence[PendingDocument]
    ) -> AsyncIterator[list[ChunkRow]]:
        rows: list[ChunkRow] = []
        for document in documents:
            after = -1
            while True:
                async with self.database.transaction(tenant, write=False) as tx:
                    page = await list_document_chunks(
                        tx, tenant, document.id, after=after, limit=CHUNKS_AT_ONCE
                    )
                rows += page
                if len(rows) >= CHUNKS_AT_ONCE:
                    yield rows[:CHUNKS_AT_ONCE]
                    rows = rows[CHUNKS_AT_ONCE:]
                if len(page) < CHUNKS_AT_ONCE:
                    break
                after = page[-1].ordinal
        if rows:
            yield rows


def _revisions(parts: Sequence[StoredPart]) -> dict[int, int]:
    return {part.id: part.revision for part in parts}


def _chunks(tenant: str, rows: Sequence[ChunkRow]) -> list[IndexedChunk]:
    return [
        IndexedChunk(
            tenant,
            row.number,
            row.part,
            row.document,
            term_weights(row.title, row.headings, row.text),
            array("f", row.vector).tolist() if row.vector is not None else None,
        )
        for row in rows
    ]
