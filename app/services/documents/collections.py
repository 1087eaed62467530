"""Collections of documents: created and removed by operators, who see which documents exist, never their text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.collections import MAX_COLLECTIONS, CollectionDefinition
from app.core.errors import NotFoundError, TooLargeError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.documents.retrieval import DOCUMENTS_CHANGED
from app.store.changes import announce
from app.store.database import Database
from app.store.documents.collection_documents import (
    CollectionTransaction,
    StoredDocument,
    find_document,
    list_documents,
    remove_document,
)
from app.store.documents.collections import (
    StoredCollection,
    StoredPart,
    find_collection,
    list_collections,
    list_parts,
    put_collection,
    remove_collection,
)
from app.store.documents.ingestions import remove_waiting
from app.store.documents.search import scrub_index

DocumentInfo = StoredDocument
"""What is stored about a document besides its text."""


class SourceCount(NamedTuple):
    """The number of a collection's documents from one source."""

    source: str
    documents: int


class CollectionInfo(NamedTuple):
    """A collection and its size; ``embedded``: every chunk has a vector."""

    definition: CollectionDefinition
    sources: list[SourceCount]
    documents: int
    chunks: int
    embedded: bool
    created: datetime
    created_by: str
    updated: datetime


class Forgetting(Protocol):
    """An index beside the database, which must not keep what was deleted."""

    async def forget(self, tenant: str) -> None:
        """Remove a tenant's deleted documents from the index."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class CollectionService:
    """Use cases of operators on collections and on the documents in them."""

    database: Database
    audit: AuditService
    now: Callable[[], datetime] = _now
    side: Forgetting | None = None

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[CollectionInfo]:
        """Return the collections of the caller's tenant ordered by name, those after ``after``."""
        async with self.audit.refusals(caller, "collections.list", request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            stored = await list_collections(tx, caller.tenant, after=after, limit=limit)
            parts = await list_parts(
                tx, caller.tenant, collections=[collection.name for collection in stored]
            )
        return [_info(collection, parts) for collection in stored]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> CollectionInfo:
        """Return one collection, or raise NotFoundError."""
        async with self.audit.refusals(caller, "collections.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                return await _described(tx, caller.tenant, name)

    async def put(
        self, caller: Caller, definition: CollectionDefinition, request: RequestInfo | None = None
    ) -> tuple[CollectionInfo, bool]:
        """Create a collection, or replace its readers; return it and whether it is new."""
        tenant, moment = caller.tenant, self.now()
        async with self.audit.refusals(caller, "collections.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(tenant) as tx:
                existing = {collection.name for collection in await list_collections(tx, tenant)}
                if definition.name not in existing and len(existing) >= MAX_COLLECTIONS:
                    raise TooLargeError(
                        f"A tenant has at most {MAX_COLLECTIONS} collections.",
                        details={"limit": "collections", "maximum": MAX_COLLECTIONS},
                    )
                document = definition.model_dump(mode="json", exclude={"name"})
                stored = StoredCollection(definition.name, document, moment, caller.key_id, moment)
                created = await put_collection(tx, tenant, stored)
                details = {"collection": definition.name, "readers": len(definition.access)}
                await self._record_change(tx, caller, "collections.put", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                return await _described(tx, tenant, definition.name), created

    async def delete(self, caller: Caller, name: str, request: RequestInfo | None = None) -> None:
        """Remove a collection with all its documents, their index and their vectors, in every process."""
        async with self.audit.refusals(caller, "collections.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                collection = await _described(tx, caller.tenant, name)
                await remove_collection(tx, caller.tenant, name)
                details = {"collection": name, "documents": collection.documents, "chunks": collection.chunks}
                await self._record_change(tx, caller, "collections.delete", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, caller.tenant))
        await self._remove_from_indexes(caller.tenant)

    async def documents(
        self,
        caller: Caller,
        name: str,
        request: RequestInfo | None = None,
        *,
        source: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int = 100,
    ) -> Sequence[StoredDocument]:
        """Return the documents of a collection ordered by source and external id, those after ``after``."""
        async with self.audit.refusals(caller, "documents.list", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                await require_collection(tx, caller.tenant, name)
                return await list_documents(tx, caller.tenant, name, source=source, after=after, limit=limit)

    async def document(
        self, caller: Caller, name: str, id_: str, request: RequestInfo | None = None
    ) -> StoredDocument:
        """Return what is stored about a document besides its text, or raise NotFoundError."""
        async with self.audit.refusals(caller, "documents.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                return await _named_document(tx, caller.tenant, name, id_)

    async def delete_document(
        self, caller: Caller, name: str, id_: str, request: RequestInfo | None = None
    ) -> None:
        """Remove a document with its index and its vectors, in every process."""
        async with self.audit.refusals(caller, "documents.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                document = await _named_document(tx, caller.tenant, name, id_)
                await remove_document(tx, caller.tenant, document)
                await remove_waiting(tx, caller.tenant, name, document.source, document.external_id)
                details = {"collection": name, "document": id_, "chunks": document.chunks}
                await self._record_change(tx, caller, "documents.delete", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, caller.tenant))
        await self._remove_from_indexes(caller.tenant)

    async def _remove_from_indexes(self, tenant: str) -> None:
        if self.side is not None:
            await self.side.forget(tenant)
        await scrub_index(self.database)

    async def _record_change(
        self,
        tx: CollectionTransaction,
        caller: Caller,
        action: str,
        request: RequestInfo | None,
        details: Mapping[str, Any],
    ) -> None:
        event = self.audit.new_event(caller, action, OUTCOME_OK, request, details=dict(details))
        await self.audit.record_with(tx, event)


async def require_collection(tx: CollectionTransaction, tenant: str, name: str) -> StoredCollection:
    """Return a collection, or raise NotFoundError."""
    collection = await find_collection(tx, tenant, name)
    if collection is None:
        raise NotFoundError("There is no such collection.")
    return collection


async def _described(tx: CollectionTransaction, tenant: str, name: str) -> CollectionInfo:
    collection = await require_collection(tx, tenant, name)
    return _info(collection, await list_parts(tx, tenant, collections=[name]))


async def _named_document(tx: CollectionTransaction, tenant: str, name: str, id_: str) -> StoredDocument:
    document = await find_document(tx, tenant, name, id_=id_)
    if document is None:
        raise NotFoundError("There is no such document in this collection.")
    return document


def _info(stored: StoredCollection, parts: Sequence[StoredPart]) -> CollectionInfo:
    own_parts = [part for part in parts if part.collection == stored.name]
    sources: dict[str, int] = {}
    for part in own_parts:
        sources[part.source] = sources.get(part.source, 0) + part.documents
    return CollectionInfo(
        CollectionDefinition.model_validate({"name": stored.name, **stored.document}),
        [SourceCount(source, count) for source, count in sorted(sources.items())],
        sum(sources.values()),
        sum(part.chunks for part in own_parts),
        len({part.embedder for part in own_parts}) <= 1 and all(part.embedder for part in own_parts),
        stored.created,
        stored.created_by,
        stored.updated,
    )
