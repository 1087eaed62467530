"""What a tenant's record says of the last days, for those who keep looking: one look is on record, not each reading."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.audit.counts import CountPage
from app.store.audit.audit import AuditFilters, list_events
from app.store.audit.counts import Dimension, find_counted, list_counts

WATCH: Final = "audit.watch"
_MOST_SUMS: Final = 10_000


class RecentActivity(NamedTuple):
    """Sums of days, and the newest events."""

    sums: CountPage
    events: Sequence[AuditEvent]


@dataclass(frozen=True, slots=True)
class ActivityFeed:
    """Reads for watchers whom ``admit`` has admitted."""

    audit: AuditService

    async def admit(self, caller: Caller, request: RequestInfo | None = None) -> None:
        """Put on record that an auditor begins to watch; raise ForbiddenError, on record too, for others."""
        async with self.audit.refusals(caller, WATCH, request):
            caller.require(Role.AUDITOR)
        await self.audit.record(self.audit.new_event(caller, WATCH, OUTCOME_OK, request))

    async def counted(self, tenant: str) -> int:
        """Return how many of a tenant's sealed events are counted: it grows when there is something new."""
        async with self.audit.database.transaction(tenant, write=False) as tx:
            return (await find_counted(tx, tenant)).counted

    async def read(
        self, tenant: str, by: Sequence[Dimension], *, first: date, since: datetime, most: int
    ) -> RecentActivity:
        """Return sums from the day ``first`` on, and the newest events since a moment, at most ``most``."""
        async with self.audit.database.transaction(tenant, write=False) as tx:
            reach = await find_counted(tx, tenant)
            rows = await list_counts(tx, tenant, (first.isoformat(), None), by, _MOST_SUMS)
            stored = await list_events(tx, tenant, AuditFilters(since=since), before=None, limit=most)
        sums = CountPage(rows, reach.counted, reach.sealed)
        return RecentActivity(sums, [each.event for each in stored])
