"""Seal until nothing is left: other databases of the same PostgreSQL may hold a transaction open for a moment."""

import asyncio
import time

from sqlalchemy import text

from app.services.audit.audit import AuditService
from app.services.audit.sealer import LogSealer
from app.store.locks import only_here

_UNSEALED = (
    "SELECT count(*) FROM audit_event e WHERE NOT EXISTS "
    "(SELECT 1 FROM log_leaf l WHERE l.tenant = e.tenant AND l.event = e.id)"
)
_LIMIT_S = 20.0


async def seal_all(audit: AuditService) -> int:
    """Seal everything that is committed now; return how many events that were."""
    sealer, total, until = LogSealer.over(audit), 0, time.monotonic() + _LIMIT_S
    while True:
        async with only_here(audit.database, "sluice job seal-audit") as mine:
            total += await sealer.seal() if mine else 0
        async with audit.database.system_transaction(write=False) as tx:
            left = (await tx.execute(text(_UNSEALED))).scalar_one()
        if not left:
            return total
        assert time.monotonic() < until, f"{left} events are not sealed"
        await asyncio.sleep(0.02)
