"""Background jobs: they repeat, each runs in one process at a time, and each is safe to repeat."""

import asyncio
import logging
import random
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from app.core.background import meanwhile
from app.core.errors import StoreUnavailableError
from app.services.access.access import AccessService
from app.services.access.identity.mirror import KEPT
from app.services.access.sessions import SessionService
from app.services.audit.audit import AuditService
from app.services.audit.counts import AuditCounts
from app.services.audit.sealer import LogSealer
from app.services.audit.sinks.delivery import Outlets
from app.store.access.access import remove_old_secrets
from app.store.access.identity_marks import remove_old_marks
from app.store.access.provisioned import remove_forgotten
from app.store.audit.audit import drop_emptied_partitions, make_partitions
from app.store.database import Database
from app.store.locks import only_here

_ERASE_S = 4.0
_SEAL_S = 6.0
"""A checkpoint is promised within 10 s, and jobs wait up to a quarter longer than this."""
_MINUTE_S = 60.0
_PURGE_S = 600.0
_DAY_S = 24 * 3600.0

log = logging.getLogger("sluice.background")


@dataclass(frozen=True, slots=True)
class Job:
    """A task to run about every ``every_s`` seconds; ``run`` may be interrupted at any point and run again."""

    name: str
    every_s: float
    run: Callable[[], Awaitable[object]]
    everywhere: bool = False
    """Each process runs it for itself."""
    at_end: bool = False
    """It runs once more when the process ends."""


@dataclass(frozen=True, slots=True)
class Background:
    """Runs jobs; replicas share the work by one lock per job."""

    database: Database
    jobs: Sequence[Job]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the jobs while the body runs."""
        try:
            async with meanwhile(self._run(), name="background"):
                yield
        finally:
            for job in self.jobs:
                if job.at_end:
                    await self.once(job)

    async def once(self, job: Job) -> bool:
        """Run a job now unless another process does; a failure is logged without content and not raised."""
        try:
            if job.everywhere:
                await job.run()
                return True
            async with only_here(self.database, f"sluice job {job.name}") as mine:
                if mine:
                    await job.run()
                return mine
        except StoreUnavailableError:
            log.warning("job %s failed: the database does not answer", job.name)
        except Exception as error:  # noqa: BLE001 - a failing job must not stop the others
            # Messages of exceptions may have content: only the type and the place are logged.
            place = traceback.extract_tb(error.__traceback__)[-1]
            log.error(  # noqa: TRY400 - a traceback prints the message
                "job %s failed: %s in %s, line %s", job.name, type(error).__name__, place.name, place.lineno
            )
        return False

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for job in self.jobs:
                group.create_task(self._repeat(job), name=f"job {job.name}")

    async def _repeat(self, job: Job) -> None:
        """Repeat a job at random intervals, which spread replicas that started together."""
        await self.sleep(job.every_s * self.chance())
        while True:
            await self.once(job)
            await self.sleep(job.every_s * (0.75 + 0.5 * self.chance()))


def housekeeping(
    *,
    purge_scopes: Callable[[], Awaitable[object]],
    purge_every_s: float,
    index_values: Callable[[], Awaitable[object]],
    empty_tenants: Callable[[], Awaitable[object]],
    run_erasures: Callable[[], Awaitable[object]],
    sessions: SessionService,
    access: AccessService,
    purge_disclosures: Callable[[], Awaitable[object]],
    purge_ingestions: Callable[[], Awaitable[object]],
    embed_documents: Callable[[], Awaitable[object]],
    prepare_documents: Callable[[], Awaitable[object]],
    outlets: Outlets,
    purge_events: Callable[[], Awaitable[object]],
    purge_tombstones: Callable[[], Awaitable[object]],
) -> list[Job]:
    """Return the jobs of every installation."""
    database = access.database

    async def forget_old_secrets() -> None:
        async with database.system_transaction() as tx:
            await remove_old_secrets(tx, access.now())
            await remove_old_marks(tx, access.now())
            await remove_forgotten(tx, access.now() - KEPT)

    return [
        Job("purge-scopes", purge_every_s, purge_scopes),
        Job("index-values", _MINUTE_S, index_values),
        Job("empty-erased-tenants", _MINUTE_S, empty_tenants),
        Job("run-erasures", _ERASE_S, run_erasures),
        Job("purge-sessions", _MINUTE_S, sessions.purge_idle),
        Job("purge-disclosures", _MINUTE_S, purge_disclosures),
        Job("purge-ingestions", _MINUTE_S, purge_ingestions),
        Job("embed-documents", _MINUTE_S, embed_documents),
        Job("prepare-documents", _MINUTE_S, prepare_documents),
        Job("forget-old-secrets", _MINUTE_S, forget_old_secrets),
        Job("settle-keys", _MINUTE_S, access.settle_keys),
        Job("record-refusals", _MINUTE_S, access.authenticator.record_refused, everywhere=True, at_end=True),
        Job("purge-tombstones", _PURGE_S, purge_tombstones),
        Job("purge-audit", _PURGE_S, purge_events),
        *_record_jobs(access.audit, outlets),
    ]


def _record_jobs(audit: AuditService, outlets: Outlets) -> list[Job]:
    """Return the jobs that seal the record, and bring it elsewhere."""

    async def prepare_months() -> None:
        async with audit.database.system_transaction() as tx:
            await make_partitions(tx)
        async with audit.database.system_transaction(quiet=True) as tx:
            await drop_emptied_partitions(tx)

    sealer = LogSealer.over(audit)
    return [
        Job("seal-audit", _SEAL_S, sealer.seal),
        Job("count-audit-events", _SEAL_S, AuditCounts(audit).count),
        Job("anchor-checkpoints", _SEAL_S, outlets.anchoring.run),
        *(Job(f"deliver {each.sink.name}", _SEAL_S, each.run) for each in outlets.deliveries),
        Job("look-at-audit-log", _SEAL_S, outlets.lag.look, everywhere=True),
        *([Job("archive-audit", _PURGE_S, outlets.archiving.keep_up)] if outlets.archiving else []),
        Job("forget-audit-writers", _DAY_S, sealer.forget_writers),
        Job("prepare-audit-months", _DAY_S, prepare_months),
    ]
