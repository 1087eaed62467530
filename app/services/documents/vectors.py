"""Make missing vectors of documents, and those of another embedder, in the background."""

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
    """Makes the vectors of all tenants with the present embedder; after an interruption it continues."""

    database: Database
    embedder: Embedder | None

    async def embed_missing(self) -> int:
        """Make vectors for chunks without one of the present embedder; return how many were made."""
        if self.embedder is None:
            return 0
        async with only_here(self.database, "sluice embed documents") as mine:
            if not mine:
                return 0
            async with self.database.system_transaction(write=False) as tx:
                # If there is nothing to embed, do not call the embedder only to learn its name.
                if not await find_unembedded(tx, "-", limit=1):
                    return 0
            try:
                report = (await self.embedder.embed(["?"])).report
            except UpstreamUnavailableError:
                return 0  # only words are searched until the embedder is available
            if report.degraded:
                return 0  # a fallback engine answers for now: its vectors would have to be replaced later
            name = embedder_name(report)
            async with self.database.system_transaction(write=False) as tx:
                parts = await find_unembedded(tx, name, limit=1000)
            return sum([await self._embed_part(tenant, part, name) for tenant, part in parts])

    async def _embed_part(self, tenant: str, part: int, name: str) -> int:
        count = 0
        while self.embedder is not None:
            async with self.database.transaction(tenant) as tx:
                chunks = await list_unembedded(tx, tenant, part, name, limit=_AT_ONCE)
                if not chunks:
                    await mark_embedded(tx, tenant, part, name)
                    await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                    return count
            embeddings = await self.embedder.embed([text for _, text in chunks])
            if embedder_name(embeddings.report) != name:
                return count  # a fallback engine answers for now
            vectors = [
                (number, vector) for (number, _), vector in zip(chunks, embeddings.vectors, strict=True)
            ]
            async with self.database.transaction(tenant) as tx:
                await set_vectors(tx, tenant, name, vectors, vectors=await compares_vectors(tx))
            count += len(vectors)
        return count
