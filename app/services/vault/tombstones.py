"""Delete tombstones of scopes that ended more than a month ago; their highest ordinals stay as their tenant's floor."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from app.store.database import Database
from app.store.vault.tombstones import date_tombstones, remove_tombstones

KEPT: Final = timedelta(days=30)
"""As long as a scope lives unless a policy says otherwise; opened data keys are forgotten after minutes."""
_BATCH: Final = 500
_PAUSE_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class TombstoneService:
    """Deletes tombstones in short transactions; one process at a time (``Background`` sees to that)."""

    database: Database
    now: Callable[[], datetime]

    async def purge(self) -> int:
        """Date the tombstones of older releases, then delete those of long ago; return how many it went through."""
        dated = removed = _BATCH
        total = 0
        while dated == _BATCH:
            async with self.database.system_transaction(quiet=True) as tx:
                dated = await date_tombstones(tx, self.now(), limit=_BATCH)
            await asyncio.sleep(_PAUSE_S)
        while removed == _BATCH:
            async with self.database.system_transaction() as tx:
                removed = await remove_tombstones(tx, self.now() - KEPT, self.now(), limit=_BATCH)
            total += removed
            await asyncio.sleep(_PAUSE_S)
        return total
