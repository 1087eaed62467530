"""When keys were used last: from the counts of the record, so that no call writes anything for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from app.core.access import Caller, Role
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.store.audit.counts import last_days

LOOKED_BACK_DAYS: Final = 90


@dataclass(frozen=True, slots=True)
class KeyUsage:
    """Says on which day (UTC) a key was last on record."""

    access: AccessService

    async def last_used(
        self, caller: Caller, key_ids: Sequence[str], request: RequestInfo | None = None
    ) -> Mapping[str, date]:
        """Return the last day of each key of the caller's tenant; absent: none within 90 days.

        Counts follow the seal of the record, some seconds behind; an hour at most where it is behind.
        """
        audit = self.access.audit
        async with audit.refusals(caller, "key.list", request):
            caller.require(Role.KEY_CUSTODIAN)
        since = self.access.now().date() - timedelta(days=LOOKED_BACK_DAYS)
        async with self.access.database.transaction(caller.tenant, write=False) as tx:
            days = await last_days(tx, caller.tenant, key_ids, since.isoformat())
        return {key_id: date.fromisoformat(day) for key_id, day in days.items()}
