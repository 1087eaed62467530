"""List and invoke middlewares and pipelines as MCP interceptors."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.core.access import Caller
from app.core.catalog.interceptors import (
    REPORTING,
    InterceptorKind,
    InterceptorPolicy,
    Message,
    Verdict,
    config_schema,
    kind_of,
    routing,
    verdict,
)
from app.core.content.intercepted import InterceptedPayload, tool_name
from app.core.contracts.middleware import Middleware
from app.core.contracts.policy import Policy
from app.core.errors import (
    BlockedByPolicyError,
    DeadlineExceededError,
    InvalidArgumentsError,
    ServiceError,
    UpstreamUnavailableError,
)
from app.core.request import RequestInfo
from app.services.invoke.invoke import InvokeService, MiddlewareListing
from app.services.invoke.outcomes import InvokeAnswer
from app.services.invoke.pipelines import PipelineVersion

ACTION = "interceptor.invoke"
SPELLED = re.compile(r"[A-Za-z0-9_./*-]{1,128}")
"""Errors repeat what looks like the name of an interceptor or event; anything else may be content."""


class InterceptorTimeoutError(DeadlineExceededError):
    """An interceptor did not end in time; the interceptors proposal has its own error code for it."""


@dataclass(frozen=True, slots=True)
class Interception:
    """One requested invocation; ``conversation`` is what tools are chosen for if the payload has none."""

    name: str
    event: str
    phase: str
    payload: Any
    config: Mapping[str, Any]
    timeout_ms: float | None = None
    conversation: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class _Interceptor:
    """An interceptor under the tenant's policy; ``fixed`` are the arguments that the policy fixes."""

    kind: InterceptorKind
    policy: InterceptorPolicy
    fixed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InterceptorService:
    """The use cases around interceptors; ``version`` is this service's, which its middlewares share."""

    middlewares: InvokeService
    version: str
    min_protocol: str

    async def list(
        self, caller: Caller, event: str | None, request: RequestInfo | None = None
    ) -> Sequence[dict[str, Any]]:
        """Return descriptors of what this caller may invoke, by name; only those that hook ``event``, if set."""
        if event is not None and "*" in event:
            raise InvalidArgumentsError(
                "Name one event, or leave it out to list all interceptors.", details={"pointer": "/event"}
            )
        _, policy = await self.middlewares.policies.get(caller.tenant)
        offered = await self.middlewares.offered(caller, request)
        interceptors = {name: _interceptor(name, invocable, policy) for name, invocable in offered.items()}
        return [
            self._descriptor(self.middlewares.info_of(name, offered[name]), policy_view)
            for name, policy_view in interceptors.items()
            if event is None or event in (*policy_view.kind.request, *policy_view.kind.response)
        ]

    async def invoke(
        self, caller: Caller, interception: Interception, request: RequestInfo
    ) -> dict[str, Any]:
        """Return the result of one interceptor; it is recorded before it is returned."""
        started = time.perf_counter_ns()
        interceptor = await self._find(caller, interception, request)
        result: dict[str, Any] = {
            "interceptor": interception.name,
            "type": interceptor.kind.type,
            "phase": interception.phase,
        }
        try:
            payload = _payload_of(interception)
            if interceptor.kind.type == "validation":
                decision = await self._validate(caller, interception, interceptor, payload, request)
            else:
                decision = await self._mutate(caller, interception, payload, request)
        except ServiceError as error:
            error.details.setdefault("interceptor", interception.name)
            pointer = error.details.get("pointer")
            if isinstance(pointer, str):
                error.details["pointer"] = _config_pointer(pointer)
            raise
        spent = (time.perf_counter_ns() - started) / 1e6
        return {**result, "durationMs": round(spent, 3), **decision}

    async def _mutate(
        self,
        caller: Caller,
        interception: Interception,
        intercepted: InterceptedPayload,
        request: RequestInfo,
    ) -> dict[str, Any]:
        config, items = dict(interception.config), intercepted.items
        chooses = interception.name == "tool_filter" and intercepted.tools is not None
        if interception.event == "tools/list" and not interception.conversation:
            chooses = False  # without a conversation, no tool is more relevant than another
        if chooses:
            offered = [_definition(tool) for tool in intercepted.tools or [] if tool_name(tool) is not None]
            config = {"availableTools": offered, **config}
        if interception.name == "tool_filter" and interception.event == "tools/list":
            items = list(interception.conversation)
        result = await self._run(caller, interception, config, items, request)
        tools = None
        if chooses:
            wanted = set(result.metadata["suggestedToolSet"])
            tools = [tool for tool in intercepted.tools or [] if tool_name(tool) in wanted]
        content = intercepted.items if items is not intercepted.items else result.content
        payload = intercepted.payload(content, tools)
        modified = payload != interception.payload
        return {
            "modified": modified,
            "payload": payload if modified else interception.payload,
            "info": result.metadata,
        }

    async def _validate(
        self,
        caller: Caller,
        interception: Interception,
        interceptor: _Interceptor,
        intercepted: InterceptedPayload,
        request: RequestInfo,
    ) -> dict[str, Any]:
        if interceptor.kind.reports and not REPORTING.keys().isdisjoint(interception.config):
            raise InvalidArgumentsError(
                "A validation changes nothing, so it has no action.", details={"pointer": "/arguments/action"}
            )
        reporting = (
            {} if interceptor.fixed.keys() & REPORTING.keys() or not interceptor.kind.reports else REPORTING
        )
        config = {**interception.config, **reporting}
        try:
            result = await self._run(caller, interception, config, intercepted.items, request)
        except BlockedByPolicyError as error:
            # If the tenant's policy blocks, that is a verdict here, and a verdict is a normal result.
            if "flags" not in error.details and "findings" not in error.details:
                raise
            message = Message(error.message, "error")
            info, decision = dict(error.details), Verdict(valid=False, severity="error", messages=[message])
        else:
            info, decision = result.metadata, verdict(interception.name, result.metadata)
        result_members: dict[str, Any] = {
            "valid": decision.valid,
            "severity": decision.severity,
            "messages": [_message_json(message, intercepted) for message in decision.messages],
            "info": info,
        }
        fixes = [
            (intercepted.path(message.pointer or ""), message.suggestion) for message in decision.messages
        ]
        suggestions = [{"path": path, "value": value} for path, value in fixes if path and value is not None]
        return {**result_members, "suggestions": suggestions} if suggestions else result_members

    async def _run(
        self,
        caller: Caller,
        interception: Interception,
        config: Mapping[str, Any],
        items: Any,
        request: RequestInfo,
    ) -> InvokeAnswer:
        now = asyncio.get_running_loop().time()
        limit_ms = interception.timeout_ms
        if limit_ms is not None:
            request = replace(request, deadline=min(request.deadline, now + limit_ms / 1000))
        about = {"event": interception.event, "phase": interception.phase}
        try:
            return await self.middlewares.invoke(
                caller, interception.name, config, items, request, action=ACTION, about=about
            )
        except DeadlineExceededError as error:
            spent_ms = round((asyncio.get_running_loop().time() - now) * 1000)
            raise InterceptorTimeoutError(
                "Interceptor execution timeout",
                details={
                    "interceptor": interception.name,
                    "timeoutMs": limit_ms if limit_ms is not None else spent_ms,
                    "phase": interception.phase,
                },
            ) from error

    async def _find(self, caller: Caller, interception: Interception, request: RequestInfo) -> _Interceptor:
        _, policy = await self.middlewares.policies.get(caller.tenant)
        invocable = (await self.middlewares.offered(caller, request)).get(interception.name)
        if invocable is None:
            raise InvalidArgumentsError("There is no interceptor of that name.", details={"pointer": "/name"})
        interceptor = _interceptor(interception.name, invocable, policy)
        if not interceptor.kind.covers(interception.event, interception.phase):
            event = interception.event if SPELLED.fullmatch(interception.event) else None
            raise InvalidArgumentsError(
                "The interceptor does not hook this event in this phase.",
                details={
                    "pointer": "/event",
                    "name": interception.name,
                    **({"event": event} if event else {}),
                    "phase": interception.phase,
                    "advertisedHooks": interceptor.kind.hooks(),
                },
            )
        return interceptor

    def _descriptor(self, info: MiddlewareListing, interceptor: _Interceptor) -> dict[str, Any]:
        kind = interceptor.kind
        return {
            "name": info.name,
            "version": info.version or self.version,
            "description": info.description,
            "type": kind.type,
            "hooks": kind.hooks(),
            **routing(kind, interceptor.policy),
            "compat": {"minProtocol": self.min_protocol},
            "configSchema": config_schema(info.input_schema, kind),
        }


