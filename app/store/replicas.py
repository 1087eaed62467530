"""Send long reads to a streaming replica of PostgreSQL, while it has all that the primary had when they began."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.background import meanwhile
from app.core.errors import StoreUnavailableError
from app.store.database import Database

NEAR_S = 2.0
"""A replica that is further behind is not asked."""

_LOOK_S = 1.0
_LOOK_AGAIN_S = 5.0
_STEP_S = 0.1
_CATCH_UP_S = 0.1
"""How long a read waits for what the primary wrote just before it."""

_CATCH_UP_STEP_S = 0.005
_WRITTEN = "SELECT pg_current_wal_flush_lsn()::text"
_SYSTEM = "SELECT system_identifier FROM pg_control_system()"
# A replica that was promoted still tells how far it once followed.
_HAS = "SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= CAST(CAST($1 AS text) AS pg_lsn)"

log = logging.getLogger("sluice.store")
T = TypeVar("T")


class Reads:
    """Where reads of one tenant go: to the replica if it is near, else to the primary.

    A read begins with ``mark``: how far the primary has written. The replica answers only once it has all of that, so
    nobody is shown what was erased, or misses what was stored, before the read began.
    """

    def __init__(self, primary: Database, replica: Database | None = None) -> None:
        self._primary = primary
        self._replica = replica
        self._near_until = 0.0

    @property
    def near(self) -> bool:
        """Return whether the replica had all that the primary wrote until two seconds ago."""
        return time.monotonic() < self._near_until

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Reads"]:
        """Look at the replica once a second inside the block; no read does."""
        if self._replica is None:
            yield self
            return
        async with meanwhile(self._keep_looking(), name="replica"):
            yield self

    async def mark(self) -> str | None:
        """Return how far the primary has written by now; None: the primary itself is to be read."""
        return await self._written() if self.near else None

    async def run(self, tenant: str, mark: str | None, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Return what ``work`` reads in a transaction of ``tenant`` that sees all that ``mark`` stands for.

        ``work`` writes nothing: where the replica fails, the primary does it again.
        """
        if mark is not None and self._replica is not None and self.near:
            try:
                async with self._replica.transaction(tenant, write=False) as tx:
                    if await _reached(tx, mark, _CATCH_UP_S, _CATCH_UP_STEP_S):
                        return await work(tx)
            except StoreUnavailableError as error:
                self._near_until = 0.0
                log.warning("the replica failed, and the primary is read: %s", type(error).__name__)
        async with self._primary.transaction(tenant, write=False) as tx:
            return await work(tx)

    async def look(self) -> bool:
        """Return whether the replica has what the primary has written, within two seconds; ``near`` follows."""
        started = time.monotonic()
        if self._replica is None:
            return False
        try:
            mark = await self._written()
            async with self._primary.connection() as primary, self._replica.connection() as replica:
                systems = {(await tx.exec_driver_sql(_SYSTEM)).scalar_one() for tx in (primary, replica)}
                reached = len(systems) == 1 and await _reached(replica, mark, NEAR_S, _STEP_S)
        except StoreUnavailableError:
            reached = False
        self._near_until = started + NEAR_S if reached else 0.0
        return reached

    async def _written(self) -> str:
        async with self._primary.connection() as tx:
            return str((await tx.exec_driver_sql(_WRITTEN)).scalar_one())

    async def _keep_looking(self) -> None:
        was_near: bool | None = None
        while True:
            near = await self.look()
            if near is not was_near:
                log.warning("the replica %s", "is asked" if near else "is not asked: it is away or behind")
            was_near = near
            await asyncio.sleep(_LOOK_S if near else _LOOK_AGAIN_S)


async def _reached(tx: AsyncConnection, mark: str, within_s: float, step_s: float) -> bool:
    """Return whether the replica has replayed the log up to ``mark``; ask again until ``within_s`` have passed."""
    until = time.monotonic() + within_s
    while not (await tx.exec_driver_sql(_HAS, (mark,))).scalar_one():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(step_s)
    return True


@asynccontextmanager
async def reading(primary: Database, url: str | None) -> AsyncIterator[Reads]:
    """Open the replica at ``url``, behind a pooler if the primary is, and look at it inside the block."""
    if url is None:
        yield Reads(primary)
        return
    direct = url if primary.pooled else None
    async with (
        Database(url, pool_size=primary.pool_size, patience=primary.patience, direct_url=direct) as replica,
        Reads(primary, replica).running() as reads,
    ):
        yield reads
