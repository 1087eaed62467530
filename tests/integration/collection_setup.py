"""Collections wired for a test: services on a migrated database, and the shortest way to fill and ask them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from app.core.access import Caller
from app.core.catalog.collections import CollectionDefinition, DocumentDetails
from app.core.contracts.engines import Embedder, RetrievalQuery, RetrievedPassage
from app.core.errors import ConflictError
from app.services.access.access import HOST
from app.services.access.tenants import TenantService
from app.services.documents.collections import CollectionService
from app.services.documents.ingestion import Ingested, IngestionService, Submitted
from app.services.documents.retrieval import RetrievalService
from app.services.documents.vectors import DocumentVectors
from app.store.changes import Changes
from app.store.database import Database
from tests.factories import Vault, access_service, caller_of, open_vault
from tests.fakes import FakeEmbedder

EVERYBODY = frozenset({"*"})


@dataclass(frozen=True)
class Library:
    """The services of one process in one tenant."""

    database: Database
    vault: Vault
    tenant: str
    collections: CollectionService
    ingestion: IngestionService
    retrieval: RetrievalService
    vectors: DocumentVectors

    @property
    def caller(self) -> Caller:
        return caller_of(self.tenant)

    async def make(self, name: str = "notes", access: Sequence[str] = ("*",)) -> None:
        definition = CollectionDefinition(name=name, access=tuple(access))
        await self.collections.put(self.caller, definition)

    async def add(
        self,
        name: str,
        text: str,
        *,
        collection: str = "notes",
        background: bool | None = None,
        media_type: str = "text/markdown",
        **details: object,
    ) -> Ingested:
        said = DocumentDetails.model_validate({"external_id": name, **details})
        submitted = Submitted(collection, said, text.encode(), media_type)
        return await self.ingestion.add(self.caller, submitted, background=background)

    async def ask(
        self, text: str, principals: frozenset[str] = EVERYBODY, **options: object
    ) -> list[RetrievedPassage]:
        query = RetrievalQuery(self.tenant, principals, text, **options)  # type: ignore[arg-type]
        return (await self.retrieval.retrieve([query])).passages[0]

    async def titles(self, text: str, principals: frozenset[str] = EVERYBODY, **options: object) -> list[str]:
        return [one.title for one in await self.ask(text, principals, **options)]


@asynccontextmanager
async def open_library(
    database: Database,
    tenant: str,
    embedder: Embedder | None = FakeEmbedder(),  # noqa: B008 - it has no state
) -> AsyncIterator[Library]:
    """Return the services of a new process on ``database``; the tenant is made if need be."""
    async with open_vault(database) as vault, Changes(database).running() as changes:
        with suppress(ConflictError):  # another process of the test made it
            await TenantService(access_service(database, vault.audit)).create(HOST, tenant)
        retrieval = RetrievalService(database, embedder)
        unsubscribe = changes.subscribe(retrieval.changed)
        yield Library(
            *(database, vault, tenant, CollectionService(database, vault.audit)),
            *(IngestionService(database, vault.audit, embedder), retrieval),
            DocumentVectors(database, embedder),
        )
        unsubscribe()