def _payload_of(interception: Interception) -> InterceptedPayload:
    try:
        return InterceptedPayload(interception.event, interception.phase, interception.payload)
    except UpstreamUnavailableError:
        raise InvalidArgumentsError(
            "The payload is not of the form that this event has.", details={"pointer": "/payload"}
        ) from None


def _interceptor(name: str, invocable: Middleware[Any] | PipelineVersion, policy: Policy) -> _Interceptor:
    fixed = policy.fixed_arguments.get(name, {})
    phase = invocable.pipeline.phase if isinstance(invocable, PipelineVersion) else invocable.phase
    kind = kind_of(name, phase, {**policy.default_arguments.get(name, {}), **fixed})
    return _Interceptor(kind, policy.interceptors.get(name, InterceptorPolicy()), fixed)


def _message_json(message: Message, intercepted: InterceptedPayload) -> dict[str, Any]:
    path = intercepted.path(message.pointer) if message.pointer is not None else None
    return {**({"path": path} if path else {}), "message": message.text, "severity": message.severity}


def _config_pointer(pointer: str) -> str:
    """Return a pointer into the request: the arguments are its config, the context comes from its payload."""
    if pointer.startswith("/arguments"):
        return "/config" + pointer.removeprefix("/arguments")
    return "/payload" if pointer.startswith("/context") else pointer


def _definition(tool: Mapping[str, Any]) -> Any:
    """Return a tool's definition in MCP's form, whatever model provider's form it has."""
    inner = tool.get("function")
    if not isinstance(inner, Mapping):
        return tool
    schema = inner.get("parameters")
    definition = {key: inner[key] for key in ("name", "description") if key in inner}
    return {**definition, "inputSchema": schema if isinstance(schema, Mapping) else {"type": "object"}}
