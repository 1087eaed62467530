"""Commit the vault writes and audit rows of concurrent requests together: one task and one commit for many."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from types import TracebackType
from typing import Any, Self

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import AuditEvent
from app.core.errors import StoreUnavailableError
from app.store.bulk import appending, insert_rows
from app.store.database import Database
from app.store.tables import audit_event
from app.store.vault.allocation import Allocation, DataKeys, Want

BATCH_ROWS = 256
GATHER_S = 0.001
"""How long a batch waits for more writes while requests are concurrent; a single request never waits."""

_QUEUE_LIMIT = 20_000
_ROWS_PER_S = 2_000
"""Rate that extends the time limit of a large write in proportion to its rows."""
_AUDIT_COLUMNS = tuple(column.name for column in audit_event.columns)

Conclude = Callable[[Any, Sequence[int]], Awaitable[Sequence[AuditEvent]]]


@dataclass(slots=True, eq=False)
class _Work:
    tenant: str
    want: Want | None
    conclude: Conclude
    done: "asyncio.Future[None]"

    @property
    def rows(self) -> int:
        return 1 + (len(self.want.values) if self.want else 0)


@dataclass(slots=True)
class GroupWriter:
    """Collects writes while a commit is in progress and stores them with the next one.

    ``mac`` returns the authentication code of an event. Use it as ``async with GroupWriter(…)``: leaving the block
    stores the writes that still wait.
    """

    database: Database
    keeper: DataKeys
    mac: Callable[[AuditEvent], bytes]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _waiting: deque[_Work] = field(default_factory=deque)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None
    _crowded: bool = False
    _closing: bool = False

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="group-writer")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def allocate(self, tenant: str, want: Want, conclude: Conclude) -> None:
        """Store the values of ``want`` and the events that ``conclude`` returns, in one transaction.

        ``conclude`` receives the opened data key of the scope and the ordinals. It runs inside the transaction, so it
        must be quick, and runs again where the transaction is retried. Returns once everything is durable.
        """
        await self._submit(tenant, want, conclude)

    async def record(self, events: Sequence[AuditEvent]) -> None:
        """Store events and return once they are durable; one call may bring events of several tenants."""
        ordered = sorted(events, key=lambda event: event.tenant)
        for tenant, own in groupby(ordered, key=lambda event: event.tenant):
            await self._submit(tenant, None, _only(list(own)))

    async def _submit(self, tenant: str, want: Want | None, conclude: Conclude) -> None:
        if self._task is None or self._closing or len(self._waiting) >= _QUEUE_LIMIT:
            raise StoreUnavailableError(
                "The service accepts no more writes at the moment.", retry_after_s=1.0
            )
        work = _Work(tenant, want, conclude, asyncio.get_running_loop().create_future())
        self._waiting.append(work)
        self._arrived.set()
        try:
            async with asyncio.timeout(self.database.patience.statement_s + work.rows / _ROWS_PER_S):
                await work.done
        except TimeoutError:
            raise StoreUnavailableError("The database does not answer.", retry_after_s=1.0) from None

    async def _run(self) -> None:
        while not (self._closing and not self._waiting):
            await self._arrived.wait()
            if self._crowded and not self._closing:
                await asyncio.sleep(GATHER_S)
            if not self._closing:
                self._arrived.clear()
            while self._waiting:
                batch = self._take()
                self._crowded = len(batch) > 1
                await self._store(batch)

    def _take(self) -> list[_Work]:
        batch: list[_Work] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].rows <= BATCH_ROWS):
            work = self._waiting.popleft()
            if not work.done.done():
                batch.append(work)
                rows += work.rows
        return batch

    async def _store(self, batch: list[_Work]) -> None:
        """Store ``batch`` in one transaction; where one write makes it fail, store each in its own."""
        if not batch:
            return
        try:
            await self.database.retried(lambda: self._attempt(batch))
        except Exception as error:  # noqa: BLE001 - it is passed on to each caller
            if len(batch) > 1 and type(error) is not StoreUnavailableError:
                for work in batch:
                    await self._store([work])
                return
            for work in batch:
                if not work.done.done():
                    work.done.set_exception(error)
            return
        for work in batch:
            if not work.done.done():
                work.done.set_result(None)

    async def _attempt(self, batch: list[_Work]) -> None:
        by_tenant: dict[str, list[_Work]] = {}
        for work in batch:
            by_tenant.setdefault(work.tenant, []).append(work)
        if self.database.embedded and all(work.want is None for work in batch):
            # SQLite has no roles to switch to, so one statement can insert the rows of all tenants.
            events = [event for work in batch for event in await work.conclude(None, [])]
            rows = [_audit_row(event, self.mac) for event in events]
            await self.database.append(*appending(audit_event, _AUDIT_COLUMNS, rows))
            return
        first, *others = sorted(by_tenant)
        made: dict[tuple[str, str, int], Any] = {}
        async with self.database.transaction(first) as tx:
            made.update(await self._write(tx, first, by_tenant[first]))
            for tenant in others:
                await self.database.enter_tenant(tx, tenant)
                made.update(await self._write(tx, tenant, by_tenant[tenant]))
        for name, use in made.items():
            self.keeper.keep(name, use)

    async def _write(
        self, tx: AsyncConnection, tenant: str, works: list[_Work]
    ) -> dict[tuple[str, str, int], Any]:
        allocation = Allocation(tx, tenant, self.keeper, self.now())
        wants = [work.want for work in works if work.want is not None and work.want.values]
        ordinals = iter(await allocation.run(wants) if wants else [])
        events: list[AuditEvent] = []
        for work in works:
            if work.want is None or not work.want.values:
                events.extend(await work.conclude(None, []))
            else:
                events.extend(await work.conclude(allocation.uses[work.want.scope], next(ordinals)))
        await add_audit_rows(tx, events, self.mac)
        return allocation.made


def _only(events: Sequence[AuditEvent]) -> Conclude:
    """Return a ``conclude`` function that adds just these events."""

    async def conclude(_use: Any, _ordinals: Sequence[int]) -> Sequence[AuditEvent]:
        return events

    return conclude


async def add_audit_rows(
    tx: AsyncConnection, events: Sequence[AuditEvent], mac: Callable[[AuditEvent], bytes]
) -> None:
    """Insert the rows of ``events``, all of the tenant that ``tx`` serves, in one statement."""
    rows = [_audit_row(event, mac) for event in events]
    await insert_rows(tx, audit_event, _AUDIT_COLUMNS, rows)


def _audit_row(event: AuditEvent, mac: Callable[[AuditEvent], bytes]) -> tuple[Any, ...]:
    return (
        *(event.tenant, event.id, event.at, event.actor, _roles(tuple(event.roles))),
        *(event.action, event.outcome, event.middleware, event.policy_version, event.error_code),
        *(event.scope_ref, event.in_hmac, event.out_hmac, event.blocks, event.bytes_in, event.bytes_out),
        *(_text(event.counts), event.duration_us, event.request_id, event.traceparent),
        *(_text(event.details), event.sealed, mac(event)),
    )


@lru_cache(256)
def _roles(roles: tuple[str, ...]) -> str:
    return json.dumps(sorted(roles))


def _text(values: Mapping[str, object]) -> str:
    return json.dumps(dict(values)) if values else "{}"
