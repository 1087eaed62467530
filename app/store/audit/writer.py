"""Commit the vault writes and audit rows of concurrent requests together: one task and one commit for many."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain, groupby
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.audit import AuditEvent, EventCode, WriterNumber
from app.core.errors import StoreUnavailableError
from app.store.afterwards import once_stored
from app.store.audit.batches import AUDIT_COLUMNS, Batch, EmbeddedBatch, TenantBatch
from app.store.audit.numbers import NumberedAttempt, WriterPool
from app.store.audit.scope_queues import ScopeLanes
from app.store.bulk import insert_rows
from app.store.database import Database
from app.store.tables import audit_event
from app.store.vault.allocation import Allocation
from app.store.vault.numbering import DataKeys, Numbering, Place, Want

BATCH_ROWS = 256
GATHER_S = 0.001
"""How long a batch waits for more writes while requests are concurrent; a single request never waits."""

_QUEUE_LIMIT = 20_000
_ROWS_PER_S = 2_000
"""Rate that extends the time limit of a large write in proportion to its rows."""

_INSERT: Final = f"INSERT INTO {audit_event.name} ({', '.join(AUDIT_COLUMNS)}) VALUES "  # noqa: S608 - our own names
_ROW: Final = f"({', '.join('?' * len(AUDIT_COLUMNS))})"

Conclude = Callable[[Any, Sequence[int]], Awaitable[Sequence[AuditEvent]]]
Code = Callable[[AuditEvent, WriterNumber], EventCode]


@dataclass(slots=True, eq=False)
class _Work:
    tenant: str
    want: Want | None
    conclude: Conclude
    done: "asyncio.Future[None]"

    @property
    def rows(self) -> int:
        return 1 + (len(self.want.values) if self.want else 0)

    @property
    def place(self) -> Place | None:
        """Return the scope that it writes to, None where it has no values."""
        return self.want.place if self.want is not None and self.want.values else None


@dataclass(slots=True)
class GroupWriter:
    """Collects writes while a commit is in progress and stores them with the next one.

    ``code`` returns the leaf and the authentication code of a numbered event. Use it as
    ``async with GroupWriter(…)``: leaving the block stores the writes that still wait.
    """

    database: Database
    keeper: DataKeys
    code: Code
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _writers: WriterPool = field(default_factory=WriterPool)
    _waiting: deque[_Work] = field(default_factory=deque)
    _lanes: ScopeLanes[_Work] = field(init=False)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _task: "asyncio.Task[None] | None" = None
    _crowded: bool = False
    _closing: bool = False

    def __post_init__(self) -> None:
        self._lanes = ScopeLanes(self._store_apart, BATCH_ROWS)

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
        await self._lanes.close()

    async def allocate(self, want: Want, conclude: Conclude) -> None:
        """Store the values of ``want`` and the events that ``conclude`` returns, in one transaction.

        ``conclude`` receives the opened data key of the scope and the ordinals. Others wait meanwhile, so it must be
        quick, and it runs again where another writer was first. Returns once everything is durable.
        """
        await self._submit(want.tenant, want, conclude)

    async def record(self, events: Sequence[AuditEvent]) -> None:
        """Store events and return once they are durable; one call may bring events of several tenants."""
        if len(events) == 1:
            await self._submit(events[0].tenant, None, _only(events))
            return
        ordered = sorted(events, key=lambda event: event.tenant)
        for tenant, own in groupby(ordered, key=lambda event: event.tenant):
            await self._submit(tenant, None, _only(list(own)))

    async def add(self, tx: AsyncConnection, events: Sequence[AuditEvent]) -> None:
        """Insert the rows of ``events``, all of the tenant that ``tx`` serves, in one statement of ``tx``."""
        attempt = once_stored(tx, id(self._writers), lambda: NumberedAttempt(self._writers))
        rows = [audit_row(event, attempt.number(event), self.code) for event in _in_order(events)]
        await insert_rows(tx, audit_event, AUDIT_COLUMNS, rows)

    async def _submit(self, tenant: str, want: Want | None, conclude: Conclude) -> None:
        if self._task is None or self._closing or len(self._waiting) + self._lanes.count >= _QUEUE_LIMIT:
            raise StoreUnavailableError(
                "The service accepts no more writes at the moment.", retry_after_s=1.0
            )
        loop = asyncio.get_running_loop()
        work = _Work(tenant, want, conclude, loop.create_future())
        self._waiting.append(work)
        self._arrived.set()
        # asyncio.timeout would cancel this task to say the same, and takes several times as long.
        patience_s = self.database.patience.statement_s + work.rows / _ROWS_PER_S
        timer = loop.call_later(patience_s, _give_up, work.done)
        try:
            await work.done
        finally:
            timer.cancel()

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
                await self._store(batch, self._attempt)

    def _take(self) -> list[_Work]:
        batch: list[_Work] = []
        rows = 0
        while self._waiting and (not batch or rows + self._waiting[0].rows <= BATCH_ROWS):
            work = self._waiting.popleft()
            if work.done.done():
                continue
            if work.place is not None and work.place in self._lanes:
                self._lanes.add(work.place, work)
                continue
            batch.append(work)
            rows += work.rows
        return batch

    async def _store_apart(self, batch: list[_Work]) -> None:
        """Store works of one scope, waiting for those who lock it."""
        await self._store([work for work in batch if not work.done.done()], self._attempt_together)

    async def _store(
        self, batch: list[_Work], attempt: Callable[[list[_Work]], Awaitable[list[_Work]]]
    ) -> None:
        """Store ``batch`` by ``attempt``; where that fails, store its halves, until what fails stands alone."""
        if not batch:
            return
        try:
            stored = await self.database.retried(lambda: attempt(batch))
        except Exception as error:  # noqa: BLE001 - it is passed on to each caller
            if len(batch) > 1 and type(error) is not StoreUnavailableError:
                middle = len(batch) // 2
                await self._store(batch[:middle], attempt)
                await self._store(batch[middle:], attempt)
                return
            for work in batch:
                if not work.done.done():
                    work.done.set_exception(error)
            return
        for work in stored:
            if not work.done.done():
                work.done.set_result(None)

    async def _attempt(self, batch: list[_Work]) -> list[_Work]:
        """Store ``batch`` in the fewest statements and return what was stored; what needs a lane goes there."""
        numbering = Numbering(self.keeper, self.now())
        if not self.database.embedded:
            tenants: Batch = TenantBatch(numbering, self.database, [work.tenant for work in batch])
            attempt = await self._stored_by(tenants, batch)
        elif any(work.place is not None for work in batch):
            async with self.database.turns() as turn:
                tenants = EmbeddedBatch(numbering, turn)
                attempt = await self._stored_by(tenants, batch)
        else:
            await self._record_alone(batch)
            return batch
        attempt.stored(absent=tenants.apart)
        numbering.keep(tenants.apart)
        for work in batch:
            if work.place in tenants.apart:
                self._lanes.add(work.place, work)
        return [work for work in batch if work.place not in tenants.apart]

    async def _record_alone(self, batch: list[_Work]) -> None:
        """Store works without values on SQLite, in one statement, which needs no transaction."""
        events = [event for work in batch for event in await work.conclude(None, [])]
        attempt = NumberedAttempt(self._writers)
        rows = [audit_row(event, attempt.number(event), self.code) for event in _in_order(events)]
        if rows:
            statement = _INSERT + ", ".join([_ROW] * len(rows))
            await self.database.run_alone(statement, list(chain.from_iterable(rows)))
            attempt.stored()

    async def _stored_by(self, tenants: Batch, batch: list[_Work]) -> NumberedAttempt:
        """Store works with their numbers, but for those whose scopes are ``apart`` afterwards."""
        wants = [work.want for work in batch if work.want is not None and work.place is not None]
        if wants:
            await tenants.number(wants)
        near = [None if work.place in tenants.apart else work for work in batch]
        attempt = NumberedAttempt(self._writers)
        rows = []
        for at, event in sorted(
            await self._conclude(near, tenants.numbering), key=lambda pair: pair[1].id.int
        ):
            number = attempt.number(event, tenants.condition(batch[at].place))
            rows.append((at, audit_row(event, number, self.code)))
        await tenants.store([work.place for work in batch], rows)
        return attempt

    async def _attempt_together(self, batch: list[_Work]) -> list[_Work]:
        """Store ``batch`` in one transaction that locks what it changes: of one tenant, or of any on SQLite."""
        numbering = Numbering(self.keeper, self.now())
        async with self.database.transaction(batch[0].tenant) as tx:
            wants = [work.want for work in batch if work.want is not None and work.place is not None]
            if wants:
                await Allocation(tx, numbering).run(wants)
            events = [event for _, event in await self._conclude(batch, numbering)]
            await self.add(tx, events)
        numbering.keep()
        return batch

    async def _conclude(
        self, batch: Sequence[_Work | None], numbering: Numbering
    ) -> list[tuple[int, AuditEvent]]:
        """Return the events of numbered works, each with the place of its work in the batch."""
        events: list[tuple[int, AuditEvent]] = []
        for at, work in enumerate(batch):
            if work is None:
                continue
            if work.want is None or work.place is None:
                own = await work.conclude(None, [])
            else:
                (ordinals,) = await numbering.numbered([work.want])
                own = await work.conclude(numbering.uses[work.place], ordinals)
            events.extend((at, event) for event in own)
        return events


def _give_up(done: "asyncio.Future[None]") -> None:
    if not done.done():
        done.set_exception(StoreUnavailableError("The database does not answer.", retry_after_s=1.0))


def _only(events: Sequence[AuditEvent]) -> Conclude:
    """Return a ``conclude`` function that adds just these events."""

    async def conclude(_use: Any, _ordinals: Sequence[int]) -> Sequence[AuditEvent]:
        return events

    return conclude


def _in_order(events: Sequence[AuditEvent]) -> Sequence[AuditEvent]:
    """Return events in the order of their ids, in which those of one transaction enter the log."""
    return sorted(events, key=lambda event: event.id.int) if len(events) > 1 else events


def audit_row(event: AuditEvent, number: WriterNumber, code: Code) -> tuple[Any, ...]:
    """Return the row of ``event``, with its number and code, in the order of ``AUDIT_COLUMNS``."""
    return (
        *(event.tenant, event.id, event.at, event.actor, _roles(tuple(event.roles))),
        *(event.action, event.outcome, event.middleware, event.policy_version, event.error_code),
        *(event.scope_ref, event.in_hmac, event.out_hmac, event.blocks, event.bytes_in, event.bytes_out),
        *(_text(event.counts), event.duration_us, event.request_id, event.traceparent),
        *(_text(event.details), event.sealed, event.on_behalf_of, event.key_name, event.address_class),
        *(event.decision, _versions(event.versions)),
        *(*number, *code(event, number)),
    )


@lru_cache(256)
def _roles(roles: tuple[str, ...]) -> str:
    return json.dumps(sorted(roles))


@lru_cache(16)
def _version_of(name: str, version: str) -> str:
    return json.dumps({name: version})


def _versions(values: Mapping[str, Any] | None) -> str | None:
    if values is not None and len(values) == 1:
        ((name, version),) = values.items()
        if type(version) is str:  # nearly every event has just the service's own
            return _version_of(name, version)
    return None if values is None else json.dumps(values)


def _text(values: Mapping[str, object]) -> str:
    return json.dumps(dict(values)) if values else "{}"
