"""How many events a tenant's record has by day, action, outcome and actor, without reading them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.errors import InvalidArgumentsError
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.store.audit.counts import (
    CountRow,
    Dimension,
    add_counts,
    find_counted,
    list_counts,
    list_uncounted,
)

__all__ = ["AuditCounts", "CountPage", "Dimension"]

MOST_ROWS: Final = 10_000
BATCH: Final = 2_000
"""Leaves counted in one transaction, during which SQLite's other writers wait."""
_MOST_BATCHES: Final = 200
_TENANTS: Final = 50


class CountPage(NamedTuple):
    """Sums, and how far they go: they are of the first ``counted`` of the ``sealed`` events."""

    items: list[CountRow]
    counted: int
    sealed: int


@dataclass(frozen=True, slots=True)
class AuditCounts:
    """Counts what is sealed, from the first leaf on, each leaf once; and reads the counts."""

    audit: AuditService

    async def count(self) -> int:
        """Count what is sealed and not counted, at most 400,000 events; return how many leaves that were."""
        total = 0
        for _ in range(_MOST_BATCHES):
            async with self.audit.database.system_transaction(write=False) as tx:
                uncounted = await list_uncounted(tx, _TENANTS)
            if not uncounted:
                break
            for tenant, start, sealed in uncounted:
                end = min(sealed, start + BATCH)
                async with self.audit.database.system_transaction(quiet=True) as tx:
                    total += end - start if await add_counts(tx, tenant, start, end) else 0
        return total

    async def counts(
        self,
        caller: Caller,
        by: Sequence[Dimension],
        request: RequestInfo | None = None,
        *,
        since: date | None = None,
        until: date | None = None,
    ) -> CountPage:
        """Return sums of the caller's own tenant by one or more dimensions, in their order.

        Needs the role auditor and is itself recorded. ``since`` is the first day, ``until`` the one behind the last
        (UTC). Raises InvalidArgumentsError for more than 10,000 sums.
        """
        async with self.audit.refusals(caller, "audit.counts", request):
            caller.require(Role.AUDITOR)
            days = [None if day is None else day.isoformat() for day in (since, until)]
            async with self.audit.database.transaction(caller.tenant, write=False) as tx:
                reach = await find_counted(tx, caller.tenant)
                rows = await list_counts(tx, caller.tenant, (days[0], days[1]), by, MOST_ROWS + 1)
            if len(rows) > MOST_ROWS:
                raise InvalidArgumentsError(
                    f"That would be more than {MOST_ROWS} sums: count by less, or give a shorter time.",
                    details={"pointer": "/by", "maximum": MOST_ROWS},
                )
        details = {"by": ",".join(by), "returned": len(rows)}
        await self.audit.record(
            self.audit.new_event(caller, "audit.counts", OUTCOME_OK, request, details=details)
        )
        return CountPage(rows, reach.counted, reach.sealed)
