"""Documents of a test in an index on a server of ours, beside the same documents without one."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from app.core.contracts.engines import EngineReport, RetrievalQuery
from app.engines.documents.chunk_index import IndexOptions
from app.engines.resilience import Rules, unobserved
from app.services.documents.collections import CollectionService
from app.services.documents.indexes import DocumentIndexes
from app.services.documents.indexing import DocumentIndexing
from app.services.documents.retrieval import RetrievalService
from app.store.database import Database
from tests.factories import PATIENT
from tests.fakes import FakeEmbedder
from tests.integration.collection_setup import Library, open_library
from tests.integration.index_server import IndexServer, serving
from tests.integration.opensearch_server import OpenSearchServer
from tests.integration.qdrant_server import QdrantServer

QUESTION = "Who approved the budget of the zeppelin in March?"
WORDS = ("budget", "zeppelin", "weather", "hiring", "roadmap", "contract", "launch", "approved", "March")
READERS = ("role:invoker", "role:auditor", "key:11111111", "key:22222222")


@dataclass(frozen=True)
class Indexed:
    """Two retrieval services on one database: with the index, and without."""

    server: IndexServer
    with_index: Library
    without: Library
    indexing: DocumentIndexing

    async def both(self, question: str, principals: frozenset[str] = frozenset({"*"})) -> tuple[Any, Any]:
        query = RetrievalQuery(self.without.tenant, principals, question, None, 30)
        return (
            await self.with_index.retrieval.retrieve([query]),
            await self.without.retrieval.retrieve([query]),
        )

    async def report(self) -> EngineReport:
        return (await self.both(QUESTION))[0].report

    def names(self) -> list[str]:
        server = self.server
        if isinstance(server, QdrantServer):
            return sorted(server.collections)
        assert isinstance(server, OpenSearchServer)
        return sorted(server.indexes)

    def documents(self) -> set[str]:
        """Return the ids of the documents that the server holds anything of."""
        server = self.server
        if isinstance(server, QdrantServer):
            points = [one for name in server.collections for one in server.points[name].values()]
            return {one["payload"]["document"] for one in points}
        assert isinstance(server, OpenSearchServer)
        return {one["document"] for name in server.indexes for one in server.documents[name].values()}


def server_of(kind: str) -> IndexServer:
    return QdrantServer() if kind == "qdrant" else OpenSearchServer(kind=kind)


def indexes_of(
    database: Database, server: IndexServer, kind: str, embedder: Any, timeout_s: float = 20
) -> DocumentIndexes:
    rules = Rules(timeout_s, failures=3, cool_down_s=60)
    options = IndexOptions(server.url, kind, api_key="k" if kind != "opensearch" else None, rules=rules)
    return DocumentIndexes.elsewhere(database, embedder, options, unobserved)


async def indexed_on(url: str, tenant: str, kind: str, timeout_s: float = 20) -> AsyncIterator[Indexed]:
    database, server, embedder = Database(url, patience=PATIENT), server_of(kind), FakeEmbedder()
    async with serving(server), open_library(database, tenant, embedder) as library:
        indexes = indexes_of(database, server, kind, embedder, timeout_s)
        assert indexes.indexing is not None
        retrieval = RetrievalService(database, embedder, None, indexes.search)
        collections = CollectionService(database, library.vault.audit, side=indexes.indexing)
        other = Library(**{**vars(library), "retrieval": retrieval, "collections": collections})
        await library.make()
        yield Indexed(server, other, library, indexes.indexing)
        await indexes.close()
    await database.close()


async def fill(library: Library, count: int = 18) -> dict[str, str]:
    """Add documents of many readers; return the ids by title."""
    chance = random.Random(11)
    ids = {}
    for number in range(count):
        own = chance.sample(READERS, chance.choice((0, 0, 1, 2)))
        text = f"{' '.join(chance.choices(WORDS, k=14))}. Number {number} says so."
        added = await library.add(f"d{number}", text, title=f"D{number} {chance.choice(WORDS)}", access=own)
        assert added.document is not None
        ids[added.document.title] = added.document.id
    return ids


def asks(server: IndexServer) -> list[Any]:
    return [one for one in server.seen if one.path.endswith(("_search", "points/query"))]
