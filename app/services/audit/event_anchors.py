"""Which anchors keep a checkpoint that has an event, since when, and how long after it was signed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from app.core.access import Caller, Role
from app.services.audit.anchoring import LogLag
from app.store.audit.anchors import list_anchored, oldest_beyond
from app.store.audit.log import checkpoint_of, next_entry
from app.store.database import Database


class EventAnchor(NamedTuple):
    """What an anchor keeps of an event.

    ``size`` is that of the newest checkpoint that it is known to keep (None: none) and ``at`` when it took it.
    ``lag_s``: how long after it was signed; where ``has_event`` is false: for how long the first checkpoint with the
    event has been signed and is not known to be there. None: nobody can say, as before there is such a checkpoint.
    """

    name: str
    size: int | None
    at: datetime | None
    has_event: bool
    lag_s: float | None


@dataclass(frozen=True, slots=True)
class EventAnchors:
    """Says what the anchors of the settings, and those that were there before, keep of an event."""

    database: Database
    names: Sequence[str]
    now: Callable[[], datetime]

    @classmethod
    def of(cls, lag: LogLag) -> "EventAnchors":
        """Return what reads where ``lag`` does, of the same anchors."""
        return cls(lag.database, lag.anchors, lag.now)

    async def keeping(self, caller: Caller, position: int) -> Sequence[EventAnchor]:
        """Return what each anchor keeps of the event at a position of the log of the caller's own tenant."""
        caller.require(Role.AUDITOR)
        async with self.database.system_transaction(write=False) as tx:
            entry = await next_entry(tx, caller.tenant, position)
            kept = await list_anchored(tx)
            signed = await oldest_beyond(tx, entry.position) if entry is not None else None
            made = {name: await checkpoint_of(tx, anchored.size) for name, anchored in kept.items()}
        anchors = []
        for name in dict.fromkeys([*self.names, *sorted(kept)]):
            anchored, checkpoint = kept.get(name), made.get(name)
            has_event = anchored is not None and entry is not None and anchored.size > entry.position
            since = checkpoint.at if has_event and checkpoint is not None else None if has_event else signed
            until = anchored.at if has_event and anchored is not None else self.now()
            anchors.append(
                EventAnchor(
                    name,
                    anchored.size if anchored is not None else None,
                    anchored.at if anchored is not None else None,
                    has_event,
                    max(0.0, (until - since).total_seconds()) if since is not None else None,
                )
            )
        return anchors
