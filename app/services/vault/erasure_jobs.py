"""Do the erasures that were ordered, in short transactions, and end each with a signed receipt.

How far a job is stands in the database, in the transaction that erases: it goes on wherever it was interrupted. Each
step is an erasure like any other, noted outside the database before it holds, so that a restored backup repeats it.
"""

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Final
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import StoreUnavailableError
from app.core.ids import uuid7
from app.services.audit.export import moment_text
from app.services.audit.log_keys import LogKeyService
from app.services.vault.erasure import ErasureReceipt, ErasureService, Kind
from app.services.vault.tenant_erasure import TenantErasure
from app.services.vault.vault import VaultService
from app.store.access.tenants import find_tenant
from app.store.audit.audit import Transaction
from app.store.database import Database
from app.store.vault.blind import count_unindexed
from app.store.vault.erasure_jobs import (
    DONE,
    RUNNING,
    StoredErasureJob,
    find_job,
    list_running,
    update_job,
)
from app.store.vault.subjects import SoughtDigests, SoughtEntries, list_places, list_scopes_with
from app.store.vault.vault import EntryPlace, remove_entries, remove_scope

RECEIPT: Final = "sluice erasure receipt 1"
"""First line of a receipt: no checkpoint begins like this, so that none can be taken for the other."""
_ENTRIES: Final = 200
_SCOPES: Final = 20
"""What one transaction erases, during which SQLite's other writers wait."""
_PAUSE_S: Final = 0.01
_COUNTED: Final = 100_000

log = logging.getLogger("sluice.vault")


