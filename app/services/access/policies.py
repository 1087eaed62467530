"""The policy of each tenant: versions that are read on every request and changed by the tenant's operators."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.contracts.middleware import REMOTE_SEPARATOR
from app.core.contracts.policy import Policy
from app.core.contracts.policy_steps import Step
from app.core.contracts.registry import Registry
from app.core.contracts.widening.policies import Widening, widenings
from app.core.errors import (
    ConflictError,
    InvalidArgumentsError,
    NotFoundError,
    PreconditionRequiredError,
)
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access.access import Authority
from app.services.access.credentials import POLICY_CHANGED
from app.services.access.gateway_rules import check_gateway
from app.services.access.identity.policy_checks import Issuers, check_identity
from app.services.access.policy_documents import escaped, merged, policy_of
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.policies import StoredPolicy, add_policy, find_policy, list_policies
from app.store.access.tenants import find_tenant
from app.store.audit.audit import Transaction
from app.store.changes import EVERYTHING, announce
from app.store.database import Database
from app.store.pipelines import list_pipelines

ANY_VERSION = -1
"""The expected version of a change that does not care which one it replaces; only inside the service."""
_STALE_S = 5.0
_CACHED_TENANTS = 10_000


class ArgumentFault(NamedTuple):
    """An error in arguments: a JSON pointer into them ("": the middleware itself is unknown) and a sentence."""

    pointer: str
    message: str


ArgumentCheck = Callable[[str, Mapping[str, Any]], ArgumentFault | None]
"""Returns the first error in a middleware's arguments, or None; missing arguments are no error."""


class PolicyVersion(NamedTuple):
    """One version of a policy; version 0 applies until an operator stores one.

    ``widened`` is what the change that made it allows beyond the version before, where that change was just made.
    """

    version: int
    policy: Policy
    created: datetime | None
    created_by: str | None
    widened: Sequence[Widening] = ()


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
    issuers: Issuers = dict

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

    async def version(
        self, caller: Caller, number: int, tenant: str | None = None, request: RequestInfo | None = None
    ) -> PolicyVersion:
        """Return one stored version, or the default as version 0; raise NotFoundError where there is none."""
        if number == 0:
            async with self.audit.refusals(caller, "policy.history", request):
                self._target(caller, tenant)
            return PolicyVersion(0, Policy(), None, None)
        listed = await self.history(caller, tenant, request, before=number + 1, limit=1)
        if not listed or listed[0].version != number:
            raise NotFoundError("There is no such version of the policy.")
        return listed[0]

    async def checked(
        self, caller: Caller, policy: Policy, tenant: str | None = None, request: RequestInfo | None = None
    ) -> PolicyVersion:
        """Return the version that holds, or raise what would refuse ``policy`` as the next one; stores nothing."""
        async with self.audit.refusals(caller, "policy.preview", request):
            target = self._target(caller, tenant)
            async with self.database.transaction(target, write=False) as tx:
                await _check_exists(tx, target)
                before = await find_policy(tx, target)
                await self._check(tx, caller, target, before, policy)
        return _version(before) if before is not None else PolicyVersion(0, Policy(), None, None)

    async def put(
        self,
        caller: Caller,
        tenant: str | None,
        policy: Policy,
        request: RequestInfo | None = None,
        *,
        expected_version: int | None = ANY_VERSION,
    ) -> PolicyVersion:
        """Store the next version, which applies from now on.

        The change is refused if another version than ``expected_version`` is current (ConflictError), or if it is None
        (PreconditionRequiredError).
        """
        return await self._change(
            caller, tenant, "policy.put", request, expected_version, lambda _before: policy
        )

    async def patch(
        self,
        caller: Caller,
        tenant: str | None,
        patch: Mapping[str, Any],
        request: RequestInfo | None = None,
        *,
        expected_version: int | None,
    ) -> PolicyVersion:
        """Store the next version: the current one with a JSON merge patch; see ``put``."""
        return await self._change(
            *(caller, tenant, "policy.patch", request, expected_version),
            lambda before: policy_of(merged(before.model_dump(mode="json"), patch)),
        )

    async def replace(
        self, tx: Transaction, caller: Caller, policy: Policy, request: RequestInfo | None = None
    ) -> PolicyVersion | None:
        """Store ``policy`` for the caller's tenant in a transaction; None: it holds already.

        Call ``changed`` when the transaction is done.
        """
        before = await find_policy(tx, caller.tenant)
        if policy == _policy(before):
            return None
        return await self._store(tx, caller, caller.tenant, "policy.put", request, before, policy)

    async def _change(
        self,
        caller: Caller,
        tenant: str | None,
        action: str,
        request: RequestInfo | None,
        expected_version: int | None,
        make: Callable[[Policy], Policy],
    ) -> PolicyVersion:
        async with self.audit.refusals(caller, action, request):
            target = self._target(caller, tenant)
            await self.audit.keys.ready(target)
            # A transaction covers one tenant; the second event, in a foreign operator's tenant, needs all of them.
            foreign = target != caller.tenant
            opened = self.database.system_transaction() if foreign else self.database.transaction(target)
            async with opened as tx:
                await _check_exists(tx, target)
                before = await find_policy(tx, target)
                current = before.version if before is not None else 0
                if expected_version is None:
                    raise _version_missing(current)
                if expected_version not in (ANY_VERSION, current):
                    raise _version_conflict(current)
                policy = make(_policy(before))
                made = await self._store(tx, caller, target, action, request, before, policy)
        self.memory.forget(target)
        return made

    async def _store(
        self,
        tx: Transaction,
        caller: Caller,
        target: str,
        action: str,
        request: RequestInfo | None,
        before: StoredPolicy | None,
        policy: Policy,
    ) -> PolicyVersion:
        """Check and add the version after ``before``, with its record."""
        await self._check(tx, caller, target, before, policy)
        version = before.version + 1 if before is not None else 1
        document = policy.model_dump(mode="json")
        added = StoredPolicy(target, version, document, self.now(), caller.key_id)
        if not await add_policy(tx, added):
            raise _version_conflict(version)
        widened = widenings(_policy(before), policy)
        details = {"version": version, "changed": _changed_parts(before, policy)}
        if widened:
            details["widened"] = ",".join(sorted({widening.pointer.split("/")[1] for widening in widened}))
        await self.audit.record_with(tx, *self._events(caller, action, target, request, version, details))
        await announce(tx, Changed(POLICY_CHANGED, target))
        return _version(added)._replace(widened=widened)

    async def _check(
        self, tx: Any, caller: Caller, target: str, before: StoredPolicy | None, policy: Policy
    ) -> None:
        """Raise what refuses ``policy`` in the place of ``before``."""
        check_identity(_policy(before).identity, policy.identity, caller, self.issuers)
        self._check_arguments_exist(policy)
        pipelines = {pipeline.name: pipeline for pipeline in await list_pipelines(tx, target, active=True)}
        self._check_names(policy, pipelines)
        check_gateway(policy.gateway, pipelines)

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
        self,
        caller: Caller,
        action: str,
        tenant: str,
        request: RequestInfo | None,
        version: int,
        details: Mapping[str, Any],
    ) -> list[Any]:
        fields: dict[str, Any] = {"policy_version": version}
        if tenant == caller.tenant:
            return [self.audit.new_event(caller, action, OUTCOME_OK, request, details=details, **fields)]
        there = {**details, "actor_tenant": caller.tenant}
        here = {**details, "tenant": tenant}
        return [
            self.audit.new_event(caller, action, OUTCOME_OK, request, tenant=tenant, details=there, **fields),
            self.audit.new_event(caller, action, OUTCOME_OK, request, details=here),
        ]

    def _check_names(self, policy: Policy, pipelines: Collection[str]) -> None:
        """Refuse names of middlewares that are neither installed nor one of the tenant's ``pipelines``."""
        for number, name in enumerate(policy.allowed_middlewares or []):
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/allowed_middlewares/{number}")
        for name in policy.timeouts_ms:
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/timeouts_ms/{escaped(name)}")
        for name in policy.interceptors:
            if name not in pipelines and self.check_arguments(name, {}) is not None:
                raise _unknown_middleware(f"/interceptors/{escaped(name)}")
        for pointer, step in _steps(policy):
            if step.name not in pipelines:
                self._check_step(step.name, step.arguments, f"{pointer}/name", f"{pointer}/arguments")

    def _check_arguments_exist(self, policy: Policy) -> None:
        """Refuse unknown middlewares and arguments: a misspelt rule would protect nothing."""
        for part in ("default_arguments", "fixed_arguments"):
            for name, arguments in getattr(policy, part).items():
                pointer = f"/{part}/{escaped(name)}"
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
                pointer = "".join(f"/{escaped(str(step))}" for step in fault["loc"]) or "/"
                is_declared = fault["type"] != "extra_forbidden"
                return ArgumentFault(
                    pointer, f"{fault['msg']}." if is_declared else "There is no such argument."
                )
        return None

    return check


