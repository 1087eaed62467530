"""The audit record of one call of a middleware, and the arguments that it runs with."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from app.core.access import Caller
from app.core.audit import OUTCOME_FAILED, OUTCOME_REFUSED, AuditEvent, Decision
from app.core.contracts.middleware import Arguments, Middleware
from app.core.contracts.policy import Policy
from app.core.errors import (
    AuditUnavailableError,
    BlockedByPolicyError,
    InternalError,
    InvalidArgumentsError,
    OverloadedError,
    RateLimitedError,
    ServiceError,
    StoreUnavailableError,
    UnscannableContentError,
)
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.services.audit.audit import AuditService

_REMEMBERED_MODELS = 512
_BLOCKS = frozenset({BlockedByPolicyError.code, UnscannableContentError.code})
_UNRECORDED = (
    asyncio.CancelledError,
    # There is nowhere to record the call.
    AuditUnavailableError,
    StoreUnavailableError,
    # Refused unread: the metrics count them, and a flood of calls must not become a flood of writes.
    RateLimitedError,
    OverloadedError,
)


@dataclass(slots=True)
class MiddlewareCall:
    """What is known of a call so far; ``input_json`` is the context as bytes, for digests and sizes.

    ``output_json`` is the answered context likewise, once there is an event of it.

    ``authority`` is who acts if not the caller: the tenant's policy, on the caller's behalf.
    """

    audit: AuditService
    caller: Caller
    request: RequestInfo
    action: str
    middleware: str | None = None
    policy_version: int | None = None
    started_ns: int = field(default_factory=time.perf_counter_ns)
    blocks: int = 0
    input_json: bytes = b""
    output_json: bytes = b""
    counts: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, str | int | bool] = field(default_factory=dict)
    sealed: bytes | None = None
    engines: dict[str, str] = field(default_factory=dict)
    """Name and version of the engine of each middleware that has one."""
    authority: Caller | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    """The surroundings of the call, for its record; names, never content."""

    @property
    def acting(self) -> Caller:
        """Return the caller whose roles apply."""
        return self.authority or self.caller

    def event(
        self, outcome: str, *, out: Sequence[Any] | None = None, scope: str | None = None
    ) -> AuditEvent:
        """Return the audit event of this call so far: keyed digests, sizes and counts."""
        tenant = self.caller.tenant
        answered = self.output_json = b"" if out is None else dumps(out)
        return self.audit.new_event(
            self.caller,
            self.action,
            outcome,
            self.request,
            middleware=self.middleware,
            policy_version=self.policy_version,
            scope_ref=None if scope is None else self.audit.scope_ref(tenant, scope),
            in_hmac=self.audit.digest(tenant, self.input_json) if self.input_json else None,
            out_hmac=self.audit.digest(tenant, answered) if answered else None,
            blocks=self.blocks,
            bytes_in=len(self.input_json),
            bytes_out=len(answered),
            counts=self.counts,
            duration_us=(time.perf_counter_ns() - self.started_ns) // 1000,
            details={**self.about, **self.details},
            sealed=self.sealed,
            decision=self._decision() if answered else None,
            engines=self.engines,
        )

    def _decision(self) -> Decision:
        """Return what became of content that was answered."""
        if self.output_json != self.input_json:
            return "change"
        return "flag" if speaks_against(self.details) else "allow"

    async def refused(self, error: BaseException) -> None:
        """Record that the call failed; if recording fails too, that error is raised instead of ``error``."""
        if isinstance(error, _UNRECORDED):
            return
        is_service_error = isinstance(error, ServiceError)
        code = error.code if isinstance(error, ServiceError) else InternalError.code
        if flags := flags_of(error):
            self.counts, self.details = flags
        event = self.event(OUTCOME_REFUSED if is_service_error else OUTCOME_FAILED)
        await self.audit.record(replace(event, error_code=code, decision=block_of(code)))
        self.recorded()
        self.audit.observe(blocked_by(error))

    def recorded(self) -> None:
        """Add what was found to the metrics; call it once the event of this call is stored."""
        if self.counts:
            self.audit.observe(self.counts)


def block_of(code: str | None) -> Decision | None:
    """Return ``block`` for the code of an error that refuses content for what it is, else None."""
    return "block" if code in _BLOCKS else None


def speaks_against(details: Mapping[str, str | int | bool]) -> bool:
    """Return whether a check among the details of an event would not have let the content pass."""
    return any(allowed is False for name, allowed in details.items() if name.endswith("allow"))


def flags_of(error: BaseException) -> tuple[Mapping[str, int], Mapping[str, str | int | bool]] | None:
    """Return what a middleware detected in a context that it refused, as counts and details of an event, or None.

    These are names of categories, never content.
    """
    if not isinstance(error, BlockedByPolicyError) or "flags" not in error.details:
        return None
    return dict.fromkeys(error.details["flags"], 1), {"severity": error.details["severity"], "allow": False}


def blocked_by(error: BaseException) -> Mapping[str, int]:
    """Return the findings for which a redaction refused a context, by label."""
    if not isinstance(error, BlockedByPolicyError):
        return {}
    return {name.upper(): number for name, number in error.details.get("types", {}).items()}


def merged_arguments(
    policy: Policy, middleware: Middleware[Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return default, caller's and fixed arguments merged; a caller's different value for a fixed one is refused."""
    usual, fixed = policy_arguments(policy, middleware)
    own = by_field(middleware, arguments)
    message = "The policy of this tenant fixes this argument to another value."
    refuse_changes(middleware.arguments, own, fixed, message)
    return {**usual, **own, **fixed}


