"""Run one middleware for one caller: policy, arguments, transformation, vault and audit."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK, AuditEvent
from app.core.content import Context, PendingConceal, PendingMask
from app.core.engines import EngineReport, Masker
from app.core.errors import (
    BlockedByPolicyError,
    DeadlineExceededError,
    InternalError,
    NotFoundError,
    ServiceError,
)
from app.core.handles import Handle
from app.core.middleware import Invocation, Middleware, Outcome, no_tools
from app.core.offload import off_loop
from app.core.policy import Policy, Step
from app.core.registry import Registry
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.middlewares.pii_restoration import PiiRestoration
from app.services.audit import AuditService
from app.services.calls import Call, checked_arguments, merged_arguments
from app.services.policies import PolicyService
from app.services.restoration import restored_stream
from app.services.traffic import Traffic
from app.services.vault import VaultReceipt, VaultService, VaultWrite

Progress = Callable[[int, int], Awaitable[None]]
STEPS = 3
_HASH_KEY = b"key of the mode hash"


@dataclass(frozen=True, slots=True)
class MiddlewareInfo:
    """What a caller learns of a middleware before invoking it."""

    name: str
    title: str
    description: str
    phase: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """The transformed context, same shape as given, and what was done."""

    content: list[Any]
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class InvokeService:
    """The use cases around middlewares."""

    registry: Registry
    policies: PolicyService
    vault: VaultService
    audit: AuditService
    masker: Masker
    traffic: Traffic
    observe: Callable[[str, str, float], None]
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    visible_tools: list[Callable[[Caller], Awaitable[Sequence[Mapping[str, Any]]]]] = field(
        default_factory=list
    )
    """Gives the tools that a caller sees; set once the listing, which needs this service's rooms, is built."""

    async def list(self, caller: Caller, request: RequestInfo | None = None) -> Sequence[MiddlewareInfo]:
        """Return the middlewares that this caller may invoke, by name."""
        async with self.audit.refusals(caller, "middleware.list", request):
            caller.require(Role.INVOKER, Role.RESTORER)
        _, policy = await self.policies.get(caller.tenant)
        return [
            MiddlewareInfo(kind.name, kind.title, kind.description, kind.phase, self._schema(kind))
            for kind in self.registry.middlewares.values()
            if policy.allowed_middlewares is None or kind.name in policy.allowed_middlewares
        ]

    async def invoke(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any],
        items: Any,
        request: RequestInfo,
        progress: Progress | None = None,
    ) -> InvokeResult:
        """Transform ``items``; what is answered is on record first, else AuditUnavailableError."""
        call = Call(self.audit, caller, request, "middleware.invoke")
        outcome = "failed"
        try:
            caller.require(Role.INVOKER, Role.RESTORER)
            middleware, policy = await self._allowed(name, call)
            until = _until(policy, request)
            async with self.traffic.turn(caller.tenant, policy.limits, until):
                given = merged_arguments(policy, middleware.name, arguments)
                made = await self._applied(middleware, policy, given, items, call, until, progress)
                result = await self._stored(made, policy, call, progress)
            outcome = OUTCOME_OK
            return result
        except BaseException as error:
            outcome = error.code if isinstance(error, ServiceError) else outcome
            await call.refused(error)
            if isinstance(error, ServiceError | asyncio.CancelledError):
                raise
            raise InternalError("The service failed; the log has the request id.") from error
        finally:
            if call.middleware is not None:
                self.observe(call.middleware, outcome, (time.perf_counter_ns() - call.started_ns) / 1e9)

    async def passage(
        self, caller: Caller, step: Step, items: Any, request: RequestInfo, until: float
    ) -> InvokeResult:
        """Run a step of a passage: the tenant's policy is its authority, whatever the caller may do; audited.

        ``until`` is a time of the event loop's clock. The step's own arguments stand over the policy's for callers.
        """
        roles = caller.roles | {Role.INVOKER, Role.RESTORER}
        authority = Caller(caller.tenant, caller.key_id, roles)
        call = Call(self.audit, caller, request, "passage.invoke", authority=authority)
        try:
            middleware = self._named(step.name)
            call.middleware = middleware.name
            call.policy_version, policy = await self.policies.get(caller.tenant)
            usual = policy.default_arguments.get(step.name, {}) | policy.fixed_arguments.get(step.name, {})
            async with self.traffic.slot(caller.tenant, policy.limits, until):
                made = await self._applied(
                    middleware, policy, {**usual, **step.arguments}, items, call, until, None
                )
                return await self._stored(made, policy, call, None)
        except BaseException as error:
            await call.refused(error)
            if isinstance(error, ServiceError | asyncio.CancelledError):
                raise
            raise InternalError("The service failed; the log has the request id.") from error

    async def _allowed(self, name: str, call: Call) -> tuple[Middleware[Any], Policy]:
        middleware = self._named(name)
        call.middleware = middleware.name
        call.policy_version, policy = await self.policies.get(call.caller.tenant)
        if policy.allowed_middlewares is not None and name not in policy.allowed_middlewares:
            raise BlockedByPolicyError(
                "The policy of this tenant does not allow this middleware.", details={"middleware": name}
            )
        return middleware, policy

    def _named(self, name: str) -> Middleware[Any]:
        try:
            return self.registry.get(name)
        except NotFoundError as error:
            error.details["known"] = sorted(self.registry.middlewares)
            raise

    async def _applied(
        self,
        middleware: Middleware[Any],
        policy: Policy,
        arguments: Mapping[str, Any],
        items: Any,
        call: Call,
        until: float,
        progress: Progress | None,
    ) -> Outcome:
        checked = checked_arguments(middleware, arguments)
        call.given = await off_loop(_weight(items), dumps, items)
        context = await off_loop(
            len(call.given),
            Context.parse,
            items,
            max_blocks=policy.limits.max_blocks,
            max_depth=policy.limits.max_depth,
            strict=checked.strict,
        )
        call.blocks = context.blocks
        await _report(progress, 1)
        limit_ms = policy.timeouts_ms.get(middleware.name, policy.limits.deadline_ms)
        until = min(until, asyncio.get_running_loop().time() + limit_ms / 1000)
        try:
            async with asyncio.timeout_at(until):
                outcome = await middleware.invoke(context, checked, self._invocation(call.caller, until))
        except TimeoutError as error:
            raise DeadlineExceededError(
                "The middleware did not end within the time limit; nothing was passed on.",
                details={"limit_ms": limit_ms},
            ) from error
        await _report(progress, 2)
        return outcome

    def _invocation(self, caller: Caller, until: float) -> Invocation:
        visible = partial(self.visible_tools[0], caller) if self.visible_tools else no_tools
        return Invocation(caller, until, visible)

    async def _stored(
        self, outcome: Outcome, policy: Policy, call: Call, progress: Progress | None
    ) -> InvokeResult:
        caller, options = call.acting, outcome.vault
        if options.restores or options.return_mapping:
            caller.require(Role.RESTORER)
        else:
            caller.require(Role.INVOKER)
        call.counts, call.details = dict(outcome.counts), outcome.audit_details
        metadata = dict(outcome.metadata)
        if outcome.engine is not None:
            _add_engine(metadata, call, outcome.engine)
        if outcome.keep_content and policy.audit_content:
            call.sealed = await self.audit.seal(caller.tenant, call.given)
        context = await self._masked(outcome.context, caller)
        if context.skipped:
            metadata["skipped"] = sum(context.skipped.values())
        outcome = replace(outcome, context=context, metadata=metadata)
        if options.conceals:
            result = await self._concealed(outcome, policy, call)
        else:
            result = await self._revealed(outcome, call)
        await _report(progress, STEPS)
        return result

    async def restore_stream(
        self,
        caller: Caller,
        arguments: Mapping[str, Any],
        chunks: AsyncIterator[str],
        request: RequestInfo,
    ) -> AsyncIterator[str]:
        """Yield the restored text of ``chunks``; see ``app.services.restoration``."""
        call = Call(self.audit, caller, request, "middleware.restore_stream")
        try:
            caller.require(Role.INVOKER, Role.RESTORER)
            middleware, policy = await self._allowed(PiiRestoration.name, call)
            checked = checked_arguments(middleware, merged_arguments(policy, middleware.name, arguments))
            async for text in restored_stream(call, self.vault, checked, chunks):
                yield text
        except GeneratorExit:
            raise
        except BaseException as error:
            await call.refused(error)
            raise

    async def _masked(self, context: Context, caller: Caller) -> Context:
        """Return ``context`` with its irreversible replacements made, hashes under the tenant's own key."""
        pending = context.masks
        texts: dict[PendingMask, str] = {}
        for mode in sorted({one.mode for one in pending}):
            mine = [one for one in pending if one.mode == mode]
            key = self.audit.digest(caller.tenant, _HASH_KEY).encode() if mode == "hash" else None
            made = await self.masker.apply_operator(mode, [(one.label, one.text) for one in mine], key)
            texts.update(zip(mine, made, strict=True))
        return context.masked(texts) if texts else context

    async def _concealed(self, outcome: Outcome, policy: Policy, call: Call) -> InvokeResult:
        caller, context, options = call.acting, outcome.context, outcome.vault
        pending = await off_loop(len(call.given), _conceals, context)
        kept: set[Handle] = set()
        asked = {one.keep for one in pending if one.keep is not None}
        if asked and options.scope is not None:
            kept = await self.vault.known(caller, options.scope, asked)
        wanted = [one for one in pending if one.keep is None or one.keep not in kept]
        final: list[InvokeResult] = []

        def events(receipt: VaultReceipt) -> Sequence[AuditEvent]:
            handles: dict[Any, Handle | None] = dict.fromkeys(pending)
            handles.update(zip(wanted, receipt.handles, strict=True))
            content = context.resolved(handles, {}).to_json()
            named = {str(handle.name): one for one, handle in handles.items() if handle is not None}
            metadata = dict(outcome.metadata)
            metadata["redactions"] = (
                {name: one.original.text for name, one in named.items()}
                if options.return_mapping
                else [{"handle": name, "type": one.label.lower()} for name, one in named.items()]
            )
            metadata["scope"] = receipt.scope
            final[:] = [InvokeResult(content, metadata)]
            return [call.event(OUTCOME_OK, out=content, scope=receipt.scope)]

        call.details = {**call.details, "mapping_returned": options.return_mapping}
        await self.vault.commit(
            caller,
            VaultWrite(
                scope=options.scope,
                originals=[(one.label, one.original) for one in wanted],
                options=options,
                events=events,
                ttl_s=options.ttl_s or policy.scope_ttl_s,
                characters=len(call.given),
            ),
        )
        return final[0]

    async def _revealed(self, outcome: Outcome, call: Call) -> InvokeResult:
        context, options = outcome.context, outcome.vault
        metadata = dict(outcome.metadata)
        reveals = context.reveals
        if options.scope is not None:
            found = await self.vault.read(call.acting, options.scope, set(reveals))
            context = context.resolved({}, found)
            missing = sum(handle not in found for handle in reveals)
            metadata["unresolved"] = metadata.get("unresolved", 0) + missing
            call.counts = {
                **call.counts,
                "restored": call.counts.get("restored", 0) + len(reveals) - missing,
                "unresolved": metadata["unresolved"],
            }
        content = await off_loop(len(call.given), context.to_json)
        await self.audit.record(call.event(OUTCOME_OK, out=content, scope=options.scope))
        return InvokeResult(content, metadata)

    def _schema(self, middleware: Middleware[Any]) -> dict[str, Any]:
        if middleware.name not in self.schemas:
            self.schemas[middleware.name] = middleware.arguments.model_json_schema(by_alias=True)
        return self.schemas[middleware.name]


def _add_engine(metadata: dict[str, Any], call: Call, engine: EngineReport) -> None:
    metadata["engine"] = {"name": engine.name, "version": engine.version, "degraded": engine.degraded}
    if engine.degraded:
        metadata["degraded"] = True
        call.details = {**call.details, "degraded": True, "engine": engine.name}


def _conceals(context: Context) -> list[PendingConceal]:
    return context.conceals


def _until(policy: Policy, request: RequestInfo) -> float:
    """Return the time of the event loop's clock at which the call must have ended."""
    return min(request.deadline, asyncio.get_running_loop().time() + policy.limits.deadline_ms / 1000)


async def _report(progress: Progress | None, step: int) -> None:
    if progress is not None:
        await progress(step, STEPS)


def _weight(items: Any) -> int:
    """Return a cheap lower bound of how much there is to write."""
    if not isinstance(items, list):
        return 0
    total = 0
    for item in items:
        text = item.get("text", item.get("content")) if isinstance(item, dict) else item
        total += len(text) * (1 if isinstance(text, str) else 1000) if isinstance(text, str | list) else 100
    return total
