"""A tenant's pipelines: versions that its operators store, looked up on every call."""

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
    pipeline_of,
    store_version,
    version_conflict,
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
    """One version of a pipeline; ``state`` is active, or removed if that version deletes the pipeline."""

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
        """Return the rules for what may be stored."""
        return PipelineRules(self.middlewares, self.check_arguments)

    async def of(self, tenant: str) -> Mapping[str, PipelineVersion]:
        """Return a tenant's pipelines by name, from the cache while it is fresh."""
        pipelines = self.memory.peek(tenant)
        if pipelines is None:
            pipelines = await self.memory.get(tenant, self._load)
        return pipelines or {}

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[PipelineVersion]:
        """Return the pipelines of the caller's tenant by name, those behind ``after``."""
        async with self.audit.refusals(caller, "pipelines.list", request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            stored = await list_pipelines(tx, caller.tenant, active=True, after=after, limit=limit)
        return [_version(each) for each in stored]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> PipelineVersion:
        """Return the current version."""
        async with self.audit.refusals(caller, "pipelines.get", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                versions = await list_pipeline_versions(tx, caller.tenant, name)
            return _version(_active(versions))

    async def history(
        self,
        caller: Caller,
        name: str,
        request: RequestInfo | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[PipelineVersion]:
        """Return the versions older than ``before``, newest first, removed ones too."""
        async with self.audit.refusals(caller, "pipelines.history", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=False) as tx:
                versions = await list_pipeline_versions(tx, caller.tenant, name, before=before, limit=limit)
            if not versions and before is None:
                raise _no_pipeline()
        return [_version(version) for version in versions]

    async def put(
        self,
        caller: Caller,
        pipeline: Pipeline,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None = None,
    ) -> PipelineVersion:
        """Store the next version, which applies from now on in every process.

        With ``expected_version`` (0: there is none yet) the change is refused if another version is current.
        """
        async with self.audit.refusals(caller, "pipelines.put", request):
            caller.require(Role.OPERATOR)
            self.rules.check(pipeline)
            async with self.database.transaction(caller.tenant) as tx:
                stored = {
                    pipeline_version.name: pipeline_version
                    for pipeline_version in await list_pipelines(tx, caller.tenant)
                }
                current = stored.get(pipeline.name)
                _check_expected(current, expected_version)
                check_number(
                    len(
                        {name for name, version in stored.items() if version.state == "active"}
                        | {pipeline.name}
                    )
                )
                added = await store_version(
                    tx, caller.tenant, pipeline, current, "api", self.now(), caller.key_id
                )
                await self._record_change(tx, caller, "pipelines.put", request, added)
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
        """Remove a pipeline; its versions stay in the history, and a new one of its name continues their numbers."""
        async with self.audit.refusals(caller, "pipelines.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                current = _active(await list_pipeline_versions(tx, caller.tenant, name))
                _check_expected(current, expected_version)
                removed = next_version(current, "removed", self.now(), caller.key_id)
                if not await add_pipeline(tx, caller.tenant, removed):
                    raise version_conflict(removed.version)
                await self._record_change(tx, caller, "pipelines.delete", request, removed)
        self.memory.forget(caller.tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == PIPELINES_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _pipelines: True)
        elif changed.kind == PIPELINES_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    async def _load(self, tenant: str) -> Mapping[str, PipelineVersion]:
        async with self.database.transaction(tenant, write=False) as tx:
            stored = await list_pipelines(tx, tenant, active=True)
        return {version.name: _version(version) for version in stored}

    async def _record_change(
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


def _active(versions: Sequence[StoredPipeline]) -> StoredPipeline:
    if not versions or versions[0].state != "active":
        raise _no_pipeline()
    return versions[0]


def _check_expected(current: StoredPipeline | None, expected: int | None) -> None:
    version = current.version if current is not None and current.state == "active" else 0
    if expected is not None and expected != version:
        raise version_conflict(version)


def _version(stored: StoredPipeline) -> PipelineVersion:
    return PipelineVersion(
        version=stored.version,
        pipeline=pipeline_of(stored),
        state=stored.state,
        origin=stored.origin,
        created=stored.created,
        created_by=stored.created_by,
    )


def _no_pipeline() -> NotFoundError:
    return NotFoundError("There is no such pipeline.")
