"""Run one middleware for one caller: policy, arguments, transformation, vault and audit."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.content.context import Context
from app.core.contracts.engines import Masker
from app.core.contracts.middleware import ImmediateMiddleware, Invocation, Middleware, Outcome, no_tools
from app.core.contracts.pipelines import input_schema
from app.core.contracts.policy import Policy
from app.core.contracts.policy_steps import Step
from app.core.contracts.registry import Registry
from app.core.deadlines import TimeLimit
from app.core.errors import (
    BlockedByPolicyError,
    DeadlineExceededError,
    InternalError,
    NotFoundError,
    ServiceError,
)
from app.core.offload import LIGHT, off_loop
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.middlewares.pii_restoration import PiiRestoration
from app.services.access.policies import PolicyService
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService
from app.services.invoke.calls import MiddlewareCall, checked_arguments, merged_arguments, weight_of
from app.services.invoke.invocables import Invocable, Invocables
from app.services.invoke.outcomes import InvokeAnswer, OutcomeRecorder
from app.services.invoke.pipeline_runs import PipelineRun
from app.services.invoke.pipelines import PipelineService, PipelineVersion
from app.services.invoke.remote_middlewares import RemoteMiddlewares
from app.services.invoke.restoration import restored_stream
from app.services.vault.vault import VaultService

Progress = Callable[[int, int], Awaitable[None]]
STEPS = 3
_PIPELINE = "pipeline"
"""The label of all pipelines in the metrics: their names belong to the tenants."""


@dataclass(frozen=True, slots=True)
class MiddlewareListing:
    """What a list shows of a middleware or pipeline."""

    name: str
    title: str
    description: str
    phase: str
    input_schema: dict[str, Any]
    version: str = ""
    """The version of a pipeline; a middleware has the service's."""


