"""Numbers without gaps for the events that this process writes, so that a deleted event leaves a gap.

A writer numbers the events of each tenant from 1. One attempt at a time has it, and only an attempt that is known to be
stored hands it back: after any other the writer is never used again, so no number of it is in doubt. Attempts that
store at the same time have different writers, and a lower number of a writer is always stored before a higher one.
A writer ends after a day, so that what is known of its numbers may be forgotten once it is long over.
"""

import secrets
import time
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from typing import Final

from app.core.audit import AuditEvent, WriterNumber

LIFETIME_S: Final = 24 * 3600.0
"""A writer that is older begins no further attempt."""
_NAME_BYTES: Final = 8

Clocks = tuple[float, float]
"""Seconds by the clock of the day, which others may set, and by one that stands still while the machine sleeps."""


def _clocks() -> Clocks:
    return time.time(), time.monotonic()


@dataclass(slots=True)
class EventWriter:
    """A writer: when it began, its random name, and the number of its last event in each tenant."""

    began: Clocks
    name: str = field(default_factory=lambda: secrets.token_hex(_NAME_BYTES))
    last: dict[str, int] = field(default_factory=dict)

    def is_over(self, now: Clocks) -> bool:
        """Return whether its lifetime has passed, by either clock."""
        (day, still), (began_day, began_still) = now, self.began
        return abs(day - began_day) >= LIFETIME_S or abs(still - began_still) >= LIFETIME_S


@dataclass(slots=True)
class WriterPool:
    """The writers of this process that nobody has; who asks gets the one that was used last, or a new one."""

    free: list[EventWriter] = field(default_factory=list)
    clocks: Callable[[], Clocks] = _clocks

    def take(self) -> EventWriter:
        """Return a writer that nobody else has, and whose lifetime has not passed."""
        now = self.clocks()
        while self.free:
            writer = self.free.pop()
            if not writer.is_over(now):
                return writer
        return EventWriter(now)


@dataclass(slots=True)
class _Run:
    """Numbers of one writer, of one tenant and unit: they rise with the ids of the events."""

    tenant: str
    unit: Hashable
    writer: EventWriter
    number: int
    event: int


@dataclass(slots=True)
class NumberedAttempt:
    """The numbers of one attempt to store events; say so when it is `stored`, and nothing else when it is not."""

    pool: WriterPool
    _writers: list[EventWriter] = field(default_factory=list)
    _used: dict[str, int] = field(default_factory=dict)
    _newest: dict[tuple[str, Hashable], _Run] = field(default_factory=dict)
    _runs: list[_Run] = field(default_factory=list)

    def number(self, event: AuditEvent, unit: Hashable = None) -> WriterNumber:
        """Return the number of an event; call it in the order of their ids.

        ``unit`` names what is stored together or not at all: events of different units never share a writer.
        """
        key = event.tenant, unit
        run = self._newest.get(key)
        # The log takes the events of one transaction in the order of their ids.
        if run is None or run.event >= event.id.int:
            run = self._newest[key] = self._begin(event.tenant, unit)
        run.event = event.id.int
        run.number += 1
        return WriterNumber(run.writer.name, run.number)

    def stored(self, absent: Collection[Hashable] = ()) -> None:
        """Hand the writers back once all is durable, but for the units ``absent``, of which nothing was stored."""
        for run in self._runs:
            if run.unit not in absent:
                run.writer.last[run.tenant] = run.number
        self.pool.free += reversed(self._writers)
        self._writers = []

    def _begin(self, tenant: str, unit: Hashable) -> _Run:
        used = self._used.get(tenant, 0)
        self._used[tenant] = used + 1
        if used == len(self._writers):
            self._writers.append(self.pool.take())
        writer = self._writers[used]
        run = _Run(tenant, unit, writer, writer.last.get(tenant, 0), -1)
        self._runs.append(run)
        return run