@dataclass(frozen=True, slots=True)
class ErasureJobs:
    """Does what was ordered; one process at a time (``Background`` sees to that), and two do no harm."""

    erasures: ErasureService
    tenants: TenantErasure

    @classmethod
    def over(cls, vault: VaultService, tenants: TenantErasure) -> "ErasureJobs":
        """Return what erases in a vault, and tenants."""
        return cls(vault.erasures, tenants)

    @property
    def _database(self) -> Database:
        return self.erasures.database

    async def run(self) -> None:
        """Go on with every job, by turns, until each is done or waits for another job of the background."""
        waiting: set[UUID] = set()
        while True:
            async with self._database.system_transaction(write=False) as tx:
                running = [job for job in await list_running(tx) if job[1] not in waiting]
            if not running:
                return
            for tenant, job_id in running:
                if not await self._try_step(tenant, job_id):
                    waiting.add(job_id)
            await asyncio.sleep(_PAUSE_S)

    async def finish(self, tenant: str, job_id: UUID) -> None:
        """Go on with one job until it is done, or waits for another job of the background."""
        more = True
        while more:
            more = await self._step(tenant, job_id)

    async def _try_step(self, tenant: str, job_id: UUID) -> bool:
        """Do one step; return whether the next may follow at once. One job that fails does not stop others."""
        try:
            return await self._step(tenant, job_id)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, other people wait for their erasure
            log.error("erasure %s failed and is tried again later: %s", job_id, type(error).__name__)  # noqa: TRY400
            return False

    async def _step(self, tenant: str, job_id: UUID) -> bool:
        await self.erasures.audit.keys.ready(tenant)
        history = await self.erasures.history()
        erased: list[str] = []
        async with self._database.transaction(tenant) as tx:
            job = await find_job(tx, tenant, job_id, lock=True)
            if job is None or job.state != RUNNING:
                return False
            if job.kind == "values":
                worked = await self._erase_values(tx, job, history)
            elif job.kind == "scopes":
                worked = await self._erase_scopes(tx, job, history, erased)
            else:
                worked = False
        if worked:
            await self.erasures.count()
            for name in erased:
                self.erasures.key_keeper.forget(tenant, name)
            return True
        if job.kind == "values" and await self.erasures.index.fill(tenant=tenant):
            return True  # entries of older releases have their digests now, by which they are found
        if job.kind == "tenant" and not await self._is_empty(job):
            return False
        return await self._finish(tenant, job_id, history)

    async def _erase_values(self, tx: Transaction, job: StoredErasureJob, history: str | None) -> bool:
        sought = sought_by(job.plan)
        places = await list_places(tx, job.tenant, sought, limit=_ENTRIES)
        removed = await remove_entries(tx, job.tenant, places)
        if not removed:
            return False
        removed.sort(key=lambda place: place.scope)
        counts = Counter(place.label for place in removed)
        receipt = self._receipt(job, None, counts)
        by_scope = [(name, list(own)) for name, own in groupby(removed, lambda place: place.scope)]
        events = [self._event(job, receipt, name, own) for name, own in by_scope]
        await self.erasures.store(tx, _actor(job), receipt, removed, events, history, job.id)
        # A scope counts with the last of its values: the next step may erase more of it.
        left = await list_scopes_with(tx, job.tenant, sought, [name for name, _ in by_scope])
        await update_job(
            tx,
            job,
            done=job.done + len(removed),
            total=max(job.total, job.done + len(removed)),
            scopes=job.scopes + len(by_scope) - len(left),
            counts=dict(Counter(job.counts) + counts),
        )
        return True

    async def _erase_scopes(
        self, tx: Transaction, job: StoredErasureJob, history: str | None, erased: list[str]
    ) -> bool:
        names: Sequence[str] = job.plan["scopes"][:_SCOPES]
        total = Counter(job.counts)
        for name in names:
            counts = await remove_scope(tx, job.tenant, name, self.erasures.now())
            if counts is None:
                continue  # it has ended meanwhile
            receipt = self._receipt(job, name, Counter(counts))
            event = self._event(job, receipt, name, [])
            await self.erasures.store(tx, _actor(job), receipt, [], [event], history, job.id)
            erased.append(name)
            total.update(counts)
        if names:
            await update_job(
                tx,
                job,
                done=job.done + len(names),
                scopes=job.scopes + len(erased),
                counts=dict(total),
                plan={**job.plan, "scopes": job.plan["scopes"][_SCOPES:]},
            )
        return bool(names)

    async def _is_empty(self, job: StoredErasureJob) -> bool:
        """Return whether nothing is left of a tenant, which another job empties."""
        async with self._database.system_transaction(write=False) as tx:
            tenant = await find_tenant(tx, job.plan["tenant"])
        return tenant is None or tenant.emptied is not None

    async def _finish(self, tenant: str, job_id: UUID, history: str | None) -> bool:
        """Sign and store the receipt; return True where something is left to erase after all."""
        audit = self.erasures.audit
        keys = await LogKeyService.over(audit).open()
        async with self._database.transaction(tenant) as tx:
            job = await find_job(tx, tenant, job_id, lock=True)
            if job is None or job.state != RUNNING:
                return False
            unreadable = 0
            if job.kind == "values":
                if await list_places(tx, tenant, sought_by(job.plan), limit=1):
                    return True
                unreadable = await count_unindexed(tx, most=_COUNTED, tenant=tenant)
            done = job.total if job.kind == "tenant" else job.done
            job = replace(
                job,
                state=DONE,
                finished=self.erasures.now(),
                total=done,
                done=done,
                unreadable=unreadable,
            )
            text = receipt_text(job)
            note = str(keys.signing.signed(text))
            digest = hashlib.sha256(text.encode()).hexdigest()
            details = {"job": str(job.id), "kind": job.kind, "scopes": job.scopes, "receipt_sha256": digest}
            event = audit.new_event(
                _actor(job), "erasure.done", OUTCOME_OK, None, counts=job.counts, details=details
            )
            await audit.record_with(tx, event)
            job = replace(job, receipt=note, plan={})
            await update_job(tx, job, **asdict(job))
            await self.erasures.note_job(tx, job, history)
        await self.erasures.count()
        return False

    def _receipt(self, job: StoredErasureJob, scope: str | None, counts: Counter[str]) -> ErasureReceipt:
        kind: Kind = "value" if scope is None else "scope"
        return ErasureReceipt(uuid7(), kind, self.erasures.now(), job.actor, scope, dict(counts))

    def _event(
        self, job: StoredErasureJob, receipt: ErasureReceipt, scope: str, removed: Sequence[EntryPlace]
    ) -> AuditEvent:
        """Return the event that names one scope of a step."""
        audit = self.erasures.audit
        counts = receipt.counts if receipt.scope else dict(Counter(place.label for place in removed))
        return audit.new_event(
            _actor(job),
            f"vault.erase_{receipt.kind}",
            OUTCOME_OK,
            None,
            scope_ref=audit.scope_ref(job.tenant, scope),
            counts=counts,
            details={"receipt": str(receipt.id), "job": str(job.id)},
        )


def plan_of(sought: SoughtEntries) -> dict[str, Any]:
    """Return what a job keeps of what it erases: keyed digests."""
    values = [
        {"label": value.label, "digests": sorted(digest.hex() for digest in value.digests)}
        for value in sought.values
    ]
    return {"values": values, "normal": sought.normal}


def sought_by(plan: dict[str, Any]) -> SoughtEntries:
    """Return which entries a job erases, in live scopes and others."""
    values = [
        SoughtDigests(frozenset(map(bytes.fromhex, value["digests"])), value["label"])
        for value in plan["values"]
    ]
    return SoughtEntries(values, bool(plan["normal"]))


def receipt_text(job: StoredErasureJob) -> str:
    """Return what a receipt states, which the log's key signs: two lines, the second of them JSON."""
    stated = {
        "id": str(job.id),
        "tenant": job.tenant,
        "kind": job.kind,
        **job.plan["stated"],
        "reason": job.reason,
        "ordered_by": job.actor,
        "ordered": moment_text(job.created),
        "finished": None if job.finished is None else moment_text(job.finished),
        "erased": job.counts,
        "scopes": job.scopes,
        "unreadable": job.unreadable,
    }
    return f"{RECEIPT}\n{json.dumps(stated)}\n"


def _actor(job: StoredErasureJob) -> Caller:
    return Caller(job.tenant, job.actor, frozenset({Role.ERASER}))