def policy_arguments(policy: Policy, middleware: Middleware[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the policy's default and fixed arguments for a middleware."""
    usual = policy.default_arguments.get(middleware.name, {})
    return by_field(middleware, usual), by_field(middleware, policy.fixed_arguments.get(middleware.name, {}))


def by_field(middleware: Middleware[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names of the model's fields, so that an alias cannot bypass a fixed argument."""
    if not arguments:
        return {}
    model: type[Arguments] = middleware.arguments
    fields = _fields_by_alias(model)
    return {fields.get(name, name): value for name, value in arguments.items()}


@lru_cache(_REMEMBERED_MODELS)
def _fields_by_alias(model: type[Arguments]) -> Mapping[str, str]:
    return {field.alias: name for name, field in model.model_fields.items() if field.alias}


def refuse_changes(
    model: type[Arguments],
    own: Mapping[str, Any],
    fixed: Mapping[str, Any],
    message: str,
    at: str = "/arguments",
) -> None:
    """Refuse a caller's value for a fixed argument, unless it is the same value."""
    for key, value in fixed.items():
        if key in own and own[key] != value:
            raise BlockedByPolicyError(message, details={"pointer": f"{at}/{_spelled(model, key)}"})


def checked_arguments(middleware: Middleware[Any], arguments: Mapping[str, Any]) -> Any:
    """Return the arguments as the middleware's model, or refuse with a pointer to the first fault."""
    return checked(middleware.arguments, arguments)


def checked(
    model: type[Arguments],
    arguments: Mapping[str, Any],
    at: str = "/arguments",
    beside: Collection[str] = (),
) -> Any:
    """Return the arguments as ``model``, or refuse with a pointer below ``at`` to the first fault.

    ``beside`` are further names of arguments, which are read elsewhere.
    """
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        schema = model.model_json_schema(by_alias=True)
        pointers = [_pointer(model, schema, fault["loc"]) for fault in faults]
        if faults[0]["type"] == "extra_forbidden":
            message = "There is no such argument; the details list the valid ones"
        else:
            # One value may have several valid forms, each with its own message.
            alike = [
                fault["msg"]
                for fault, pointer in zip(faults, pointers, strict=True)
                if pointer == pointers[0]
            ]
            message = ", or ".join(dict.fromkeys(text.removeprefix("Value error, ") for text in alike))
        raise InvalidArgumentsError(
            f"{message[:1].upper()}{message[1:]}.",
            details={
                "pointer": at + pointers[0],
                "arguments": sorted({*schema.get("properties", {}), *beside}),
            },
        ) from None


def _pointer(model: type[Arguments], schema: Mapping[str, Any], location: Sequence[str | int]) -> str:
    """Return where a fault is, up to the first name outside the schema: such names are the caller's text."""
    outer = set(schema.get("properties", {}))
    inner = {
        name
        for schema_of_type in schema.get("$defs", {}).values()
        for name in schema_of_type.get("properties", ())
    }
    pointer = ""
    for depth, member in enumerate(location):
        name = _spelled(model, str(member)) if depth == 0 else member
        if not (isinstance(name, int) or name in (inner if depth else outer)):
            break
        pointer += f"/{name}"
    return pointer


def _spelled(model: type[Arguments], name: str) -> str:
    """Return the name of a field's argument in the schema."""
    field_of = model.model_fields.get(name)
    return name if field_of is None else field_of.alias or name


def weight_of(items: Any) -> int:
    """Return a cheap lower bound of the characters there are to encode."""
    if not isinstance(items, list):
        return 0
    total = 0
    for item in items:
        text = item.get("text", item.get("content")) if isinstance(item, dict) else item
        total += len(text) * (1 if isinstance(text, str) else 1000) if isinstance(text, str | list) else 100
    return total
