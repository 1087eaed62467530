"""Deliver sealed events to sinks, in order and at least once; each sink goes at its own pace, from its own cursor."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from app.core.archive import EventArchive
from app.core.contracts.anchors import Anchor
from app.core.contracts.sinks import Sink, SinkBatch, SinkError, SinkEvent, SinkTooLargeError
from app.services.audit.anchoring import Anchoring, LogLag
from app.services.audit.archive.archiving import ArchiveService
from app.services.audit.audit import AuditService
from app.services.audit.sinks.ocsf import short_sink_event, sink_event
from app.store.audit.audit import RecordedEvent
from app.store.audit.log import LogLeaf
from app.store.audit.sinks import SinkCursor, list_cursors, list_pending, put_cursor
from app.store.database import Database

BATCH: Final = 500
"""Events that a sink gets at a time, and again after a failure."""
_BATCHES: Final = 200
_LONGEST_WAIT_S: Final = 300.0

_Stored = tuple[LogLeaf, RecordedEvent]

log = logging.getLogger("sluice.audit")


@dataclass(slots=True)
class Delivery:
    """Brings one sink up to date; one process at a time runs it, and counts what happens in this one.

    ``failures`` are batches that were not taken, ``rejected`` events that the sink will never take, ``shortened``
    events that it got without what has no greatest length.
    """

    audit: AuditService
    sink: Sink
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    failures: int = 0
    rejected: int = 0
    shortened: int = 0
    _limit: int = 0
    _is_failing: bool = False

    async def run(self) -> None:
        """Deliver what is sealed, at most 100,000 events; after a failure the next run goes on from the same event.

        A sink that asks to be left alone is, for at most five minutes: the job's lock is kept meanwhile, so that no
        other process asks it.
        """
        self._limit = BATCH
        try:
            for _ in range(_BATCHES):
                if not await self._batch():
                    return
        except SinkError as error:
            self._note(error)
            if error.wait_s > 0:
                await self.sleep(min(error.wait_s, _LONGEST_WAIT_S))

    async def _batch(self) -> bool:
        """Deliver a batch; return whether more may follow at once, and raise SinkError where the sink took none."""
        database, name = self.audit.database, self.sink.name
        async with database.system_transaction(write=False) as tx:
            cursor = (await list_cursors(tx)).get(name, SinkCursor(name))
            pending = await list_pending(tx, cursor, self._limit)
        if pending.following == cursor:
            return False
        if pending.events:
            try:
                await self._deliver(cursor, pending.events, sink_event)
            except SinkTooLargeError:
                if len(pending.events) > 1:
                    # Half as many begin where these did: the cursor moves behind each part that is taken.
                    self.failures += 1
                    self._limit = len(pending.events) // 2
                    return True
                await self._shorten(cursor, pending.events)
        self._note(None)
        self._limit = min(BATCH, 2 * self._limit)
        async with database.system_transaction(quiet=True) as tx:
            await put_cursor(tx, pending.following._replace(at=self.audit.now()))
        return True

    async def _deliver(
        self,
        cursor: SinkCursor,
        events: Sequence[_Stored],
        form: Callable[[LogLeaf, RecordedEvent], SinkEvent],
    ) -> None:
        """Hand events over in a form, which is made away from the event loop: a batch takes some 50 ms."""
        formed = await asyncio.to_thread(lambda: [form(leaf, recorded) for leaf, recorded in events])
        rejected = await self.sink.deliver(SinkBatch(cursor.entry, cursor.position, formed))
        if rejected:
            self.rejected += rejected
            log.error(
                "sink %s rejected %d of %d events for good, from event %s to event %s",
                *(self.sink.name, rejected, len(formed), formed[0].uid, formed[-1].uid),
            )

    async def _shorten(self, cursor: SinkCursor, events: Sequence[_Stored]) -> None:
        """Deliver an event whose whole is too large without what has no greatest length; log which that is."""
        leaf = events[0][0]
        try:
            await self._deliver(cursor, events, short_sink_event)
        except SinkTooLargeError as error:
            raise SinkError(f"Even in short event {leaf.event} is not taken: {error}") from None
        self.shortened += 1
        log.error(
            "sink %s got event %s of tenant %s only in short: it does not take the whole of it",
            *(self.sink.name, leaf.event, leaf.tenant),
        )

    def _note(self, error: SinkError | None) -> None:
        """Count a failure, and log when failures begin and when they end."""
        self.failures += error is not None
        if error is not None and not self._is_failing:
            log.warning("sink %s does not take events, which wait for it: %s", self.sink.name, error)
        elif error is None and self._is_failing:
            log.warning("sink %s takes events again", self.sink.name)
        self._is_failing = error is not None


class SinkState(NamedTuple):
    """How far a sink is: for how long the oldest sealed event waits for it, and when it last got any."""

    name: str
    waits_s: float
    delivered: datetime | None


async def view_sinks(
    database: Database, names: Sequence[str], now: Callable[[], datetime]
) -> list[SinkState]:
    """Return how far sinks are, in the order of their names as given."""
    lag = LogLag(database, (), now, names)
    await lag.look()
    async with database.system_transaction(write=False) as tx:
        cursors = await list_cursors(tx)
    waits = lag.delivering_s()
    return [SinkState(name, waits[name], cursors.get(name, SinkCursor(name)).at) for name in names]


@dataclass(frozen=True, slots=True)
class Outlets:
    """Everything that leaves the log by itself: checkpoints for anchors, events for sinks, and months for an archive.

    Also how far all of them lag.
    """

    anchoring: Anchoring
    deliveries: Sequence[Delivery] = ()
    archiving: ArchiveService | None = None

    @classmethod
    def over(
        cls,
        audit: AuditService,
        anchors: Sequence[Anchor],
        sinks: Sequence[Sink],
        archive: EventArchive | None = None,
    ) -> "Outlets":
        """Return the outlets of a record."""
        names = [sink.name for sink in sinks]
        place = archive.name if archive is not None else None
        anchoring = Anchoring.over(audit.database, anchors, audit.now, names, place)
        archiving = ArchiveService(audit, archive) if archive is not None else None
        return cls(anchoring, [Delivery(audit, sink) for sink in sinks], archiving)

    @property
    def archive(self) -> EventArchive | None:
        """Return where months that are over are kept, if anywhere."""
        return self.archiving.archive if self.archiving is not None else None

    async def view(self) -> list[SinkState]:
        """Return how far each sink is."""
        audit = self.anchoring
        return await view_sinks(audit.database, [each.sink.name for each in self.deliveries], audit.now)

    @property
    def lag(self) -> LogLag:
        """Return how far sealing, anchors, sinks and the archive lag."""
        return self.anchoring.lag

    def counts(self) -> Mapping[str, Mapping[str, Callable[[], int]]]:
        """Return how to learn the ``failures``, ``rejected`` and ``shortened`` of this process, each by sink."""
        return {
            count: {delivery.sink.name: partial(getattr, delivery, count) for delivery in self.deliveries}
            for count in ("failures", "rejected", "shortened")
        }
