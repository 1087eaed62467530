"""Apply a tenant's declarative file, from servers to the policy, in one transaction."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, TypeVar

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.primitives import SERVERS_CHANGED
from app.core.contracts.pipelines import PIPELINES_CHANGED
from app.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from app.core.events import Changed
from app.core.gateway.providers import PROVIDERS_CHANGED
from app.core.request import RequestInfo
from app.services.access.credentials import POLICY_CHANGED
from app.services.access.policies import PolicyService
from app.services.audit.audit import AuditService
from app.services.catalog.concern_changes import store_concerns
from app.services.catalog.group_changes import replace_groups
from app.services.declare.declaration_files import DeclarationFile
from app.services.gateway.providers import ProviderService
from app.services.invoke.pipeline_changes import PipelinePlan, replace_pipelines
from app.services.invoke.pipelines import PipelineService
from app.services.servers.server_admin import ServerService
from app.store.access.tenants import find_tenant
from app.store.audit.audit import Transaction
from app.store.changes import announce
from app.store.database import Database

Action = Literal["add", "change", "remove"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One line of a plan; ``kind`` is server, group, concern, mapping, pipeline, provider or policy.

    A mapping's name is "kind name".
    """

    action: Action
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class DeclarationPlan:
    """What applying a file changes, how much of it is in place already, and warnings for the operator."""

    changes: list[PlannedChange]
    unchanged: int
    warnings: list[str] = field(default_factory=list)


class _RolledBackError(Exception):
    """Raised to roll a transaction back."""


