"""Indexes that search documents beside the database: on another server, or beside the SQLite file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.core.contracts.engines import ChunkProposals, Embedder
from app.engines.documents.chunk_index import ChunkIndex, IndexOptions
from app.engines.documents.opensearch import OpenSearchIndex
from app.engines.documents.qdrant import QdrantIndex
from app.engines.documents.tantivy_index import IndexShelf
from app.engines.resilience import EngineFallback, Observer
from app.services.background import Job
from app.services.documents.indexed_search import IndexedSearch
from app.services.documents.indexing import DocumentIndexing
from app.services.documents.side_index import SideIndex
from app.services.documents.vector_indexes import VECTOR_INDEX_CHUNKS, VectorIndexes
from app.store.database import Database

_BESIDE_EVERY_S: Final = 60.0
_ELSEWHERE_EVERY_S: Final = 5.0
"""How often an index on another server is updated; until then the database itself is searched."""


@dataclass(frozen=True, slots=True)
class DocumentIndexes:
    """What is searched beside the tables, and what keeps it up to date."""

    side: SideIndex | None = None
    search: IndexedSearch | None = None
    indexing: DocumentIndexing | None = None
    vectors: VectorIndexes | None = None

    @classmethod
    def beside(cls, database: Database, file: Path | None, chunks: int) -> "DocumentIndexes":
        """Return the index for many documents beside the SQLite file, or those of vectors inside PostgreSQL.

        ``chunks``: above so many, a tenant's vectors get one.
        """
        if file is None:
            return cls(vectors=VectorIndexes(database, chunks))
        return cls(SideIndex(database, IndexShelf(file.with_name(f"{file.name}-documents"))))

    @classmethod
    def elsewhere(
        cls, database: Database, embedder: Embedder, options: IndexOptions, observe: Observer
    ) -> "DocumentIndexes":
        """Return an index on another server."""
        index: ChunkIndex = QdrantIndex(options) if options.kind == "qdrant" else OpenSearchIndex(options)
        guard: EngineFallback[ChunkProposals] = EngineFallback("documents", options.rules, _same, observe)
        indexing = DocumentIndexing(database, index, options.prefix, embedder)
        return cls(None, IndexedSearch(index, guard, options.prefix), indexing)

    @property
    def compared_most(self) -> int:
        """Return above how many readable chunks an index of the database is asked for vectors."""
        return self.vectors.least if self.vectors is not None else VECTOR_INDEX_CHUNKS

    @property
    def jobs(self) -> list[Job]:
        """Return the background jobs."""
        if self.indexing is not None:
            return [Job("index-documents", _ELSEWHERE_EVERY_S, self.indexing.keep)]
        if self.vectors is not None:
            return [self.vectors.job]
        return [Job("index-documents", _BESIDE_EVERY_S, self.side.keep)] if self.side is not None else []

    async def close(self) -> None:
        """Close every connection."""
        if self.search is not None:
            await self.search.index.close()


def _same(primary: ChunkProposals, fallback: ChunkProposals) -> bool:
    return primary.numbers == fallback.numbers
