"""Erase a scope, a handle or a value, and keep a receipt inside and outside the database."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content.handles import Handle
from app.core.errors import InvalidArgumentsError, NotFoundError, StoreUnavailableError
from app.core.events import Changed
from app.core.ids import uuid7
from app.core.paging import page_of
from app.core.request import RequestInfo
from app.engines.cipher import KeyKeeper
from app.services.audit.audit import AuditService
from app.services.vault.blind_index import BlindIndex
from app.services.vault.mark import MarkKeeper
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database
from app.store.vault.blind import list_by_digest, remove_by_digest
from app.store.vault.erasure_files import ErasurePlace
from app.store.vault.erasure_jobs import StoredErasureJob, document_of
from app.store.vault.vault import (
    EntryPlace,
    add_erasure,
    remove_entries,
    remove_scope,
)

VAULT_CHANGED = "vault"
"""The kind of change that a process must hear of that keeps opened originals: some are gone, or end earlier.

Its name is that of the scope; None: any scope of the tenant.
"""

Kind = Literal["scope", "handle", "value", "tenant", "order", "receipt"]
"""What was erased; or that a job was ordered, or has its receipt, so that a restored database has them again."""


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What was erased: counts by label, never values."""

    id: UUID
    kind: Kind
    at: datetime
    actor: str
    scope: str | None
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class OccurrencePage:
    """Where a value occurs, in the order of scopes, and the cursor of the next page (None: this is the last)."""

    items: list[EntryPlace]
    next: str | None


@dataclass(frozen=True, slots=True)
class ErasureSink:
    """A place outside the database: after a backup was restored, it lists what to erase again.

    One JSON object for each erasure: the receipt and the places (scope, label, ordinal) of what was erased, no
    content. Without a place nothing is written.
    """

    place: ErasurePlace | None

    async def append(
        self,
        tenant: str,
        receipt: ErasureReceipt,
        places: Sequence[EntryPlace],
        database: str | None = None,
        job: UUID | StoredErasureJob | None = None,
    ) -> None:
        """Write one line and return when it is stored durably; if this fails, nothing is erased.

        ``database`` names the history of the database: two services may share the place. ``job`` is what was ordered
        or is done, or the job that this is a step of.
        """
        if self.place is None:
            return
        line = {
            "database": database,
            "tenant": tenant,
            "id": str(receipt.id),
            "kind": receipt.kind,
            "at": receipt.at.isoformat(),
            "actor": receipt.actor,
            "scope": receipt.scope,
            "counts": receipt.counts,
            "erased": [[place.scope, place.label, place.ordinal] for place in places],
        }
        if job is not None:
            line["job"] = document_of(job) if isinstance(job, StoredErasureJob) else str(job)
        try:
            written = json.dumps(line).encode() + b"\n"
            await asyncio.to_thread(self.place.append, database, receipt.id, written)
        except OSError:
            raise StoreUnavailableError(
                "The erasure cannot be noted outside the database, so nothing was erased."
            ) from None