def _steps(policy: Policy) -> Iterator[tuple[str, Step]]:
    """Yield every step that a policy runs, with the JSON pointer to it."""
    for number, tool_hook in enumerate(policy.passages):
        for place, step in enumerate(tool_hook.results):
            yield f"/passages/{number}/results/{place}", step
    for number, entry in enumerate(policy.gateway.pipelines):
        for part, steps in (("outbound", entry.outbound), ("inbound", entry.inbound)):
            for place, step in enumerate(steps):
                yield f"/gateway/pipelines/{number}/{part}/{place}", step


async def _check_exists(tx: Any, tenant: str) -> None:
    if await find_tenant(tx, tenant) is None:
        raise _no_tenant()


def _version(stored: StoredPolicy) -> PolicyVersion:
    policy = Policy.model_validate(stored.document)
    return PolicyVersion(stored.version, policy, stored.created, stored.created_by)


def _changed_parts(before: StoredPolicy | None, policy: Policy) -> str:
    old = _policy(before).model_dump(mode="json")  # with the members that versions of before did not have
    new = policy.model_dump(mode="json")
    return ",".join(sorted(name for name in new if new[name] != old[name]))


def _policy(stored: StoredPolicy | None) -> Policy:
    return Policy.model_validate(stored.document) if stored is not None else Policy()


def _version_missing(version: int) -> PreconditionRequiredError:
    return PreconditionRequiredError(
        "Say on which version the change is based: ?expected_version=N, where N is the version that you read.",
        details={"parameter": "expected_version", "version": version},
    )


def _version_conflict(version: int) -> ConflictError:
    return ConflictError(
        "The policy was changed meanwhile; read it again and repeat the change.", details={"version": version}
    )


def _unknown_middleware(pointer: str) -> InvalidArgumentsError:
    return InvalidArgumentsError("There is no middleware of that name.", details={"pointer": pointer})


def _no_tenant() -> NotFoundError:
    return NotFoundError("There is no such tenant.")
