"""Ingest documents: small ones at once, others in the background, where a restart loses none."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
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
from app.services.documents.chunking import RULES, Progress, Read, ReadDocument, read_document
from app.services.documents.collections import require_collection
from app.services.documents.retrieval import DOCUMENTS_CHANGED
from app.services.documents.turns import FairReader, Turns
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
    finish_ingestion,
    list_ingestions,
    list_oldest_waiting,
    note_progress,
    remove_finished,
)
from app.store.documents.search import compares_vectors, scrub_index

INLINE_BYTES: Final = 64 * 1024
"""Larger documents are read in the background, and smaller ones on request."""
MAX_DOCUMENTS: Final = 1_000_000
MAX_CHUNKS_HELD: Final = 5_000_000
MAX_WAITING: Final = 1000
LONGEST_S: Final = 900
"""Time limit of a document that is read in the background, with its vectors."""
_AT_ONCE: Final = 2
"""Documents that a process reads in the background at once, each of another tenant."""
_ATTEMPTS: Final = 3
_SILENT: Final = timedelta(minutes=2)
_KEPT: Final = timedelta(days=7)
_NOTED_EVERY: Final = 64
_IDLE_S: Final = 5.0

IngestionInfo = StoredIngestion
"""A document that is read in the background."""

log = logging.getLogger("sluice.documents")


class Ingested(NamedTuple):
    """The result of submitting a document: stored now (``document``), or waiting to be read (``waiting``)."""

    outcome: Literal["created", "updated", "unchanged", "queued"]
    document: StoredDocument | None
    waiting: StoredIngestion | None


class Submitted(NamedTuple):
    """A document as it was submitted."""

    collection: str
    details: DocumentDetails
    body: bytes
    media_type: str


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class IngestionService:
    """The use cases of submitting documents, and reading them in the background."""

    database: Database
    audit: AuditService
    embedder: Embedder | None
    now: Callable[[], datetime] = _now
    more: asyncio.Event = field(default_factory=asyncio.Event)
    replaced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while the database files may still have words of replaced documents."""
    reader: DocumentReader = field(default_factory=DocumentReader)
    """Reads in the background, where turns bound how much is read at once."""
    prompt: FairReader = field(default_factory=lambda: FairReader(DocumentReader()))
    """Reads what a caller waits for."""
    turns: Turns = field(default_factory=Turns)

    async def add(
        self,
        caller: Caller,
        submitted: Submitted,
        request: RequestInfo | None = None,
        *,
        background: bool | None = None,
        progress: Progress | None = None,
    ) -> Ingested:
        """Store a document, replacing an older one of the same collection, source and external id.

        The same content and details change nothing. With ``background`` None the size decides.
        """
        async with self.audit.refusals(caller, "documents.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                stored = await self._check_limits(tx, caller.tenant, submitted)
            if stored is not None and stored.digest == _digest(submitted):
                return await self._record_unchanged(caller, stored, request)
            if len(submitted.body) > INLINE_BYTES if background is None else background:
                return await self._queue(caller, submitted, request)
            read = await self._read(submitted, progress, partial(self.prompt.read, caller.tenant))
            return await self._store(caller, submitted, read, request)

    async def ingestion(
        self, caller: Caller, collection: str, id_: str, request: RequestInfo | None = None
    ) -> StoredIngestion:
        """Return the progress of a document that is read in the background; finished ones are kept for a week."""
        async with self.audit.refusals(caller, "ingestions.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                ingestion = await find_ingestion(tx, caller.tenant, collection, id_)
            if ingestion is None:
                raise NotFoundError("There is no such ingestion in this collection.")
            return ingestion

    async def ingestions(
        self,
        caller: Caller,
        collection: str,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[StoredIngestion]:
        """Return the ingestions of a collection in the order in which they were submitted."""
        async with self.audit.refusals(caller, "ingestions.list", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                await require_collection(tx, caller.tenant, collection)
                return await list_ingestions(tx, caller.tenant, collection, after=after, limit=limit)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read waiting documents while the body runs; every process takes its share."""
        async with meanwhile(self._run(), name="ingestion"):
            yield

    async def work(self) -> bool:
        """Read one waiting document, of the tenant whose turn it is; return whether there was one."""
        async with self.database.system_transaction(write=False) as tx:
            oldest = await list_oldest_waiting(tx, silent_since=self.now() - _SILENT)
        tenant = self.turns.choose(oldest)
        if tenant is None:
            return False
        with self.turns.reading(tenant):
            async with self.database.transaction(tenant) as tx:
                body = await claim_ingestion(tx, oldest[tenant], self.now())
            if body is not None:
                await self._finish(oldest[tenant], body)
        return True

    async def purge(self) -> None:
        """Remove old finished ingestions, and what replaced documents left in the database files."""
        async with self.database.system_transaction() as tx:
            await remove_finished(tx, self.now() - _KEPT)
        if self.replaced.is_set():
            self.replaced.clear()
            await scrub_index(self.database)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._work_on())

    async def _work_on(self) -> None:
        while True:
            self.more.clear()
            try:
                while await self.work():
                    pass
            except (StoreUnavailableError, ServiceError) as error:
                log.warning("reading documents failed: %s", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(_IDLE_S):
                    await self.more.wait()

    async def _finish(self, ingestion: StoredIngestion, body: bytes) -> None:
        """Read a claimed document; an error is stored as its result, worded without content."""
        caller = Caller(ingestion.tenant, ingestion.created_by, frozenset({Role.OPERATOR}))
        submitted = Submitted(
            ingestion.collection,
            DocumentDetails.model_validate(ingestion.document["details"]),
            body,
            str(ingestion.document["media_type"]),
        )
        try:
            _check_attempts(ingestion)
            read = await self._read_in_time(submitted, self._progress_of(ingestion))
            await self._store(caller, submitted, read, None, waiting=ingestion)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - a document that breaks a parser must not stop the others
            code, message = (error.code, error.message) if isinstance(error, ServiceError) else _UNKNOWN
            if not isinstance(error, ServiceError):
                log.error("reading a document failed: %s", type(error).__name__)  # noqa: TRY400 - no content in logs
            async with self.database.transaction(ingestion.tenant) as tx:
                await finish_ingestion(
                    tx, ingestion.tenant, ingestion.id, "failed", f"{code}: {message}", self.now()
                )
                details = {"collection": ingestion.collection, "ingestion": ingestion.id}
                event = self.audit.new_event(
                    caller, "documents.put", OUTCOME_FAILED, None, error_code=code, details=details
                )
                await self.audit.record_with(tx, event)

    def _progress_of(self, ingestion: StoredIngestion) -> Progress:
        async def note(done: int, total: int) -> None:
            if done % _NOTED_EVERY == 0:
                async with self.database.transaction(ingestion.tenant) as tx:
                    await note_progress(
                        tx, ingestion.tenant, ingestion.id, done=done, total=total, moment=self.now()
                    )

        return note

    async def _check_limits(
        self, tx: CollectionTransaction, tenant: str, submitted: Submitted
    ) -> StoredDocument | None:
        await require_collection(tx, tenant, submitted.collection)
        named = submitted.details.source, submitted.details.external_id
        stored = await find_document(tx, tenant, submitted.collection, named=named)
        documents, chunks = await count_held(tx, tenant)
        if stored is None and (documents >= MAX_DOCUMENTS or chunks >= MAX_CHUNKS_HELD):
            raise TooLargeError(
                "This tenant has reached its limit of documents; delete some first.",
                details={"limit": "documents", "maximum": MAX_DOCUMENTS},
            )
        return stored

    async def _record_unchanged(
        self, caller: Caller, stored: StoredDocument, request: RequestInfo | None
    ) -> Ingested:
        details = {"collection": stored.collection, "document": stored.id, "changed": False}
        await self.audit.record(
            self.audit.new_event(caller, "documents.put", OUTCOME_OK, request, details=details)
        )
        return Ingested("unchanged", stored, None)

    async def _queue(self, caller: Caller, submitted: Submitted, request: RequestInfo | None) -> Ingested:
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
                    "Too many documents wait to be read; send more when some are finished.", retry_after_s=10
                )
            await add_ingestion(tx, waiting, submitted.body)
            details = {"collection": submitted.collection, "ingestion": waiting.id}
            event = self.audit.new_event(caller, "documents.queue", OUTCOME_OK, request, details=details)
            await self.audit.record_with(tx, event)
        self.more.set()
        return Ingested("queued", None, waiting)

    async def _read_in_time(self, submitted: Submitted, progress: Progress) -> ReadDocument:
        try:
            async with asyncio.timeout(LONGEST_S):
                return await self._read(submitted, progress, self.reader.read)
        except TimeoutError:
            raise TooLargeError(
                "Reading the document took too long; split it into several documents.",
                details={"limit": "seconds", "maximum": LONGEST_S},
            ) from None

    async def _read(self, submitted: Submitted, progress: Progress | None, read: Read) -> ReadDocument:
        return await read_document(
            *(submitted.details, submitted.body, submitted.media_type, self.embedder, progress), read=read
        )

    async def _store(
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
                stored = await self._check_limits(tx, tenant, submitted)
                if waiting is not None:
                    await _check_wanted(tx, waiting, stored)
                document = _stored_document(submitted, read, stored, moment)
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
                return document, stored is None

        document, created = await self.database.retried(write)
        if not created:
            self.replaced.set()
        return Ingested("created" if created else "updated", document, None)


_UNKNOWN: Final = ("internal_error", "The document could not be read; the log has the cause.")


def _check_attempts(ingestion: StoredIngestion) -> None:
    if ingestion.attempts >= _ATTEMPTS:
        raise InvalidArgumentsError(
            "The service stopped each time while it read this document; split the document."
        )


async def _check_wanted(
    tx: CollectionTransaction, waiting: StoredIngestion, stored: StoredDocument | None
) -> None:
    """Refuse to store a document that was deleted, or replaced by newer content, while it was read."""
    ingestion = await find_ingestion(tx, waiting.tenant, waiting.collection, waiting.id)
    if ingestion is None:
        raise NotFoundError("The document was deleted while it was read.")
    if stored is not None and stored.updated > waiting.created:
        raise ConflictError("Newer content of the document was stored while this was read.")


def _digest(submitted: Submitted) -> bytes:
    return submitted.details.digest(submitted.body, submitted.media_type, RULES)


def _stored_document(
    submitted: Submitted, read: ReadDocument, stored: StoredDocument | None, moment: datetime
) -> StoredDocument:
    details = submitted.details
    return StoredDocument(
        id=stored.id if stored is not None else uuid7().hex,
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
        created=stored.created if stored is not None else moment,
        updated=moment,
    )
