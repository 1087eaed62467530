"""Middlewares and pipelines through the second door: listed and invoked as interceptors."""

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
"""What looks like the name of an interceptor or an event is repeated in an error; anything else may be content."""


class InterceptorTimeoutError(DeadlineExceededError):
    """An interceptor did not end in time; the wire has a code of the proposal's own for it."""


@dataclass(frozen=True, slots=True)
class Interception:
    """One invocation as it was asked for; ``conversation`` is what tools are chosen for where a payload has none."""

    name: str
    event: str
    phase: str
    payload: Any
    config: Mapping[str, Any]
    timeout_ms: float | None = None
    conversation: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What the tenant's policy makes of one interceptor; ``fixed`` are the arguments that it fixes."""

    kind: InterceptorKind
    policy: InterceptorPolicy
    fixed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class InterceptorService:
    """The use cases around interceptors; ``version`` is this service's, which is that of its middlewares."""

    middlewares: InvokeService
    version: str
    min_protocol: str

    async def list(
        self, caller: Caller, event: str | None, request: RequestInfo | None = None
    ) -> Sequence[dict[str, Any]]:
        """Return the descriptors of what this caller may invoke, by name; of those that hook ``event``, if given."""
        if event is not None and "*" in event:
            raise InvalidArgumentsError(
                "Name one event, or leave it out to list all interceptors.", details={"pointer": "/event"}
            )
        _, policy = await self.middlewares.policies.get(caller.tenant)
        offered = await self.middlewares.offered(caller, request)
        found = {name: _found(name, one, policy) for name, one in offered.items()}
        return [
            self._descriptor(self.middlewares.info_of(name, offered[name]), one)
            for name, one in found.items()
            if event is None or event in (*one.kind.request, *one.kind.response)
        ]

    async def invoke(self, caller: Caller, asked: Interception, request: RequestInfo) -> dict[str, Any]:
        """Return the result of one interceptor; what is answered is on record first."""
        started = time.perf_counter_ns()
        found = await self._named(caller, asked, request)
        result: dict[str, Any] = {
            "interceptor": asked.name,
            "type": found.kind.type,
            "phase": asked.phase,
        }
        try:
            governed = _governed(asked)
            if found.kind.type == "validation":
                made = await self._validated(caller, asked, found, governed, request)
            else:
                made = await self._mutated(caller, asked, governed, request)
        except ServiceError as error:
            error.details.setdefault("interceptor", asked.name)
            pointer = error.details.get("pointer")
            if isinstance(pointer, str):
                error.details["pointer"] = _renamed(pointer)
            raise
        spent = (time.perf_counter_ns() - started) / 1e6
        return {**result, "durationMs": round(spent, 3), **made}

    async def _mutated(
        self, caller: Caller, asked: Interception, governed: InterceptedPayload, request: RequestInfo
    ) -> dict[str, Any]:
        config, items = dict(asked.config), governed.items
        chooses = asked.name == "tool_filter" and governed.tools is not None
        if asked.event == "tools/list" and not asked.conversation:
            chooses = False  # for no conversation at all, no tool is more relevant than another
        if chooses:
            offered = [_definition(one) for one in governed.tools or [] if tool_name(one) is not None]
            config = {"availableTools": offered, **config}
        if asked.name == "tool_filter" and asked.event == "tools/list":
            items = list(asked.conversation)
        result = await self._run(caller, asked, config, items, request)
        tools = None
        if chooses:
            wanted = set(result.metadata["suggestedToolSet"])
            tools = [one for one in governed.tools or [] if tool_name(one) in wanted]
        content = governed.items if items is not governed.items else result.content
        payload = governed.payload(content, tools)
        modified = payload != asked.payload
        return {
            "modified": modified,
            "payload": payload if modified else asked.payload,
            "info": result.metadata,
        }

    async def _validated(
        self,
        caller: Caller,
        asked: Interception,
        found: _Found,
        governed: InterceptedPayload,
        request: RequestInfo,
    ) -> dict[str, Any]:
        if found.kind.reports and not REPORTING.keys().isdisjoint(asked.config):
            raise InvalidArgumentsError(
                "A validation changes nothing, so it has no action.", details={"pointer": "/arguments/action"}
            )
        reporting = {} if found.fixed.keys() & REPORTING.keys() or not found.kind.reports else REPORTING
        config = {**asked.config, **reporting}
        try:
            result = await self._run(caller, asked, config, governed.items, request)
        except BlockedByPolicyError as error:
            # A policy of the tenant that blocks is a verdict here, and a verdict is a normal result.
            if "flags" not in error.details and "findings" not in error.details:
                raise
            message = Message(error.message, "error")
            said, decided = dict(error.details), Verdict(valid=False, severity="error", messages=[message])
        else:
            said, decided = result.metadata, verdict(asked.name, result.metadata)
        made: dict[str, Any] = {
            "valid": decided.valid,
            "severity": decided.severity,
            "messages": [_message(one, governed) for one in decided.messages],
            "info": said,
        }
        fixes = [(governed.path(one.pointer or ""), one.suggestion) for one in decided.messages]
        suggestions = [{"path": path, "value": value} for path, value in fixes if path and value is not None]
        return {**made, "suggestions": suggestions} if suggestions else made

    async def _run(
        self,
        caller: Caller,
        asked: Interception,
        config: Mapping[str, Any],
        items: Any,
        request: RequestInfo,
    ) -> InvokeAnswer:
        now = asyncio.get_running_loop().time()
        limit_ms = asked.timeout_ms
        if limit_ms is not None:
            request = replace(request, deadline=min(request.deadline, now + limit_ms / 1000))
        about = {"event": asked.event, "phase": asked.phase}
        try:
            return await self.middlewares.invoke(
                caller, asked.name, config, items, request, action=ACTION, about=about
            )
        except DeadlineExceededError as error:
            spent_ms = round((asyncio.get_running_loop().time() - now) * 1000)
            raise InterceptorTimeoutError(
                "Interceptor execution timeout",
                details={
                    "interceptor": asked.name,
                    "timeoutMs": limit_ms if limit_ms is not None else spent_ms,
                    "phase": asked.phase,
                },
            ) from error

    async def _named(self, caller: Caller, asked: Interception, request: RequestInfo) -> _Found:
        _, policy = await self.middlewares.policies.get(caller.tenant)
        one = (await self.middlewares.offered(caller, request)).get(asked.name)
        if one is None:
            raise InvalidArgumentsError("There is no interceptor of that name.", details={"pointer": "/name"})
        found = _found(asked.name, one, policy)
        if not found.kind.covers(asked.event, asked.phase):
            event = asked.event if SPELLED.fullmatch(asked.event) else None
            raise InvalidArgumentsError(
                "The interceptor does not hook this event in this phase.",
                details={
                    "pointer": "/event",
                    "name": asked.name,
                    **({"event": event} if event else {}),
                    "phase": asked.phase,
                    "advertisedHooks": found.kind.hooks(),
                },
            )
        return found

    def _descriptor(self, info: MiddlewareListing, found: _Found) -> dict[str, Any]:
        kind = found.kind
        return {
            "name": info.name,
            "version": info.version or self.version,
            "description": info.description,
            "type": kind.type,
            "hooks": kind.hooks(),
            **routing(kind, found.policy),
            "compat": {"minProtocol": self.min_protocol},
            "configSchema": config_schema(info.input_schema, kind),
        }