@dataclass(frozen=True, slots=True)
class DeclarationService:
    """Applies declarative files, with the same result each time; for operators on the host."""

    database: Database
    audit: AuditService
    servers: ServerService
    pipelines: PipelineService
    policies: PolicyService
    providers: ProviderService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def apply(
        self,
        caller: Caller,
        file: DeclarationFile,
        request: RequestInfo | None = None,
        *,
        dry_run: bool = False,
    ) -> DeclarationPlan:
        """Store the file's content for the caller's tenant and return what that changed.

        What an earlier file had and this one does not is removed; what operators made over REST stays, unless the
        file has something of the same name. Servers of the file are approved. ``dry_run`` changes nothing: it does
        everything in a transaction that is rolled back, so it reports the same errors as applying.
        """
        plan = DeclarationPlan([], 0)
        async with self.audit.refusals(caller, "declaration.apply", request):
            caller.require(Role.OPERATOR)
            with suppress(_RolledBackError):
                async with self.database.transaction(caller.tenant) as tx:
                    plan = await self._apply(tx, caller, file, request)
                    _roll_back_unless(changed=bool(plan.changes) and not dry_run)
        if plan.changes and not dry_run:
            self.servers.upstreams.changed(Changed(SERVERS_CHANGED, caller.tenant))
            self.pipelines.changed(Changed(PIPELINES_CHANGED, caller.tenant))
            self.policies.changed(Changed(POLICY_CHANGED, caller.tenant))
            self.providers.changed(Changed(PROVIDERS_CHANGED, caller.tenant))
        return plan

    async def _apply(
        self, tx: Transaction, caller: Caller, file: DeclarationFile, request: RequestInfo | None
    ) -> DeclarationPlan:
        moment, tenant, wanted = self.now(), caller.tenant, file.declaration
        if await find_tenant(tx, tenant) is None:
            raise NotFoundError("There is no such tenant; create it with: sluice tenants create.")
        changes, unchanged = await self._servers(tx, caller, file)
        groups = await replace_groups(tx, tenant, wanted.groups, "file", moment)
        changes += _changes("group", groups.created, groups.updated, groups.removed)
        concerns = await store_concerns(tx, tenant, wanted.concerns, wanted.concernMappings, "file", moment)
        for kind, difference in (("concern", concerns.concerns), ("mapping", concerns.mappings)):
            changes += _changes(kind, difference.created, difference.updated, difference.removed)
            unchanged += len(difference.unchanged)
        pipelines = await self._pipelines(tx, caller, file, moment)
        changes += _changes("pipeline", pipelines.created, pipelines.updated, pipelines.removed)
        unchanged += len(pipelines.unchanged)
        providers, same = await self._providers(tx, caller, file)
        changes, unchanged = [*changes, *providers], unchanged + same
        warnings = [*file.warnings, *groups.warnings]
        if wanted.policy is not None:
            policy = await self._located(
                file, "/policy", self.policies.replace(tx, caller, wanted.policy, request)
            )
            changes += [PlannedChange("change", "policy", f"version {policy.version}")] if policy else []
            unchanged += policy is None
            widened = policy.widened if policy else ()
            warnings += [f"The policy widens {right.pointer}: {right.reason}." for right in widened]
        if changes:
            kinds = ("server", "group", "concern", "mapping", "pipeline", "provider")
            details = {f"{name}s": sum(change.kind == name for change in changes) for name in kinds}
            if any(change.kind == "policy" for change in changes):
                details["policies"] = 1
            event = self.audit.new_event(caller, "declaration.apply", OUTCOME_OK, request, details=details)
            await self.audit.record_with(tx, event)
        return DeclarationPlan(changes, unchanged + len(groups.unchanged), warnings)

    async def _pipelines(
        self, tx: Transaction, caller: Caller, file: DeclarationFile, moment: datetime
    ) -> PipelinePlan:
        check, wanted = self.pipelines.rules.check, file.declaration.pipelines
        replacing = replace_pipelines(tx, caller.tenant, wanted, moment, by=caller.key_id, check=check)
        return await self._located(file, "", replacing)

    @staticmethod
    async def _located(file: DeclarationFile, at: str, work: Awaitable[T]) -> T:
        """Run ``work``, and say of its faults where in the file they are; ``at`` is what their pointers begin at."""
        try:
            return await work
        except (InvalidArgumentsError, ConflictError) as error:
            if "pointer" not in error.details:
                raise
            message = file.locate(at + error.details["pointer"], error.message)
            raise type(error)(message, details=error.details) from None

    async def _servers(
        self, tx: Transaction, caller: Caller, file: DeclarationFile
    ) -> tuple[list[PlannedChange], int]:
        stored = await self.servers.declared(tx, caller.tenant)
        wanted = [entry for entry in file.declaration.entries() if entry.name not in file.paused]
        changes = [
            PlannedChange("change" if entry.name in stored else "add", "server", entry.name)
            for entry in wanted
            if await self.servers.declare(tx, caller, entry)
        ]
        unchanged = len(wanted) - len(changes)
        changes += [
            PlannedChange("remove", "server", name)
            for name in sorted(stored.keys() - {entry.name for entry in wanted})
            if await self.servers.withdraw(tx, caller, name)
        ]
        if changes:
            await announce(tx, Changed(SERVERS_CHANGED, caller.tenant))
        return changes, unchanged

    async def _providers(
        self, tx: Transaction, caller: Caller, file: DeclarationFile
    ) -> tuple[list[PlannedChange], int]:
        stored = await self.providers.declared(tx, caller.tenant)
        wanted = file.declaration.ordered_providers()
        changes = [
            PlannedChange("change" if entry.name in stored else "add", "provider", entry.name)
            for entry in wanted
            if await self.providers.declare(tx, caller, entry)
        ]
        unchanged = len(wanted) - len(changes)
        changes += [
            PlannedChange("remove", "provider", name)
            for name in sorted(stored.keys() - {entry.name for entry in wanted})
            if await self.providers.withdraw(tx, caller, name)
        ]
        return changes, unchanged


def _roll_back_unless(*, changed: bool) -> None:
    if not changed:
        raise _RolledBackError


def _changes(
    kind: str, created: Iterable[str], updated: Iterable[str], removed: Iterable[str]
) -> Iterator[PlannedChange]:
    named: tuple[tuple[Action, Iterable[str]], ...] = (
        ("add", created),
        ("change", updated),
        ("remove", removed),
    )
    for action, names in named:
        for name in names:
            yield PlannedChange(action, kind, name)
