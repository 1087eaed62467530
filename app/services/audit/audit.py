"""The record of what was done: written before the answer leaves, read by the tenant's auditors.

No record, no answer: an event that cannot be stored raises AuditUnavailableError, and the caller withholds
its result. (``audit.on_failure = spool`` will take the place of that error in ``AuditService.record``.)
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, OUTCOME_REFUSED, AuditEvent
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
from app.core.request import RequestInfo
from app.engines.cipher import RecordKeys, SealBrokenError
from app.services.audit.export import ExportFormat, exporter
from app.store.audit.audit import AuditFilters, Transaction, find_event, list_events
from app.store.audit.writer import GroupWriter, add_audit_rows
from app.store.database import Database

MAX_PAGE = 1000
_EXPORT_PAGE = 500
_MAX_NAME = 200
_CURSOR_VERSION = b"\x01"
_CONTENT = b"content"


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What an auditor asks for; None does not filter. ``scope`` is the vault scope by name."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str | None = None
    middleware: str | None = None
    action: str | None = None
    outcome: str | None = None
    scope: str | None = None
    request_id: str | None = None


class AuditPage(NamedTuple):
    """Events, newest first, and the cursor of the next page (None: this was the last)."""

    items: list[AuditEvent]
    next: str | None


def payload(event: AuditEvent) -> bytes:
    """Return the one spelling of ``event`` that its MAC, and later its leaf in the log, is made over.

    JSON, names sorted, times in microseconds since 1970, sealed content by its SHA-256.
    """
    fields = {
        "v": 1,
        "tenant": event.tenant,
        "id": event.id.hex,
        "at": round((event.at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000),
        "actor": event.actor,
        "roles": sorted(event.roles),
        "action": event.action,
        "outcome": event.outcome,
        "middleware": event.middleware,
        "policy_version": event.policy_version,
        "error_code": event.error_code,
        "scope_ref": event.scope_ref,
        "in_hmac": event.in_hmac,
        "out_hmac": event.out_hmac,
        "blocks": event.blocks,
        "bytes_in": event.bytes_in,
        "bytes_out": event.bytes_out,
        "counts": dict(event.counts),
        "duration_us": event.duration_us,
        "request_id": event.request_id,
        "traceparent": event.traceparent,
        "details": dict(event.details),
        "sealed": hashlib.sha256(event.sealed).hexdigest() if event.sealed is not None else None,
    }
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def event_mac(keys: RecordKeys, event: AuditEvent) -> bytes:
    """Return the authentication code that an event is stored with."""
    return keys.mac(event.tenant, payload(event))


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class AuditService:
    """Writes and reads the record; ``keys`` are the installation's record keys, one set per tenant."""

    database: Database
    writer: GroupWriter
    keys: RecordKeys
    now: Callable[[], datetime] = _now

    def new_event(
        self,
        caller: Caller,
        action: str,
        outcome: str,
        request: RequestInfo | None,
        *,
        tenant: str | None = None,
        **fields: Any,
    ) -> AuditEvent:
        """Return an event of this moment; ``tenant`` is whose record it enters (default: the caller's own)."""
        return AuditEvent(
            tenant=tenant or caller.tenant,
            id=uuid7(),
            at=self.now(),
            actor=caller.key_id,
            roles=tuple(sorted(caller.roles)),
            action=action,
            outcome=outcome,
            request_id=request.request_id[:_MAX_NAME] if request else None,
            traceparent=request.traceparent[:_MAX_NAME] if request and request.traceparent else None,
            **fields,
        )

    def digest(self, tenant: str, data: bytes) -> str:
        """Return the keyed digest (hex) that stands for ``data`` in the tenant's record."""
        return self.keys.digest(tenant, data)

    def scope_ref(self, tenant: str, scope: str) -> str:
        """Return what stands for a vault scope in the tenant's record."""
        return self.digest(tenant, scope.encode("utf-8", "surrogatepass"))

    async def seal(self, tenant: str, content: bytes) -> bytes:
        """Return ``content`` as ciphertext for an event's ``sealed``, where a policy demands to keep it."""
        return await off_loop(len(content), self.keys.seal, tenant, _CONTENT, content)

    async def record(self, *events: AuditEvent) -> None:
        """Store ``events`` and return when they are durable; concurrent calls share a commit."""
        try:
            await self.writer.record(events)
        except StoreUnavailableError as error:
            raise AuditUnavailableError(
                "The act could not be recorded, so nothing is answered; try again shortly.",
                retry_after_s=error.retry_after_s,
            ) from None

    async def record_with(self, tx: Transaction, *events: AuditEvent) -> None:
        """Store ``events`` in a transaction of the caller's, which commits them with its own changes."""
        await add_audit_rows(tx, events, partial(event_mac, self.keys))

    @asynccontextmanager
    async def refusals(
        self, caller: Caller, action: str, request: RequestInfo | None, **fields: Any
    ) -> AsyncIterator[None]:
        """Record it when what happens inside is refused, and pass the refusal on."""
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
        asked: AuditQuery,
        request: RequestInfo | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> AuditPage:
        """Return a page of the caller's own tenant; needs the role auditor and is itself recorded."""
        async with self.refusals(caller, "audit.query", request):
            caller.require(Role.AUDITOR)
            if not 1 <= limit <= MAX_PAGE:
                raise InvalidArgumentsError(
                    f"A page has 1 to {MAX_PAGE} events.", details={"pointer": "/limit", "maximum": MAX_PAGE}
                )
            before = _position(cursor) if cursor is not None else None
            filters = self._filters(caller.tenant, asked)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            found = await list_events(tx, caller.tenant, filters, before=before, limit=limit + 1)
        page, following = page_of(found, limit, lambda recorded: _cursor(recorded.event.id))
        items = [recorded.event for recorded in page]
        details = {"filters": ",".join(filters.named()), "returned": len(items)}
        await self.record(self.new_event(caller, "audit.query", OUTCOME_OK, request, details=details))
        return AuditPage(items, following)

    async def export(
        self, caller: Caller, asked: AuditQuery, form: ExportFormat, request: RequestInfo | None = None
    ) -> AsyncIterator[bytes]:
        """Return the pieces of an export, newest event first; the export is on record before its first piece."""
        async with self.refusals(caller, "audit.export", request):
            caller.require(Role.AUDITOR)
            if form not in ("jsonl", "csv"):
                raise InvalidArgumentsError("An export is jsonl or csv.", details={"pointer": "/format"})
            filters = self._filters(caller.tenant, asked)
        details = {"filters": ",".join(filters.named()), "format": form}
        event = self.new_event(caller, "audit.export", OUTCOME_OK, request, details=details)
        await self.record(event)
        return self._pieces(caller.tenant, filters, form, before=event.id)

    async def kept_content(self, caller: Caller, event_id: UUID, request: RequestInfo | None = None) -> bytes:
        """Return the content that an event keeps sealed; needs the roles auditor and restorer both."""
        async with self.refusals(caller, "audit.content", request):
            caller.require(Role.AUDITOR)
            caller.require(Role.RESTORER)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                found = await find_event(tx, caller.tenant, event_id)
            if found is None or found.event.sealed is None:
                raise NotFoundError("There is no event of that id that keeps content.")
        sealed = found.event.sealed
        content: bytes | None
        try:
            content = await off_loop(len(sealed), self.keys.open, caller.tenant, _CONTENT, sealed)
        except SealBrokenError:
            content = None
        # The code of the record tells content that was moved here from another event of the tenant.
        if content is None or not hmac.compare_digest(event_mac(self.keys, found.event), found.mac):
            raise InternalError(
                "The kept content is not what this event was written with.", details={"id": str(event_id)}
            )
        details = {"event": str(event_id)}
        await self.record(self.new_event(caller, "audit.content", OUTCOME_OK, request, details=details))
        return content

    async def _pieces(
        self, tenant: str, filters: AuditFilters, form: ExportFormat, *, before: UUID
    ) -> AsyncIterator[bytes]:
        head, written = exporter(form)
        if head:
            yield head
        while True:
            async with self.database.transaction(tenant, write=False) as tx:
                found = await list_events(tx, tenant, filters, before=before, limit=_EXPORT_PAGE)
            if found:
                yield written([recorded.event for recorded in found])
                before = found[-1].event.id
            if len(found) < _EXPORT_PAGE:
                return

    def _filters(self, tenant: str, asked: AuditQuery) -> AuditFilters:
        for name in ("since", "until"):
            moment = getattr(asked, name)
            if moment is not None and moment.tzinfo is None:
                raise InvalidArgumentsError("A time needs a zone.", details={"pointer": f"/{name}"})
        return AuditFilters(
            since=asked.since,
            until=asked.until,
            actor=asked.actor,
            middleware=asked.middleware,
            action=asked.action,
            outcome=asked.outcome,
            scope_ref=self.scope_ref(tenant, asked.scope) if asked.scope is not None else None,
            request_id=asked.request_id,
        )


def _cursor(last: UUID) -> str:
    return base64.urlsafe_b64encode(_CURSOR_VERSION + last.bytes).rstrip(b"=").decode()


def _position(cursor: str) -> UUID:
    """Return the event behind which a cursor continues; whoever forges one still reads their own tenant only."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if raw[:1] == _CURSOR_VERSION:
            return UUID(bytes=raw[1:])
    except (ValueError, binascii.Error):
        pass
    raise InvalidArgumentsError("The cursor is not one of ours.", details={"pointer": "/cursor"})
