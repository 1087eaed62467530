"""Collections of documents: made and removed by operators, who see what documents there are and not what they say."""

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
"""What is known of a document besides its text."""


class SourceCount(NamedTuple):
    """How many documents a collection has of a source."""

    source: str
    documents: int


class CollectionInfo(NamedTuple):
    """A collection and how much it holds; ``embedded`` tells whether every chunk has a vector."""

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
        """Remove what was deleted of a tenant's documents."""


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
        """Return the collections of the caller's tenant by name, those behind ``after``."""
        async with self.audit.refusals(caller, "collections.list", request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            stored = await list_collections(tx, caller.tenant, after=after, limit=limit)
            parts = await list_parts(tx, caller.tenant, collections=[each.name for each in stored])
        return [_info(each, parts) for each in stored]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> CollectionInfo:
        """Return one collection, or raise NotFoundError."""
        async with self.audit.refusals(caller, "collections.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                return await _described(tx, caller.tenant, name)

    async def put(
        self, caller: Caller, definition: CollectionDefinition, request: RequestInfo | None = None
    ) -> tuple[CollectionInfo, bool]:
        """Make a collection, or replace who may read it; return it and whether it is new."""
        tenant, moment = caller.tenant, self.now()
        async with self.audit.refusals(caller, "collections.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(tenant) as tx:
                held = {one.name for one in await list_collections(tx, tenant)}
                if definition.name not in held and len(held) >= MAX_COLLECTIONS:
                    raise TooLargeError(
                        f"A tenant has at most {MAX_COLLECTIONS} collections.",
                        details={"limit": "collections", "maximum": MAX_COLLECTIONS},
                    )
                document = definition.model_dump(mode="json", exclude={"name"})
                stored = StoredCollection(definition.name, document, moment, caller.key_id, moment)
                created = await put_collection(tx, tenant, stored)
                details = {"collection": definition.name, "readers": len(definition.access)}
                await self._record(tx, caller, "collections.put", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                return await _described(tx, tenant, definition.name), created

    async def delete(self, caller: Caller, name: str, request: RequestInfo | None = None) -> None:
        """Remove a collection with all its documents, their index and their vectors, in every process."""
        async with self.audit.refusals(caller, "collections.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                found = await _described(tx, caller.tenant, name)
                await remove_collection(tx, caller.tenant, name)
                details = {"collection": name, "documents": found.documents, "chunks": found.chunks}
                await self._record(tx, caller, "collections.delete", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, caller.tenant))
        await self._scrub(caller.tenant)

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
        """Return the documents of a collection by source and external id, those behind ``after``."""
        async with self.audit.refusals(caller, "documents.list", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                await require_collection(tx, caller.tenant, name)
                return await list_documents(tx, caller.tenant, name, source=source, after=after, limit=limit)

    async def document(
        self, caller: Caller, name: str, id_: str, request: RequestInfo | None = None
    ) -> StoredDocument:
        """Return what is known of a document besides its text, or raise NotFoundError."""
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
                found = await _named_document(tx, caller.tenant, name, id_)
                await remove_document(tx, caller.tenant, found)
                await remove_waiting(tx, caller.tenant, name, found.source, found.external_id)
                details = {"collection": name, "document": id_, "chunks": found.chunks}
                await self._record(tx, caller, "documents.delete", request, details)
                await announce(tx, Changed(DOCUMENTS_CHANGED, caller.tenant))
        await self._scrub(caller.tenant)

    async def _scrub(self, tenant: str) -> None:
        if self.side is not None:
            await self.side.forget(tenant)
        await scrub_index(self.database)

    async def _record(
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
    found = await find_collection(tx, tenant, name)
    if found is None:
        raise NotFoundError("There is no such collection.")
    return found


async def _described(tx: CollectionTransaction, tenant: str, name: str) -> CollectionInfo:
    found = await require_collection(tx, tenant, name)
    return _info(found, await list_parts(tx, tenant, collections=[name]))


async def _named_document(tx: CollectionTransaction, tenant: str, name: str, id_: str) -> StoredDocument:
    found = await find_document(tx, tenant, name, id_=id_)
    if found is None:
        raise NotFoundError("There is no such document in this collection.")
    return found


def _info(stored: StoredCollection, parts: Sequence[StoredPart]) -> CollectionInfo:
    mine = [part for part in parts if part.collection == stored.name]
    sources: dict[str, int] = {}
    for part in mine:
        sources[part.source] = sources.get(part.source, 0) + part.documents
    return CollectionInfo(
        CollectionDefinition.model_validate({"name": stored.name, **stored.document}),
        [SourceCount(source, count) for source, count in sorted(sources.items())],
        sum(sources.values()),
        sum(part.chunks for part in mine),
        len({part.embedder for part in mine}) <= 1 and all(part.embedder for part in mine),
        stored.created,
        stored.created_by,
        stored.updated,
    )
