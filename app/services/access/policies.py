"""The policy of each tenant: versions that are read on every request and changed by the tenant's operators."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.contracts.middleware import REMOTE_SEPARATOR
from app.core.contracts.policy import Policy
from app.core.contracts.registry import Registry
from app.core.errors import ConflictError, InvalidArgumentsError, NotFoundError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access.access import Authority
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.policies import StoredPolicy, add_policy, find_policy, list_policies
from app.store.access.tenants import find_tenant
from app.store.changes import EVERYTHING, announce
from app.store.database import Database
from app.store.pipelines import list_pipelines

POLICY_CHANGED = "policy"
_STALE_S = 5.0
_CACHED_TENANTS = 10_000


class ArgumentFault(NamedTuple):
    """An error in arguments: a JSON pointer into them ("": the middleware itself is unknown) and a sentence."""

    pointer: str
    message: str


ArgumentCheck = Callable[[str, Mapping[str, Any]], ArgumentFault | None]
"""Returns the first error in a middleware's arguments, or None; missing arguments are no error."""


class PolicyVersion(NamedTuple):
    """One version of a policy; version 0 applies until an operator stores one."""

    version: int
    policy: Policy
    created: datetime | None
    created_by: str | None


@dataclass(frozen=True, slots=True)
class PolicyService:
    """Reads and changes policies; subscribe ``changed`` to the announcements of other processes."""

    database: Database
    audit: AuditService
    check_arguments: ArgumentCheck
    authority: Authority = field(default_factory=Authority)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, tuple[int, Policy]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )

    async def get(self, tenant: str) -> tuple[int, Policy]:
        """Return the version number of the current policy and the policy, from the cache while it is fresh."""
        cached = self.memory.peek(tenant) or await self.memory.get(tenant, self._load)
        return cached if cached is not None else (0, Policy())

    async def current(
        self, caller: Caller, tenant: str | None = None, request: RequestInfo | None = None
    ) -> PolicyVersion:
        """Return the policy of the caller's tenant; an operator of the tenant system may name another."""
        async with self.audit.refusals(caller, "policy.get", request):
            target = self._target(caller, tenant)
        async with self.database.transaction(target, write=False) as tx:
            await _check_exists(tx, target)
            stored = await find_policy(tx, target)
        return _version(stored) if stored is not None else PolicyVersion(0, Policy(), None, None)

    async def history(
        self,
        caller: Caller,
        tenant: str | None = None,
        request: RequestInfo | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[PolicyVersion]:
        """Return the versions older than ``before``, newest first."""
        async with self.audit.refusals(caller, "policy.history", request):
            target = self._target(caller, tenant)
        async with self.database.transaction(target, write=False) as tx:
            await _check_exists(tx, target)
            return [
                _version(stored) for stored in await list_policies(tx, target, before=before, limit=limit)
            ]

    async def put(
        self,
        caller: Caller,
        tenant: str | None,
        policy: Policy,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None = None,
    ) -> PolicyVersion:
        """Store the next version, which applies from now on.

        With ``expected_version`` the change is refused (ConflictError) if another version is current.
        """
        async with self.audit.refusals(caller, "policy.put", request):
            target = self._target(caller, tenant)
            self._check_arguments_exist(policy)
            # A transaction covers one tenant; the second event, in a foreign operator's tenant, needs all of them.
            foreign = target != caller.tenant
            opened = self.database.system_transaction() if foreign else self.database.transaction(target)
            async with opened as tx:
                await _check_exists(tx, target)
                pipelines = {pipeline.name for pipeline in await list_pipelines(tx, target, active=True)}
                self._check_names(policy, pipelines)
                before = await find_policy(tx, target)
                current = before.version if before is not None else 0
                if expected_version is not None and expected_version != current:
                    raise _version_conflict(current)
                document = policy.model_dump(mode="json")
                added = StoredPolicy(target, current + 1, document, self.now(), caller.key_id)
                if not await add_policy(tx, added):
                    raise _version_conflict(current + 1)
                changed = _changed_parts(before, policy)
                await self.audit.record_with(tx, *self._events(caller, target, request, current + 1, changed))
                await announce(tx, Changed(POLICY_CHANGED, target))
        self.memory.forget(target)
        return _version(added)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == POLICY_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _policy: True)
        elif changed.kind == POLICY_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    async def _load(self, tenant: str) -> tuple[int, Policy]:
        async with self.database.transaction(tenant, write=False) as tx:
            stored = await find_policy(tx, tenant)
        return (stored.version, Policy.model_validate(stored.document)) if stored else (0, Policy())

    def _target(self, caller: Caller, tenant: str | None) -> str:
        caller.require(Role.OPERATOR)
        if tenant not in (None, caller.tenant) and not self.authority.reaches_all(caller):
            raise _no_tenant()
        return tenant or caller.tenant

    def _events(
        self, caller: Caller, tenant: str, request: RequestInfo | None, version: int, changed: str
    ) -> list[Any]:
        details: dict[str, Any] = {"version": version, "changed": changed}
        fields: dict[str, Any] = {"policy_version": version}
        if tenant == caller.tenant:
            return [
                self.audit.new_event(caller, "policy.put", OUTCOME_OK, request, details=details, **fields)
            ]
        there = {**details, "actor_tenant": caller.tenant}
        here = {**details, "tenant": tenant}
        return [
            self.audit.new_event(
                caller, "policy.put", OUTCOME_OK, request, tenant=tenant, details=there, **fields
            ),
            self.audit.new_event(caller, "policy.put", OUTCOME_OK, request, details=here),
        ]

    def _check_names(self, policy: Policy, pipelines: Collection[str]) -> None:
        """Refuse names of middlewares that are neither installed nor one of the tenant's ``pipelines``."""
        for number, name in enumerate(policy.allowed_middlewares or []):
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/allowed_middlewares/{number}")
        for name in policy.timeouts_ms:
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/timeouts_ms/{_escaped(name)}")
        for name in policy.interceptors:
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/interceptors/{_escaped(name)}")
        for number, tool_hook in enumerate(policy.passages):
            for place, step in enumerate(tool_hook.results):
                pointer = f"/passages/{number}/results/{place}"
                if step.name not in pipelines:
                    self._check_step(step.name, step.arguments, f"{pointer}/name", f"{pointer}/arguments")

    def _check_arguments_exist(self, policy: Policy) -> None:
        """Refuse unknown middlewares and arguments: a misspelt rule would protect nothing."""
        for part in ("default_arguments", "fixed_arguments"):
            for name, arguments in getattr(policy, part).items():
                pointer = f"/{part}/{_escaped(name)}"
                self._check_step(name, arguments, pointer, pointer)

    def _check_step(self, name: str, arguments: Mapping[str, Any], unknown: str, pointer: str) -> None:
        fault = self.check_arguments(name, arguments)
        if fault is not None and not fault.pointer:
            raise _unknown_middleware(unknown)
        if fault is not None:
            raise InvalidArgumentsError(fault.message, details={"pointer": pointer + fault.pointer})


