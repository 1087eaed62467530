"""Sinks: places outside, such as a SIEM, that get every sealed event of the audit record."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol


class SinkError(Exception):
    """A sink did not take events; the message says what to mend and holds no content.

    ``wait_s`` is for how many seconds it asks to be left alone, 0 where it does not.
    """

    def __init__(self, message: str, wait_s: float = 0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class SinkTooLargeError(SinkError):
    """A sink refuses events for what they are, mostly too large, together or one by itself: fewer or smaller may go."""


class SinkEvent(NamedTuple):
    """An event as it is delivered: its id, tenant and moment, whether it went well, one line of OCSF in JSON."""

    uid: str
    tenant: str
    at: datetime
    success: bool
    line: bytes


class SinkBatch(NamedTuple):
    """Events in their order, and where in the log of heads they begin; batches that begin later follow later.

    A batch that comes again begins where it began before, and may be longer.
    """

    entry: int
    position: int
    events: Sequence[SinkEvent]


class Sink(Protocol):
    """One place; it may get an event again after a failure, and its consumers tell by the id."""

    @property
    def name(self) -> str:
        """Return how metrics and log lines name it: never a secret."""
        ...

    async def deliver(self, batch: SinkBatch) -> int:
        """Hand over events in their order, and return once they are there; raise SinkError where they may not be.

        Return how many of them it has rejected for good, which is 0 for most: sending those again is of no use.
        """
        ...
