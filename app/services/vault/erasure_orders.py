"""Order an erasure of values, of scopes or of a tenant, after a look at what it would erase, and read its receipt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.core.ids import uuid7
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService, checked_reason
from app.services.vault.erasure import ErasureService
from app.services.vault.erasure_jobs import plan_of
from app.services.vault.subjects import SubjectRequest, SubjectService, SubjectTotals, SubjectValue
from app.services.vault.tenant_erasure import TenantErasure
from app.services.vault.vault import VaultService, check_scope
from app.store.access.tenants import find_tenant
from app.store.database import Database
from app.store.vault.erasure_jobs import (
    RUNNING,
    JobKind,
    StoredErasureJob,
    add_job,
    count_contents,
    find_job,
)

ORDER: Final = "erasure.order"
PREVIEW: Final = "erasure.preview"
READ: Final = "erasure.read"
MOST_SCOPES: Final = 1000


@dataclass(frozen=True, slots=True)
class ErasureOrder:
    """What to erase, and why: exactly one of ``values``, ``scopes`` and ``tenant``.

    ``variants``: spellings of the values, too.
    """

    reason: str
    values: Sequence[SubjectValue] | None = None
    scopes: Sequence[str] | None = None
    tenant: str | None = None
    variants: bool = False

    @property
    def kind(self) -> JobKind:
        """Return what is erased, or raise InvalidArgumentsError."""
        kinds: dict[JobKind, Any] = {"values": self.values, "scopes": self.scopes, "tenant": self.tenant}
        named = [kind for kind, members in kinds.items() if members is not None]
        if len(named) != 1:
            raise InvalidArgumentsError(
                "Name what to erase: one of values, scopes and tenant.", details={"pointer": ""}
            )
        if self.variants and named != ["values"]:
            raise InvalidArgumentsError(
                "Only values have variants: send variants with values.", details={"pointer": "/variants"}
            )
        return named[0]

    @property
    def subject(self) -> SubjectRequest:
        """Return the values as a search for them."""
        return SubjectRequest(self.values or (), self.reason, self.variants)


@dataclass(frozen=True, slots=True)
class ErasureOrders:
    """The use cases of ``eraser``; a tenant is erased by an operator of the tenant ``system``."""

    database: Database
    audit: AuditService
    subjects: SubjectService
    tenants: TenantErasure
    erasures: ErasureService

    @classmethod
    def over(cls, vault: VaultService, tenants: TenantErasure) -> "ErasureOrders":
        """Return what takes orders for a vault, and for tenants."""
        return cls(vault.database, vault.audit, SubjectService.over(vault), tenants, vault.erasures)

    async def preview(
        self, caller: Caller, order: ErasureOrder, request: RequestInfo | None = None
    ) -> SubjectTotals:
        """Return what the order would erase, and change nothing; values count as a search for them."""
        async with self.audit.refusals(caller, PREVIEW, request):
            self._check(caller, order)
            if order.kind == "values":
                await self.subjects.admit(caller, order.subject, request, preview=True)
            else:
                await self.audit.record(self._event(caller, PREVIEW, order, request))
            return await self._totals(caller, order)

    async def order(
        self, caller: Caller, order: ErasureOrder, request: RequestInfo | None = None
    ) -> StoredErasureJob:
        """Store the order with its event and return the job, which the background does."""
        async with self.audit.refusals(caller, ORDER, request):
            self._check(caller, order)
            event = self._event(caller, ORDER, order, request)
            totals = await self._totals(caller, order)
        if order.tenant is not None:
            await self.tenants.erase(caller, order.tenant, request)
        history = await self.erasures.history()
        job = self._job(caller, order, totals)
        event = replace(event, details={**event.details, "job": str(job.id), "total": job.total})
        async with self.database.transaction(caller.tenant) as tx:
            await add_job(tx, job)
            await self.audit.record_with(tx, event)
            await self.erasures.note_job(tx, job, history)
        await self.erasures.count()
        return job

    async def get(self, caller: Caller, job_id: UUID, request: RequestInfo | None = None) -> StoredErasureJob:
        """Return a job of the caller's tenant, with its receipt once it is done, or raise NotFoundError."""
        async with self.audit.refusals(caller, READ, request):
            caller.require(Role.ERASER, Role.AUDITOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                job = await find_job(tx, caller.tenant, job_id)
            if job is None:
                raise NotFoundError("There is no such erasure.")
        return job

    def _check(self, caller: Caller, order: ErasureOrder) -> None:
        if order.kind == "tenant":
            self.tenants.tenants.check(caller)
            return
        caller.require(Role.ERASER)
        if order.scopes is None:
            return
        if not 0 < len(order.scopes) <= MOST_SCOPES:
            raise InvalidArgumentsError(
                f"One order names 1 to {MOST_SCOPES} scopes.", details={"pointer": "/scopes"}
            )
        for name in order.scopes:
            check_scope(name)

    def _event(
        self, caller: Caller, action: str, order: ErasureOrder, request: RequestInfo | None
    ) -> AuditEvent:
        if order.kind == "values":
            return self.subjects.event(caller, action, order.subject, request)
        details: dict[str, Any] = {"reason": checked_reason(order.reason)}
        if order.tenant is not None:
            details["tenant"] = order.tenant
        else:
            details["scopes"] = len(set(order.scopes or ()))
        return self.audit.new_event(caller, action, OUTCOME_OK, request, details=details)

    async def _totals(self, caller: Caller, order: ErasureOrder) -> SubjectTotals:
        if order.values is not None:
            sought = self.subjects.index.sought(caller.tenant, order.values, None, variants=order.variants)
            return await self.subjects.totals(caller.tenant, sought)
        if order.tenant is None:
            async with self.database.transaction(caller.tenant, write=False) as tx:
                scopes, counts = await count_contents(tx, caller.tenant, sorted(set(order.scopes or ())))
        else:
            async with self.database.system_transaction(write=False) as tx:
                if await find_tenant(tx, order.tenant) is None:
                    raise NotFoundError("There is no such tenant.")
                scopes, counts = await count_contents(tx, order.tenant)
        return SubjectTotals(scopes, dict(counts), [], indexed=True)

    def _job(self, caller: Caller, order: ErasureOrder, totals: SubjectTotals) -> StoredErasureJob:
        total = totals.entries
        stated: dict[str, Any]
        if order.values is not None:
            sought = self.subjects.index.sought(caller.tenant, order.values, None, variants=order.variants)
            plan, stated = plan_of(sought), {"values": len(order.values), "variants": order.variants}
        elif order.tenant is not None:
            plan, stated = {"tenant": order.tenant}, {"erased_tenant": order.tenant}
        else:
            names = sorted(set(order.scopes or ()))
            total, plan, stated = len(names), {"scopes": names}, {"named_scopes": len(names)}
        whole = order.kind == "tenant"
        return StoredErasureJob(
            tenant=caller.tenant,
            id=uuid7(),
            kind=order.kind,
            state=RUNNING,
            actor=caller.key_id,
            reason=checked_reason(order.reason),
            created=self.subjects.now(),
            total=total,
            done=0,
            # What a tenant had is counted before it is emptied; what else is erased is counted then.
            scopes=totals.scopes if whole else 0,
            unreadable=0,
            counts=totals.counts if whole else {},
            plan={**plan, "stated": stated},
        )
