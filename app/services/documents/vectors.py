"""Vectors of documents that came without, or that another embedder made: made anew in the background."""

from dataclasses import dataclass
from typing import Final

from app.core.contracts.engines import Embedder
from app.core.errors import UpstreamUnavailableError
from app.core.events import Changed
from app.services.documents.retrieval import DOCUMENTS_CHANGED, embedder_name
from app.store.changes import announce
from app.store.database import Database
from app.store.documents.collection_documents import list_unembedded, set_vectors
from app.store.documents.collections import find_unembedded, mark_embedded
from app.store.documents.search import compares_vectors
from app.store.locks import only_here

_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class DocumentVectors:
    """Brings the vectors of all tenants up to the present embedder; cut off, it goes on where it was."""

    database: Database
    embedder: Embedder | None

    async def embed_missing(self) -> int:
        """Give vectors to chunks that have none, or those of another embedder; return how many got one."""
        if self.embedder is None:
            return 0
        async with only_here(self.database, "sluice embed documents") as mine:
            if not mine:
                return 0
            async with self.database.system_transaction(write=False) as tx:
                # No vectors are made to find out who makes them, where there is nothing to embed at all.
                if not await find_unembedded(tx, "-", limit=1):
                    return 0
            try:
                report = (await self.embedder.embed(["?"])).report
            except UpstreamUnavailableError:
                return 0  # words alone are searched until there is an embedder
            if report.degraded:
                return 0  # another engine stands in for the moment: its vectors would all be made again
            name = embedder_name(report)
            async with self.database.system_transaction(write=False) as tx:
                lacking = await find_unembedded(tx, name, limit=1000)
            return sum([await self._embed_part(tenant, part, name) for tenant, part in lacking])

    async def _embed_part(self, tenant: str, part: int, name: str) -> int:
        count = 0
        while self.embedder is not None:
            async with self.database.transaction(tenant) as tx:
                lacking = await list_unembedded(tx, tenant, part, name, limit=_AT_ONCE)
                if not lacking:
                    await mark_embedded(tx, tenant, part, name)
                    await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                    return count
            made = await self.embedder.embed([text for _, text in lacking])
            if embedder_name(made.report) != name:
                return count  # another engine stands in for the moment
            found = [(number, vector) for (number, _), vector in zip(lacking, made.vectors, strict=True)]
            async with self.database.transaction(tenant) as tx:
                await set_vectors(tx, tenant, name, found, vectors=await compares_vectors(tx))
            count += len(found)
        return count