@dataclass(frozen=True, slots=True)
class ErasureService:
    """The use cases of ``VaultService`` that erase."""

    database: Database
    key_keeper: KeyKeeper
    audit: AuditService
    sink: ErasureSink
    now: Callable[[], datetime]
    index: BlindIndex
    marks: MarkKeeper | None = None

    async def erase_scope(self, caller: Caller, scope: str, request: RequestInfo | None) -> ErasureReceipt:
        """See ``VaultService.erase_scope``."""
        async with self.audit.refusals(caller, "vault.erase_scope", request):
            caller.require(Role.ERASER)
            history = await self.history()
            async with self.database.transaction(caller.tenant) as tx:
                counts = await remove_scope(tx, caller.tenant, scope, self.now())
                if counts is None:
                    raise NotFoundError("There is no such scope.")
                receipt = self._receipt("scope", caller, scope, counts)
                await self._note(tx, caller, receipt, [], request, history)
        await self.count()
        self.key_keeper.forget(caller.tenant, scope)
        return receipt

    async def erase_handle(
        self, caller: Caller, scope: str, handle: Handle, request: RequestInfo | None
    ) -> ErasureReceipt:
        """See ``VaultService.erase_handle``."""
        place = EntryPlace(scope, handle.label, handle.ordinal)
        async with self.audit.refusals(caller, "vault.erase_handle", request):
            caller.require(Role.ERASER)
            history = await self.history()
            async with self.database.transaction(caller.tenant) as tx:
                removed = await remove_entries(tx, caller.tenant, [place])
                if not removed:
                    raise NotFoundError("There is no such handle in this scope.")
                receipt = self._receipt("handle", caller, scope, {handle.label: 1})
                await self._note(tx, caller, receipt, removed, request, history)
        await self.count()
        return receipt

    async def erase_value(self, caller: Caller, value: str, request: RequestInfo | None) -> ErasureReceipt:
        """See ``VaultService.erase_value``; a value that is not stored gives a receipt without counts."""
        async with self.audit.refusals(caller, "vault.erase_value", request):
            caller.require(Role.ERASER)
            if not value:
                raise InvalidArgumentsError(
                    "The value is empty; send the value to erase.", details={"pointer": "/value"}
                )
        history = await self.history()
        places = await self.index.unindexed_places(caller.tenant, value, self.now())
        async with self.database.transaction(caller.tenant) as tx:
            removed = await remove_by_digest(tx, caller.tenant, self.index.digests(caller.tenant, value))
            removed += await remove_entries(tx, caller.tenant, places)
            counts = dict(Counter(place.label for place in removed))
            receipt = self._receipt("value", caller, None, counts)
            await self._note(tx, caller, receipt, removed, request, history)
        await self.count()
        return receipt

    async def find_value(
        self,
        caller: Caller,
        value: str,
        request: RequestInfo | None = None,
        *,
        limit: int = 100,
        cursor: str | None = None,
    ) -> OccurrencePage:
        """Return a page of the places in which live scopes have ``value``: what an erasure of it would delete."""
        async with self.audit.refusals(caller, "vault.find_value", request):
            caller.require(Role.ERASER)
            if not value:
                raise InvalidArgumentsError(
                    "The value is empty; send the value to find.", details={"pointer": "/value"}
                )
            after = _place_of(cursor)
        tenant, now = caller.tenant, self.now()
        places = set(await self.index.unindexed_places(tenant, value, now))
        digests = self.index.digests(tenant, value)
        async with self.database.transaction(tenant, write=False) as tx:
            places |= set(await list_by_digest(tx, tenant, digests, now, after=after, limit=limit + 1))
        ordered = sorted((place for place in places if after is None or _key(place) > _key(after)), key=_key)
        page, following = page_of(
            ordered, limit, lambda place: f"{place.label}_{place.ordinal}@{place.scope}"
        )
        await self.audit.record(
            self.audit.new_event(
                caller, "vault.find_value", OUTCOME_OK, request, details={"returned": len(page)}
            )
        )
        return OccurrencePage(page, following)

    async def store(
        self,
        tx: Transaction,
        caller: Caller,
        receipt: ErasureReceipt,
        removed: Sequence[EntryPlace],
        events: Sequence[AuditEvent],
        history: str | None,
        job: UUID | None = None,
    ) -> None:
        """Store receipt and events, then append the line; the commit comes last, so a noted erasure can be redone."""
        await self._add(tx, caller.tenant, receipt)
        await announce(tx, Changed(VAULT_CHANGED, caller.tenant, receipt.scope))
        await self.audit.record_with(tx, *events)
        await self.sink.append(caller.tenant, receipt, removed, history, job)

    async def note_job(self, tx: Transaction, job: StoredErasureJob, history: str | None) -> None:
        """Note outside the database, before it holds, that a job was ordered or is done."""
        kind: Kind = "order" if job.finished is None else "receipt"
        receipt = ErasureReceipt(uuid7(), kind, job.finished or job.created, job.actor, None, {})
        await self._add(tx, job.tenant, receipt)
        await self.sink.append(job.tenant, receipt, [], history, job)

    async def history(self) -> str | None:
        """Return the name of the database's history, or raise where the database lacks earlier erasures."""
        return None if self.marks is None else await self.marks.admit_erasure()

    async def count(self) -> None:
        """Let the mark count an erasure that is committed."""
        if self.marks is not None:
            await self.marks.note_erasure()

    async def _add(self, tx: Transaction, tenant: str, receipt: ErasureReceipt) -> None:
        await add_erasure(
            *(tx, tenant, receipt.id, receipt.kind, receipt.at, receipt.actor),
            *(receipt.scope, receipt.counts),
        )

    def _receipt(
        self, kind: Kind, caller: Caller, scope: str | None, counts: dict[str, int]
    ) -> ErasureReceipt:
        return ErasureReceipt(uuid7(), kind, self.now(), caller.key_id, scope, counts)

    async def _note(
        self,
        tx: Transaction,
        caller: Caller,
        receipt: ErasureReceipt,
        removed: Sequence[EntryPlace],
        request: RequestInfo | None,
        history: str | None,
    ) -> None:
        """Store an erasure with the event of a request."""
        scope = receipt.scope
        event = self.audit.new_event(
            caller,
            f"vault.erase_{receipt.kind}",
            OUTCOME_OK,
            request,
            scope_ref=None if scope is None else self.audit.scope_ref(caller.tenant, scope),
            counts=receipt.counts,
            details={"receipt": str(receipt.id)},
        )
        await self.store(tx, caller, receipt, removed, [event], history)


def _key(place: EntryPlace) -> tuple[bytes, bytes, int]:
    """Return what orders places as both databases do."""
    return place.scope.encode(), place.label.encode(), place.ordinal


def _place_of(cursor: str | None) -> EntryPlace | None:
    if cursor is None:
        return None
    name, _, scope = cursor.partition("@")
    handle = Handle.parse(name)
    if handle is None or not scope:
        raise InvalidArgumentsError(
            "The cursor was not issued by this service.", details={"pointer": "/cursor"}
        )
    return EntryPlace(scope, handle.label, handle.ordinal)
