"""A tenant's pipelines: versions that its operators store, read on every call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.contracts.middleware import Middleware
from app.core.contracts.pipelines import PIPELINES_CHANGED, Pipeline
from app.core.errors import NotFoundError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access.policies import ArgumentCheck
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.services.invoke.pipeline_changes import (
    PipelineRules,
    check_number,
    next_version,
    overtaken,
    pipeline_of,
    store_version,
)
from app.store.changes import EVERYTHING, announce
from app.store.database import Database
from app.store.pipelines import (
    StoredPipeline,
    add_pipeline,
    list_pipeline_versions,
    list_pipelines,
)

_STALE_S = 5.0
_REMEMBERED_TENANTS = 10_000


class PipelineVersion(NamedTuple):
    """One version of a pipeline; ``state`` is active, or removed where that version took it away."""

    version: int
    pipeline: Pipeline
    state: str
    origin: str
    created: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class PipelineService:
    """Reads and changes pipelines; subscribe ``changed`` to the announcements of other processes."""

    database: Database
    audit: AuditService
    middlewares: Mapping[str, Middleware[Any]]
    check_arguments: ArgumentCheck
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, Mapping[str, PipelineVersion]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_REMEMBERED_TENANTS)
    )

    @property
    def rules(self) -> PipelineRules:
        """Return what may be stored."""
        return PipelineRules(self.middlewares, self.check_arguments)

    async def of(self, tenant: str) -> Mapping[str, PipelineVersion]:
        """Return a tenant's pipelines by name, from memory where that is fresh."""
        found = self.memory.peek(tenant)
        if found is None:
            found = await self.memory.get(tenant, self._load)
        return found or {}

    async def list(self, caller: Caller, request: RequestInfo | None = None) -> Sequence[PipelineVersion]:
        """Return the pipelines of the caller's tenant, by name."""
        async with self.audit.refusals(caller, "pipelines.list", request):
            caller.require(Role.OPERATOR)
        return list((await self._load(caller.tenant)).values())

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> PipelineVersion:
        """Return the version that holds."""
        async with self.audit.refusals(caller, "pipelines.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                held = await list_pipeline_versions(tx, caller.tenant, name)
            return _version(_active(held))

    async def history(
        self,
        caller: Caller,
        name: str,
        request: RequestInfo | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[PipelineVersion]:
        """Return the versions, newest first, those older than the version ``before``; removed ones too."""
        async with self.audit.refusals(caller, "pipelines.history", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                found = await list_pipeline_versions(tx, caller.tenant, name, before=before, limit=limit)
            if not found and before is None:
                raise _no_pipeline()
        return [_version(one) for one in found]

    async def put(
        self,
        caller: Caller,
        pipeline: Pipeline,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None = None,
    ) -> PipelineVersion:
        """Store the next version, which holds from now on in every process.

        With ``expected_version`` (0: there is none yet) the change is refused when another version holds meanwhile.
        """
        async with self.audit.refusals(caller, "pipelines.put", request):
            caller.require(Role.OPERATOR)
            self.rules.check(pipeline)
            async with self.database.transaction(caller.tenant) as tx:
                stored = {one.name: one for one in await list_pipelines(tx, caller.tenant)}
                held = stored.get(pipeline.name)
                _check_expected(held, expected_version)
                check_number(len({n for n, one in stored.items() if one.state == "active"} | {pipeline.name}))
                added = await store_version(
                    tx, caller.tenant, pipeline, held, "api", self.now(), caller.key_id
                )
                await self._conclude(tx, caller, "pipelines.put", request, added)
        self.memory.forget(caller.tenant)
        return _version(added)

    async def delete(
        self,
        caller: Caller,
        name: str,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None = None,
    ) -> None:
        """Remove a pipeline; its versions stay in the history, and a new one of the name counts on."""
        async with self.audit.refusals(caller, "pipelines.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                held = _active(await list_pipeline_versions(tx, caller.tenant, name))
                _check_expected(held, expected_version)
                removed = next_version(held, "removed", self.now(), caller.key_id)
                if not await add_pipeline(tx, caller.tenant, removed):
                    raise overtaken(removed.version)
                await self._conclude(tx, caller, "pipelines.delete", request, removed)
        self.memory.forget(caller.tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has overtaken."""
        if changed.kind == EVERYTHING or (changed.kind == PIPELINES_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _pipelines: True)
        elif changed.kind == PIPELINES_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    async def _load(self, tenant: str) -> Mapping[str, PipelineVersion]:
        async with self.database.transaction(tenant, write=False) as tx:
            found = await list_pipelines(tx, tenant)
        return {one.name: _version(one) for one in found if one.state == "active"}

    async def _conclude(
        self, tx: Any, caller: Caller, action: str, request: RequestInfo | None, added: StoredPipeline
    ) -> None:
        details = {
            "name": added.name,
            "version": added.version,
            "steps": len(pipeline_of(added).steps),
        }
        event = self.audit.new_event(caller, action, OUTCOME_OK, request, details=details)
        await self.audit.record_with(tx, event)
        await announce(tx, Changed(PIPELINES_CHANGED, caller.tenant))


def _active(held: Sequence[StoredPipeline]) -> StoredPipeline:
    if not held or held[0].state != "active":
        raise _no_pipeline()
    return held[0]


def _check_expected(held: StoredPipeline | None, expected: int | None) -> None:
    version = held.version if held is not None and held.state == "active" else 0
    if expected is not None and expected != version:
        raise overtaken(version)


def _version(stored: StoredPipeline) -> PipelineVersion:
    return PipelineVersion(
        *(stored.version, pipeline_of(stored), stored.state, stored.origin, stored.created, stored.created_by)
    )


def _no_pipeline() -> NotFoundError:
    return NotFoundError("There is no such pipeline.")