@dataclass(slots=True)
class InvokeService:
    """The use cases around middlewares.

    ``invocables`` looks up what can be invoked, ``outcomes`` turns an outcome into a recorded answer.
    """

    registry: Registry
    policies: PolicyService
    vault: VaultService
    audit: AuditService
    masker: Masker
    traffic: Traffic
    observe: Callable[[str, str, float], None]
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    visible_tools: Callable[[Caller, RequestInfo | None], Awaitable[Sequence[Mapping[str, Any]]]] | None = (
        None
    )
    """Returns the tools that a caller sees; where there is none, a caller sees no tools."""
    pipelines: PipelineService | None = None
    remotes: RemoteMiddlewares | None = None
    invocables: Invocables = field(init=False)
    outcomes: OutcomeRecorder = field(init=False)

    def __post_init__(self) -> None:
        self.invocables = Invocables(self.registry.middlewares, self.pipelines, self.remotes)
        self.outcomes = OutcomeRecorder(self.vault, self.audit, self.masker)

    async def list(self, caller: Caller, request: RequestInfo | None = None) -> Sequence[MiddlewareListing]:
        """Return the middlewares and the tenant's pipelines that this caller may invoke, ordered by name."""
        return [
            self.info_of(name, invocable) for name, invocable in (await self.offered(caller, request)).items()
        ]

    async def offered(self, caller: Caller, request: RequestInfo | None = None) -> Mapping[str, Invocable]:
        """Return what this caller may invoke, by name and in alphabetical order."""
        async with self.audit.refusals(caller, "middleware.list", request):
            caller.require(Role.INVOKER, Role.RESTORER)
        _, policy = await self.policies.get(caller.tenant)
        invocables = await self.invocables.all_of(caller.tenant)
        allowed = invocables.keys() if policy.allowed_middlewares is None else set(policy.allowed_middlewares)
        return {name: invocables[name] for name in sorted(invocables.keys() & allowed)}

    async def invoke(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        items: Any,
        request: RequestInfo,
        progress: Progress | None = None,
        *,
        action: str = "middleware.invoke",
        about: Mapping[str, str] | None = None,
    ) -> InvokeAnswer:
        """Transform ``items``; the answer is recorded before it is returned, else AuditUnavailableError.

        The audit event has ``action`` and, in its details, ``about``.
        """
        await self.audit.keys.ready(caller.tenant)
        call = MiddlewareCall(self.audit, caller, request, action, about=about or {})
        outcome, observed = "failed", None
        try:
            caller.require(Role.INVOKER, Role.RESTORER)
            invocable = await self._named(caller.tenant, name)
            observed = _PIPELINE if isinstance(invocable, PipelineVersion) else name
            policy = await self._require_allowed(name, call)
            until = _end_of(policy, request)
            async with self.traffic.turn(caller.tenant, policy.limits, until):
                if isinstance(invocable, PipelineVersion):
                    run = await self._pipeline_run(invocable, policy, call, until)
                    result = await run.answered(arguments, items, progress)
                else:
                    merged = merged_arguments(policy, invocable, arguments)
                    transformed = await self._transform(
                        invocable, policy, merged, items, call, until, progress
                    )
                    result = await self.outcomes.stored(transformed, policy, call)
                    await _report(progress, STEPS)
            outcome = OUTCOME_OK
            return result
        except BaseException as error:
            outcome = error.code if isinstance(error, ServiceError) else outcome
            await call.refused(error)
            if isinstance(error, ServiceError | asyncio.CancelledError):
                raise
            raise InternalError("The service failed; the log has the request id.") from error
        finally:
            if observed is not None:
                self.observe(observed, outcome, (time.perf_counter_ns() - call.started_ns) / 1e9)

    async def dry_run(
        self, caller: Caller, name: str, arguments: Mapping[str, Any], items: Any, request: RequestInfo
    ) -> InvokeAnswer:
        """Return what each step of a pipeline makes of ``items``; only the audit event is stored."""
        async with self.audit.refusals(caller, "middleware.dry_run", request):
            caller.require(Role.INVOKER, Role.RESTORER)
            if name not in await self.invocables.pipelines_of(caller.tenant):
                raise NotFoundError("There is no such pipeline.")
        return await self.invoke(caller, name, {**arguments, "dryRun": True}, items, request)

    async def run_tool_hook(
        self, caller: Caller, step: Step, items: Any, request: RequestInfo, until: float
    ) -> InvokeAnswer:
        """Run a step of a tool hook with the authority of the tenant's policy, whatever the caller may do; audited.

        ``until`` is a time of the event loop's clock. The step's own arguments override the policy's for callers.
        """
        roles = caller.roles | {Role.INVOKER, Role.RESTORER}
        authority = replace(caller, roles=roles)
        call = MiddlewareCall(self.audit, caller, request, "passage.invoke", authority=authority)
        try:
            call.middleware = step.name
            invocable = await self._named(caller.tenant, step.name)
            call.policy_version, policy = await self.policies.get(caller.tenant)
            policy_arguments = policy.default_arguments.get(step.name, {}) | policy.fixed_arguments.get(
                step.name, {}
            )
            async with self.traffic.slot(caller.tenant, policy.limits, until):
                if isinstance(invocable, PipelineVersion):
                    run = await self._pipeline_run(invocable, policy, call, until)
                    return await run.answered(step.arguments, items, None)
                merged = {**policy_arguments, **step.arguments}
                transformed = await self._transform(invocable, policy, merged, items, call, until, None)
                return await self.outcomes.stored(transformed, policy, call)
        except BaseException as error:
            await call.refused(error)
            if isinstance(error, ServiceError | asyncio.CancelledError):
                raise
            raise InternalError("The service failed; the log has the request id.") from error

    async def _named(self, tenant: str, name: str) -> Invocable:
        """Return what has this name; what is installed is there for every tenant, so nobody is asked for it."""
        return self.registry.middlewares.get(name) or await self.invocables.of_tenant(tenant, name)

    async def _require_allowed(self, name: str, call: MiddlewareCall) -> Policy:
        call.middleware = name
        call.policy_version, policy = await self.policies.get(call.caller.tenant)
        if policy.allowed_middlewares is not None and name not in policy.allowed_middlewares:
            raise BlockedByPolicyError(
                "The policy of this tenant does not allow this middleware.", details={"middleware": name}
            )
        return policy

    async def _pipeline_run(
        self, version: PipelineVersion, policy: Policy, call: MiddlewareCall, until: float
    ) -> PipelineRun:
        limit_ms = policy.timeouts_ms.get(version.pipeline.name)
        if limit_ms is not None:
            until = min(until, asyncio.get_running_loop().time() + limit_ms / 1000)
        invocation = partial(self.invocation, call)
        middlewares = await self.invocables.steps_of(version)
        return PipelineRun(
            outcomes=self.outcomes,
            middlewares=middlewares,
            version=version,
            policy=policy,
            call=call,
            until=until,
            invocation=invocation,
        )

    def info_of(self, name: str, invocable: Middleware[Any] | PipelineVersion) -> MiddlewareListing:
        """Return what a list shows of ``invocable``."""
        if not isinstance(invocable, PipelineVersion):
            return MiddlewareListing(
                name, invocable.title, invocable.description, invocable.phase, self._schema(invocable)
            )
        pipeline, known_step = invocable.pipeline, self.invocables.known_step
        steps = ", ".join(step.name for step in pipeline.steps)
        named = {
            step.name: middleware
            for step in pipeline.steps
            if (middleware := known_step(step.name)) is not None
        }
        schema = input_schema(pipeline, {key: self._schema(middleware) for key, middleware in named.items()})
        description = pipeline.description or f"Runs in order: {steps}"
        version = f"{invocable.version}.0.0"
        return MiddlewareListing(name, pipeline.title, description, pipeline.phase, schema, version)

    async def _transform(
        self,
        middleware: Middleware[Any],
        policy: Policy,
        arguments: Mapping[str, Any],
        items: Any,
        call: MiddlewareCall,
        until: float,
        progress: Progress | None,
    ) -> Outcome:
        checked = checked_arguments(middleware, arguments)
        call.input_json = await off_loop(weight_of(items) // LIGHT, dumps, items)
        context = await off_loop(
            len(call.input_json),
            Context.parse,
            items,
            max_blocks=policy.limits.max_blocks,
            max_depth=policy.limits.max_depth,
            strict=checked.strict,
        )
        call.blocks = context.blocks
        await _report(progress, 1)
        if isinstance(middleware, ImmediateMiddleware):
            outcome: Outcome = middleware.transformed(context, checked)
        else:
            limit_ms = policy.timeouts_ms.get(middleware.name, policy.limits.deadline_ms)
            until = min(until, asyncio.get_running_loop().time() + limit_ms / 1000)
            try:
                async with TimeLimit(until):
                    outcome = await middleware.invoke(context, checked, self.invocation(call, until))
            except TimeoutError as error:
                raise DeadlineExceededError(
                    "The middleware did not end within the time limit; nothing was passed on.",
                    details={"limit_ms": limit_ms},
                ) from error
        await _report(progress, 2)
        return outcome

    def invocation(self, call: MiddlewareCall, until: float) -> Invocation:
        """Return how a middleware is told for whom it runs, and until when."""
        offered = self.visible_tools
        visible = partial(offered, call.caller, call.request) if offered is not None else no_tools
        return Invocation(call.caller, until, visible)

    async def restore_stream(
        self,
        caller: Caller,
        arguments: Mapping[str, Any],
        chunks: AsyncIterator[str],
        request: RequestInfo,
        on_end: Callable[[Mapping[str, int]], None] = lambda _metadata: None,
    ) -> AsyncIterator[str]:
        """Yield the restored text of ``chunks``; see ``app.services.invoke.restoration``."""
        call = MiddlewareCall(self.audit, caller, request, "middleware.restore_stream")
        try:
            caller.require(Role.INVOKER, Role.RESTORER)
            middleware = self.registry.get(PiiRestoration.name)
            policy = await self._require_allowed(middleware.name, call)
            checked = checked_arguments(middleware, merged_arguments(policy, middleware, arguments))
            async for text in restored_stream(call, self.vault, checked, policy.secrets, chunks, on_end):
                yield text
        except GeneratorExit:
            raise
        except BaseException as error:
            await call.refused(error)
            raise

    def _schema(self, middleware: Middleware[Any]) -> dict[str, Any]:
        if middleware.name not in self.schemas:
            self.schemas[middleware.name] = middleware.arguments.model_json_schema(by_alias=True)
        return self.schemas[middleware.name]


def _end_of(policy: Policy, request: RequestInfo) -> float:
    """Return when the call must have ended, as a time of the event loop's clock."""
    return min(request.deadline, asyncio.get_running_loop().time() + policy.limits.deadline_ms / 1000)


async def _report(progress: Progress | None, step: int) -> None:
    if progress is not None:
        await progress(step, STEPS)
