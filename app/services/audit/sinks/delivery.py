"""Deliver sealed events to sinks, in order and at least once; each sink goes at its own pace, from its own cursor."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from app.core.contracts.anchors import Anchor
from app.core.contracts.sinks import Sink, SinkBatch, SinkError, SinkEvent
from app.services.audit.anchoring import Anchoring, LogLag
from app.services.audit.audit import AuditService
from app.services.audit.sinks.ocsf import sink_event
from app.store.audit.audit import RecordedEvent
from app.store.audit.log import LogLeaf
from app.store.audit.sinks import SinkCursor, list_cursors, list_pending, put_cursor
from app.store.database import Database

BATCH: Final = 500
"""Events that a sink gets at a time, and again after a failure."""
_BATCHES: Final = 200

log = logging.getLogger("sluice.audit")


@dataclass(slots=True)
class Delivery:
    """Brings one sink up to date; one process at a time runs it, ``failures`` counts those of this one."""

    audit: AuditService
    sink: Sink
    failures: int = 0
    _is_failing: bool = False

    def count_failures(self) -> int:
        """Return how often the sink did not take a batch."""
        return self.failures

    async def run(self) -> None:
        """Deliver what is sealed, at most 100,000 events; after a failure the next run goes on from the same event."""
        for _ in range(_BATCHES):
            if not await self._batch():
                return

    async def _batch(self) -> bool:
        """Deliver a batch; return whether more may follow at once."""
        database, name = self.audit.database, self.sink.name
        async with database.system_transaction(write=False) as tx:
            cursor = (await list_cursors(tx)).get(name, SinkCursor(name))
            pending = await list_pending(tx, cursor, BATCH)
        if pending.following == cursor:
            return False
        if pending.events:
            try:
                events = await asyncio.to_thread(_formed, pending.events)
                await self.sink.deliver(SinkBatch(cursor.entry, cursor.position, events))
            except SinkError as error:
                self._note(error)
                return False
        self._note(None)
        async with database.system_transaction(quiet=True) as tx:
            await put_cursor(tx, pending.following._replace(at=self.audit.now()))
        return True

    def _note(self, error: SinkError | None) -> None:
        """Count a failure, and log when failures begin and when they end."""
        self.failures += error is not None
        if error is not None and not self._is_failing:
            log.warning("sink %s does not take events, which wait for it: %s", self.sink.name, error)
        elif error is None and self._is_failing:
            log.warning("sink %s takes events again", self.sink.name)
        self._is_failing = error is not None


def _formed(events: Sequence[tuple[LogLeaf, RecordedEvent]]) -> list[SinkEvent]:
    """Return events as sinks get them, formed away from the event loop: a batch takes some 50 ms."""
    return [sink_event(leaf, recorded) for leaf, recorded in events]


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
    """Everything that leaves the log by itself: checkpoints for anchors, events for sinks, and how far both lag."""

    anchoring: Anchoring
    deliveries: Sequence[Delivery] = ()

    @classmethod
    def over(cls, audit: AuditService, anchors: Sequence[Anchor], sinks: Sequence[Sink]) -> "Outlets":
        """Return the outlets of a record."""
        names = [sink.name for sink in sinks]
        anchoring = Anchoring.over(audit.database, anchors, audit.now, names)
        return cls(anchoring, [Delivery(audit, sink) for sink in sinks])

    async def view(self) -> list[SinkState]:
        """Return how far each sink is."""
        audit = self.anchoring
        return await view_sinks(audit.database, [each.sink.name for each in self.deliveries], audit.now)

    @property
    def lag(self) -> LogLag:
        """Return how far sealing, anchors and sinks lag."""
        return self.anchoring.lag

    def failures(self) -> Mapping[str, Callable[[], int]]:
        """Return for each sink how to learn how often it failed in this process."""
        return {delivery.sink.name: delivery.count_failures for delivery in self.deliveries}