def argument_check(registry: Registry) -> ArgumentCheck:
    """Return a function that checks arguments against the models of the installed middlewares."""

    def check(name: str, arguments: Mapping[str, Any]) -> ArgumentFault | None:
        middleware = registry.middlewares.get(name)
        if middleware is None and REMOTE_SEPARATOR in name:
            # It belongs to another server, which may be unreachable now; its schema is checked when it is invoked.
            return None
        if middleware is None:
            return ArgumentFault("", "There is no middleware of that name.")
        try:
            middleware.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False, include_context=False):
                if fault["type"] == "missing":
                    continue
                pointer = "".join(f"/{_escaped(str(step))}" for step in fault["loc"]) or "/"
                is_declared = fault["type"] != "extra_forbidden"
                return ArgumentFault(
                    pointer, f"{fault['msg']}." if is_declared else "There is no such argument."
                )
        return None

    return check


async def _check_exists(tx: Any, tenant: str) -> None:
    if await find_tenant(tx, tenant) is None:
        raise _no_tenant()


def _version(stored: StoredPolicy) -> PolicyVersion:
    policy = Policy.model_validate(stored.document)
    return PolicyVersion(stored.version, policy, stored.created, stored.created_by)


def _changed_parts(before: StoredPolicy | None, policy: Policy) -> str:
    old = before.document if before is not None else Policy().model_dump(mode="json")
    new = policy.model_dump(mode="json")
    return ",".join(sorted(name for name in new if new[name] != old.get(name)))


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _version_conflict(version: int) -> ConflictError:
    return ConflictError(
        "The policy was changed meanwhile; read it again and repeat the change.", details={"version": version}
    )


def _unknown_middleware(pointer: str) -> InvalidArgumentsError:
    return InvalidArgumentsError("There is no middleware of that name.", details={"pointer": pointer})


def _no_tenant() -> NotFoundError:
    return NotFoundError("There is no such tenant.")
