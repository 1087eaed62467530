"""Taking documents in: at once where they are small, else in the background, where a restart loses none."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_FAILED, OUTCOME_OK
from app.core.background import meanwhile
from app.core.catalog.collections import DocumentDetails
from app.core.contracts.engines import Embedder
from app.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    OverloadedError,
    ServiceError,
    StoreUnavailableError,
    TooLargeError,
)
from app.core.events import Changed
from app.core.ids import uuid7
from app.core.request import RequestInfo
from app.engines.documents.reader import DocumentReader
from app.services.audit.audit import AuditService
from app.services.documents.chunking import RULES, Progress, ReadDocument, read_document
from app.services.documents.collections import require_collection
from app.services.documents.retrieval import DOCUMENTS_CHANGED
from app.store.changes import announce
from app.store.database import Database
from app.store.documents.collection_documents import (
    CollectionTransaction,
    StoredDocument,
    find_document,
    write_document,
)
from app.store.documents.collections import count_held
from app.store.documents.ingestions import (
    StoredIngestion,
    add_ingestion,
    claim_ingestion,
    count_waiting,
    find_ingestion,
    find_waiting,
    finish_ingestion,
    list_ingestions,
    note_progress,
    remove_finished,
)
from app.store.documents.search import compares_vectors, scrub_index

INLINE_BYTES: Final = 64 * 1024
"""Larger documents, and those that ask for it, are read in the background."""
MAX_DOCUMENTS: Final = 1_000_000
MAX_CHUNKS_HELD: Final = 5_000_000
MAX_WAITING: Final = 1000
_ATTEMPTS: Final = 3
_SILENT: Final = timedelta(minutes=2)
_KEPT: Final = timedelta(days=7)
_NOTED_EVERY: Final = 64
_IDLE_S: Final = 5.0

IngestionInfo = StoredIngestion
"""A document that is read in the background."""

log = logging.getLogger("sluice.documents")


class Ingested(NamedTuple):
    """What became of a document: stored now (``document``), or waiting to be read (``waiting``)."""

    outcome: Literal["created", "updated", "unchanged", "queued"]
    document: StoredDocument | None
    waiting: StoredIngestion | None


class Submitted(NamedTuple):
    """A document as it was handed over."""

    collection: str
    details: DocumentDetails
    body: bytes
    media_type: str


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class IngestionService:
    """Use cases of those who bring documents, and the work that goes on behind them."""

    database: Database
    audit: AuditService
    embedder: Embedder | None
    now: Callable[[], datetime] = _now
    more: asyncio.Event = field(default_factory=asyncio.Event)
    replaced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the files may still hold words of documents that were replaced."""
    reader: DocumentReader = field(default_factory=DocumentReader)

    async def add(
        self,
        caller: Caller,
        submitted: Submitted,
        request: RequestInfo | None = None,
        *,
        background: bool | None = None,
        progress: Progress | None = None,
    ) -> Ingested:
        """Store a document, in the place of an older one of the same collection, source and external id.

        The same content and details again change nothing. ``background`` None lets the size decide.
        """
        async with self.audit.refusals(caller, "documents.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                held = await self._held(tx, caller.tenant, submitted)
            if held is not None and held.digest == _digest(submitted):
                return await self._unchanged(caller, held, request)
            if len(submitted.body) > INLINE_BYTES if background is None else background:
                return await self._queued(caller, submitted, request)
            read = await self._read(submitted, progress)
            return await self._stored(caller, submitted, read, request)

    async def ingestion(
        self, caller: Caller, collection: str, id_: str, request: RequestInfo | None = None
    ) -> StoredIngestion:
        """Return how far a document is that is read in the background; finished ones are kept for a week."""
        async with self.audit.refusals(caller, "ingestions.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                found = await find_ingestion(tx, caller.tenant, collection, id_)
            if found is None:
                raise NotFoundError("There is no such ingestion in this collection.")
            return found

    async def ingestions(
        self,
        caller: Caller,
        collection: str,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[StoredIngestion]:
        """Return the ingestions of a collection in the order of their coming."""
        async with self.audit.refusals(caller, "ingestions.list", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                await require_collection(tx, caller.tenant, collection)
                return await list_ingestions(tx, caller.tenant, collection, after=after, limit=limit)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read what waits, meanwhile; every process takes its share."""
        async with meanwhile(self._run(), name="ingestion"):
            yield

    async def work(self) -> bool:
        """Read one document that waits; return whether there was one."""
        async with self.database.system_transaction(write=False) as tx:
            found = await find_waiting(tx, silent_since=self.now() - _SILENT)
        if found is None:
            return False
        async with self.database.transaction(found.tenant) as tx:
            body = await claim_ingestion(tx, found, self.now())
        if body is not None:
            await self._finish(found, body)
        return True

    async def purge(self) -> None:
        """Forget ingestions that ended a while ago, and what replaced documents left in files."""
        async with self.database.system_transaction() as tx:
            await remove_finished(tx, self.now() - _KEPT)
        if self.replaced.is_set():
            self.replaced.clear()
            await scrub_index(self.database)

    async def _run(self) -> None:
        while True:
            self.more.clear()
            try:
                while await self.work():
                    pass
            except (StoreUnavailableError, ServiceError) as error:
                log.warning("reading documents failed: %s", type(error).__name__)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.more.wait(), _IDLE_S)

    async def _finish(self, found: StoredIngestion, body: bytes) -> None:
        """Read a claimed document; what it cannot be read for is its result, in words without content."""
        caller = Caller(found.tenant, found.created_by, frozenset({Role.OPERATOR}))
        submitted = Submitted(
            found.collection,
            DocumentDetails.model_validate(found.document["details"]),
            body,
            str(found.document["media_type"]),
        )
        try:
            _check_attempts(found)
            read = await self._read(submitted, self._noting(found))
            await self._stored(caller, submitted, read, None, waiting=found)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - a document that breaks a parser must not stop the others
            code, message = (error.code, error.message) if isinstance(error, ServiceError) else _UNKNOWN
            if not isinstance(error, ServiceError):
                log.error("reading a document failed: %s", type(error).__name__)  # noqa: TRY400 - no content in logs
            async with self.database.transaction(found.tenant) as tx:
                await finish_ingestion(tx, found.tenant, found.id, "failed", f"{code}: {message}", self.now())
                details = {"collection": found.collection, "ingestion": found.id}
                event = self.audit.new_event(
                    caller, "documents.put", OUTCOME_FAILED, None, error_code=code, details=details
                )
                await self.audit.record_with(tx, event)

    def _noting(self, found: StoredIngestion) -> Progress:
        async def note(done: int, total: int) -> None:
            if done % _NOTED_EVERY == 0:
                async with self.database.transaction(found.tenant) as tx:
                    await note_progress(tx, found.tenant, found.id, done=done, total=total, moment=self.now())

        return note

    async def _held(
        self, tx: CollectionTransaction, tenant: str, submitted: Submitted
    ) -> StoredDocument | None:
        await require_collection(tx, tenant, submitted.collection)
        named = submitted.details.source, submitted.details.external_id
        held = await find_document(tx, tenant, submitted.collection, named=named)
        documents, chunks = await count_held(tx, tenant)
        if held is None and (documents >= MAX_DOCUMENTS or chunks >= MAX_CHUNKS_HELD):
            raise TooLargeError(
                "This tenant holds as many documents as it may; delete some first.",
                details={"limit": "documents", "maximum": MAX_DOCUMENTS},
            )
        return held

    async def _unchanged(self, caller: Caller, held: StoredDocument, request: RequestInfo | None) -> Ingested:
        details = {"collection": held.collection, "document": held.id, "changed": False}
        await self.audit.record(
            self.audit.new_event(caller, "documents.put", OUTCOME_OK, request, details=details)
        )
        return Ingested("unchanged", held, None)

    async def _queued(self, caller: Caller, submitted: Submitted, request: RequestInfo | None) -> Ingested:
        moment = self.now()
        document = {
            "details": submitted.details.model_dump(mode="json"),
            "media_type": submitted.media_type,
            "bytes": len(submitted.body),
        }
        waiting = StoredIngestion(
            *(caller.tenant, uuid7().hex, submitted.collection, document, "queued", 0, 0, 0, None),
            *(moment, caller.key_id, moment),
        )
        async with self.database.transaction(caller.tenant) as tx:
            if await count_waiting(tx, caller.tenant) >= MAX_WAITING:
                raise OverloadedError(
                    "Too many documents wait to be read; send more when some are done.", retry_after_s=10
                )
            await add_ingestion(tx, waiting, submitted.body)
            details = {"collection": submitted.collection, "ingestion": waiting.id}
            event = self.audit.new_event(caller, "documents.queue", OUTCOME_OK, request, details=details)
            await self.audit.record_with(tx, event)
        self.more.set()
        return Ingested("queued", None, waiting)

    async def _read(self, submitted: Submitted, progress: Progress | None) -> ReadDocument:
        return await read_document(
            *(submitted.details, submitted.body, submitted.media_type, self.embedder, progress),
            reader=self.reader,
        )

    async def _stored(
        self,
        caller: Caller,
        submitted: Submitted,
        read: ReadDocument,
        request: RequestInfo | None,
        *,
        waiting: StoredIngestion | None = None,
    ) -> Ingested:
        tenant, moment = caller.tenant, self.now()

        async def write() -> tuple[StoredDocument, bool]:
            async with self.database.transaction(tenant) as tx:
                held = await self._held(tx, tenant, submitted)
                if waiting is not None:
                    await _check_wanted(tx, waiting, held)
                document = _stored_document(submitted, read, held, moment)
                vectors = bool(read.embedder) and await compares_vectors(tx)
                await write_document(tx, tenant, document, read.chunks, read.embedder, vectors=vectors)
                if waiting is not None:
                    await finish_ingestion(tx, tenant, waiting.id, "done", document.id, moment)
                details = {"collection": document.collection, "document": document.id}
                numbers = {"chunks": document.chunks, "changed": True, "embedded": bool(read.embedder)}
                event = self.audit.new_event(
                    caller, "documents.put", OUTCOME_OK, request, details=details | numbers
                )
                await self.audit.record_with(tx, event)
                await announce(tx, Changed(DOCUMENTS_CHANGED, tenant))
                return document, held is None

        document, created = await self.database.retried(write)
        if not created:
            self.replaced.set()
        return Ingested("created" if created else "updated", document, None)


_UNKNOWN: Final = ("internal_error", "The document could not be read; the log says more.")


def _check_attempts(found: StoredIngestion) -> None:
    if found.attempts >= _ATTEMPTS:
        raise InvalidArgumentsError("The service ended each time when it read this document; split it.")


async def _check_wanted(
    tx: CollectionTransaction, waiting: StoredIngestion, held: StoredDocument | None
) -> None:
    """Refuse to store what was deleted, or overtaken by newer content, while it was read."""
    found = await find_ingestion(tx, waiting.tenant, waiting.collection, waiting.id)
    if found is None:
        raise NotFoundError("The document was deleted while it was read.")
    if held is not None and held.updated > waiting.created:
        raise ConflictError("Newer content of the document was stored while this was read.")


def _digest(submitted: Submitted) -> bytes:
    return submitted.details.digest(submitted.body, submitted.media_type, RULES)


def _stored_document(
    submitted: Submitted, read: ReadDocument, held: StoredDocument | None, moment: datetime
) -> StoredDocument:
    details = submitted.details
    return StoredDocument(
        id=held.id if held is not None else uuid7().hex,
        collection=submitted.collection,
        source=details.source,
        external_id=details.external_id,
        title=read.title,
        uri=details.uri,
        written=details.date,
        media_type=read.media_type,
        digest=_digest(submitted),
        access=details.access,
        chunks=len(read.chunks),
        words=read.words,
        characters=read.characters,
        created=held.created if held is not None else moment,
        updated=moment,
    )
