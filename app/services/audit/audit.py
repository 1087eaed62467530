"""The audit record: written before an answer is returned, read by the tenant's auditors.

Without a record there is no answer: an event that cannot be stored raises AuditUnavailableError, and the calling code
withholds its result. (``audit.on_failure = spool`` will replace that error in ``AuditService.record``.)
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

from app import __version__
from app.core.access import Caller, Role
from app.core.addresses import address_class
from app.core.archive import EventArchive
from app.core.audit import CLIENT_REQUEST_ID, OUTCOME_OK, OUTCOME_REFUSED, AuditEvent, Kept
from app.core.errors import (
    AuditUnavailableError,
    InternalError,
    InvalidArgumentsError,
    NotFoundError,
    ServiceError,
    StoreUnavailableError,
)
from app.core.ids import uuid7
from app.core.offload import off_loop
from app.core.paging import page_of
from app.core.request import CLIENT_REQUEST_ID_RULE, RequestInfo, is_client_request_id
from app.engines.cipher import RecordKeys
from app.services.audit.archive.reading import archived_events, archived_page, joined, merged
from app.services.audit.export import ExportFormat, exported
from app.services.audit.finding_counts import unobserved
from app.services.audit.pages import AuditPage, Place, beginning, cursor_of, place_of
from app.store.audit.audit import (
    AuditFilters,
    Transaction,
    find_event,
    list_events,
    unfinished_writers,
)
from app.store.audit.writer import GroupWriter
from app.store.database import Database
from app.store.replicas import Reads

MAX_PAGE = 1000
CONTENT: Final = b"content"
"""What kept content is bound to, beside its tenant."""
END_USER: Final = b"end user"
"""What the kept name of an end user is bound to, beside its tenant."""
_EXPORT_PAGE = 500
_HORIZON_S = 10.0
_HORIZON_STEP_S = 0.02
_MAX_NAME = 200
_SHORTEST_REASON: Final = 3
_LONGEST_REASON: Final = 500
_VERSIONS: Final = {"sluice": __version__}
_END_USER: Final = b"end user\0"


@dataclass(frozen=True, slots=True)
class AuditQuery(AuditFilters):
    """What an auditor asks for: ``scope`` is the name of a vault scope, which sets ``scope_ref``.

    ``user`` is the name of an end user, which sets ``on_behalf_of``.
    """

    scope: str | None = None
    user: str | None = None


@lru_cache(256)
def _in_order(roles: frozenset[Role]) -> tuple[Role, ...]:
    return tuple(sorted(roles))


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class AuditService:
    """Writes and reads the record; ``keys`` are the installation's record keys, one set per tenant.

    ``observe`` is told the counts of each call that is on record, by type of finding.
    """

    database: Database
    writer: GroupWriter
    keys: RecordKeys
    now: Callable[[], datetime] = _now
    observe: Callable[[Mapping[str, int]], None] = unobserved
    reads: Reads | None = None
    """Where queries and exports read; None: in ``database``."""
    verifying: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while this process verifies a log for somebody who waits for the answer."""

    def new_event(
        self,
        caller: Caller,
        action: str,
        outcome: str,
        request: RequestInfo | None,
        *,
        tenant: str | None = None,
        details: Mapping[str, Any] | None = None,
        engines: Mapping[str, str] | None = None,
        sealed: bytes | None = None,
        **fields: Any,
    ) -> AuditEvent:
        """Return an event with the current time; it enters the record of ``tenant`` (default: the caller's own).

        ``engines`` are name and version of the engine of each middleware that has one, ``sealed`` is kept content.
        """
        about, tenant = dict(details or {}), tenant or caller.tenant
        if request is not None and request.client_request_id is not None:
            about[CLIENT_REQUEST_ID] = request.client_request_id[:_MAX_NAME]
        if caller.agents:
            about["agents"] = " ".join(caller.agents)
        return AuditEvent(
            tenant=tenant,
            id=uuid7(),
            at=self.now(),
            actor=caller.key_id,
            roles=_in_order(caller.roles),
            action=action,
            outcome=outcome,
            request_id=request.request_id[:_MAX_NAME] if request else None,
            traceparent=request.traceparent[:_MAX_NAME] if request and request.traceparent else None,
            details=about,
            on_behalf_of=self._on_behalf_of(tenant, caller),
            key_name=caller.key_name,
            address_class=address_class(request.address) if request else None,
            sealed=self._kept(tenant, caller, sealed),
            versions={**_VERSIONS, "engines": dict(engines)} if engines else _VERSIONS,
            **fields,
        )

    def digest(self, tenant: str, data: bytes) -> str:
        """Return the keyed digest (hex) that stands for ``data`` in the tenant's record."""
        return self.keys.digest(tenant, data)

    def scope_ref(self, tenant: str, scope: str) -> str:
        """Return the keyed digest (hex) that stands for a vault scope in the tenant's record."""
        return self.digest(tenant, scope.encode("utf-8", "surrogatepass"))

    def user_ref(self, tenant: str, user: str) -> str:
        """Return the keyed digest (hex) that stands for an end user in the tenant's record."""
        return self.digest(tenant, _END_USER + user.encode("utf-8", "surrogatepass"))

    def _on_behalf_of(self, tenant: str, caller: Caller) -> str | None:
        if caller.user_ref is not None and tenant == caller.tenant:
            return caller.user_ref
        return self.user_ref(tenant, caller.end_user) if caller.end_user is not None else None

    async def seal(self, tenant: str, content: bytes) -> bytes:
        """Return ``content`` as ciphertext for an event's ``sealed``, if a policy requires to keep it."""
        return await off_loop(len(content), partial(self.keys.seal, own=True), tenant, CONTENT, content)

    def _kept(self, tenant: str, caller: Caller, content: bytes | None) -> bytes | None:
        """Return what an event keeps: content, and the end user's name where the caller's tenant keeps it."""
        if caller.end_user is None or not caller.keeps_end_user or tenant != caller.tenant:
            return content
        name = caller.end_user.encode("utf-8", "surrogatepass")
        return Kept(content, self.keys.seal(tenant, END_USER, name, own=True)).joined()

    async def record(self, *events: AuditEvent) -> None:
        """Store ``events`` and return when they are durable; concurrent calls share a commit."""
        try:
            await self.writer.record(events)
        except StoreUnavailableError as error:
            raise AuditUnavailableError(
                "The request could not be recorded, so it is not answered; try again shortly.",
                retry_after_s=error.retry_after_s,
            ) from None

    async def record_with(self, tx: Transaction, *events: AuditEvent) -> None:
        """Store ``events`` in the given transaction, which commits them together with its own changes.

        They are of the transaction's tenant, or in one of the system of any.
        """
        await self.writer.add(tx, events)

    @asynccontextmanager
    async def refusals(
        self, caller: Caller, action: str, request: RequestInfo | None, **fields: Any
    ) -> AsyncIterator[None]:
        """Record a refusal that is raised inside, and raise it again."""
        await self.keys.ready(caller.tenant)
        try:
            yield
        except (StoreUnavailableError, AuditUnavailableError, InternalError):
            raise
        except ServiceError as error:
            await self.record(
                self.new_event(caller, action, OUTCOME_REFUSED, request, error_code=error.code, **fields)
            )
            raise

    async def query(
        self,
        caller: Caller,
        query: AuditQuery,
        request: RequestInfo | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
        archive: EventArchive | None = None,
    ) -> AuditPage:
        """Return a page of the caller's own tenant; needs the role auditor and is itself recorded.

        A query without ``since`` looks 30 days back from ``until`` or now, on all its pages. The pages from the first
        on hold every event whose writing had begun before it was asked for. Raises InvalidArgumentsError where too many
        events would have to be read. With ``archive`` its events are among them, each once.
        """
        async with self.refusals(caller, "audit.query", request):
            caller.require(Role.AUDITOR)
            if not 1 <= limit <= MAX_PAGE:
                raise InvalidArgumentsError(
                    f"A page has 1 to {MAX_PAGE} events.", details={"pointer": "/limit", "maximum": MAX_PAGE}
                )
            place = place_of(cursor) if cursor is not None else None
            filters = self._store_filters(caller.tenant, query)
            named = ",".join(filters.named())
            since = filters.since or (place and place.since) or beginning(filters.until, self.now())
            filters = replace(filters, since=since)
            if place is None:
                await self._horizon(caller.tenant)
            before = place.before if place is not None else None
            reads = self._reads()
            recorded_events = await reads.run(
                caller.tenant,
                await reads.mark(),
                lambda tx: list_events(tx, caller.tenant, filters, before=before, limit=limit + 1),
            )
            events = [recorded.event for recorded in recorded_events]
            if archive is not None:
                more = await archived_page(archive, caller.tenant, filters, before=before, limit=limit + 1)
                events = joined(events, more, limit + 1)
        items, following = page_of(events, limit, lambda event: cursor_of(Place(event.id, since)))
        details = {"filters": named, "returned": len(items), **_read(archive)}
        await self.record(self.new_event(caller, "audit.query", OUTCOME_OK, request, details=details))
        return AuditPage(items, following, since)

    async def get(self, caller: Caller, event_id: UUID, request: RequestInfo | None = None) -> AuditEvent:
        """Return one event of the caller's own tenant; needs the role auditor and is itself recorded."""
        details = {"event": str(event_id)}
        async with self.refusals(caller, "audit.event", request, details=details):
            caller.require(Role.AUDITOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                stored = await find_event(tx, caller.tenant, event_id)
            if stored is None:
                raise NotFoundError("There is no event with this id.")
        await self.record(self.new_event(caller, "audit.event", OUTCOME_OK, request, details=details))
        return stored.event

    async def export(
        self,
        caller: Caller,
        query: AuditQuery,
        form: ExportFormat,
        request: RequestInfo | None = None,
        *,
        archive: EventArchive | None = None,
    ) -> AsyncIterator[bytes]:
        """Return the pieces of an export, newest event first; recorded before its first piece.

        It holds every event whose writing had begun before, whatever the clocks of their hosts said.
        """
        async with self.refusals(caller, "audit.export", request):
            caller.require(Role.AUDITOR)
            if form not in ("jsonl", "csv"):
                raise InvalidArgumentsError(
                    "The format of an export is jsonl or csv.", details={"pointer": "/format"}
                )
            filters = self._store_filters(caller.tenant, query)
        details = {"filters": ",".join(filters.named()), "format": form, **_read(archive)}
        event = self.new_event(caller, "audit.export", OUTCOME_OK, request, details=details)
        await self.record(event)
        await self._horizon(caller.tenant)
        events = self._stored_events(caller.tenant, filters, event.id)
        if archive is not None:
            events = merged(events, archived_events(archive, caller.tenant, filters))
        return exported(events, form)

    async def _horizon(self, tenant: str) -> None:
        """Wait until the transactions that now add to the record have ended: their events may have any id."""
        unfinished: frozenset[str] | None = None
        until = time.monotonic() + _HORIZON_S
        while True:
            async with self.database.transaction(tenant, write=False) as tx:
                writers = await unfinished_writers(tx)
            unfinished = writers if unfinished is None else unfinished & writers
            if not unfinished:
                return
            if time.monotonic() > until:
                raise StoreUnavailableError(
                    "A transaction is still writing to the record, so it cannot be read completely yet; try again.",
                    retry_after_s=1.0,
                )
            await asyncio.sleep(_HORIZON_STEP_S)

    async def _stored_events(
        self, tenant: str, filters: AuditFilters, own: UUID
    ) -> AsyncIterator[AuditEvent]:
        """Yield all events but the ``own`` one of an export."""
        before: UUID | None = None
        reads = self._reads()
        mark = await reads.mark()
        following = partial(list_events, tenant=tenant, filters=filters, limit=_EXPORT_PAGE)
        while True:
            page = await reads.run(tenant, mark, partial(following, before=before))
            for recorded in page:
                if recorded.event.id != own:
                    yield recorded.event
            if len(page) < _EXPORT_PAGE:
                return
            before = page[-1].event.id

    def _reads(self) -> Reads:
        return self.reads or Reads(self.database)

    def _store_filters(self, tenant: str, query: AuditQuery) -> AuditFilters:
        for name in ("since", "until"):
            moment = getattr(query, name)
            if moment is not None and moment.tzinfo is None:
                raise InvalidArgumentsError("A time needs a time zone.", details={"pointer": f"/{name}"})
        if query.client_request_id is not None and not is_client_request_id(query.client_request_id):
            raise InvalidArgumentsError(
                "No request was ever recorded under this id: X-Request-Id of a client is taken if it has "
                f"{CLIENT_REQUEST_ID_RULE}, and ignored if not.",
                details={"pointer": "/client_request_id"},
            )
        reference = query.scope_ref if query.scope is None else self.scope_ref(tenant, query.scope)
        if query.scope_ref not in (None, reference):
            raise InvalidArgumentsError(
                "scope and scope_ref name two scopes: give one of them.", details={"pointer": "/scope"}
            )
        user = query.on_behalf_of if query.user is None else self.user_ref(tenant, query.user)
        if query.on_behalf_of not in (None, user):
            raise InvalidArgumentsError(
                "user and on_behalf_of name two end users: give one of them.", details={"pointer": "/user"}
            )
        return replace(query, scope_ref=reference, on_behalf_of=user)


def _read(archive: EventArchive | None) -> dict[str, str]:
    return {"archive": archive.name} if archive is not None else {}


def checked_reason(reason: str) -> str:
    """Return why somebody does what needs a reason, or refuse what says nothing."""
    stripped = reason.strip()
    if not _SHORTEST_REASON <= len(stripped) <= _LONGEST_REASON or not stripped.isprintable():
        raise InvalidArgumentsError(
            f"Say why, in {_SHORTEST_REASON} to {_LONGEST_REASON} printable characters; it is on record.",
            details={"pointer": "/reason"},
        )
    return stripped