def _governed(asked: Interception) -> InterceptedPayload:
    try:
        return InterceptedPayload(asked.event, asked.phase, asked.payload)
    except UpstreamUnavailableError:
        raise InvalidArgumentsError(
            "The payload is not of the form that this event has.", details={"pointer": "/payload"}
        ) from None


def _found(name: str, offered: Middleware[Any] | PipelineVersion, policy: Policy) -> _Found:
    fixed = policy.fixed_arguments.get(name, {})
    phase = offered.pipeline.phase if isinstance(offered, PipelineVersion) else offered.phase
    kind = kind_of(name, phase, {**policy.default_arguments.get(name, {}), **fixed})
    return _Found(kind, policy.interceptors.get(name, InterceptorPolicy()), fixed)


def _message(one: Message, governed: InterceptedPayload) -> dict[str, Any]:
    path = governed.path(one.pointer) if one.pointer is not None else None
    return {**({"path": path} if path else {}), "message": one.text, "severity": one.severity}


def _renamed(pointer: str) -> str:
    """Return a pointer into what was asked for: arguments are the config, the context is made of the payload."""
    if pointer.startswith("/arguments"):
        return "/config" + pointer.removeprefix("/arguments")
    return "/payload" if pointer.startswith("/context") else pointer


def _definition(tool: Mapping[str, Any]) -> Any:
    """Return a tool's definition as MCP has it, whatever interface it is defined for."""
    inner = tool.get("function")
    if not isinstance(inner, Mapping):
        return tool
    schema = inner.get("parameters")
    known = {key: inner[key] for key in ("name", "description") if key in inner}
    return {**known, "inputSchema": schema if isinstance(schema, Mapping) else {"type": "object"}}
