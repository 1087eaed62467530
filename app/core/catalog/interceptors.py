"""Interceptors: middlewares as the interceptor proposal (SEP-2624) shows them: hooks, types, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

Phase = Literal["request", "response"]
Type = Literal["validation", "mutation"]

EVENTS: Final = (
    *("tools/call", "tools/list", "prompts/get", "resources/read"),
    *("sampling/createMessage", "elicitation/create", "llm/completion", "context/transform"),
)
_ASKED: Final = tuple(event for event in EVENTS if event != "tools/list")
_RESULTS: Final = ("tools/call", "resources/read", "prompts/get")
_MODEL: Final = ("sampling/createMessage", "llm/completion", "context/transform")

REPORTING: Final[Mapping[str, Any]] = {"action": "report"}
"""What a validation runs with: it changes nothing, and says what it would refuse."""


@dataclass(frozen=True, slots=True)
class InterceptorKind:
    """What a middleware is as an interceptor: its type, the events it hooks by phase, and its place among others."""

    type: Type
    request: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    priority: int | Mapping[str, int] = 0
    reports: bool = False

    def hooks(self) -> list[dict[str, Any]]:
        """Return the hooks as the descriptor has them, one for each phase."""
        phases = (("request", self.request), ("response", self.response))
        return [{"events": list(events), "phase": phase} for phase, events in phases if events]

    def covers(self, event: str, phase: str) -> bool:
        """Return whether the interceptor hooks this."""
        return event in (self.request if phase == "request" else self.response)


KINDS: Final[Mapping[str, InterceptorKind]] = {
    # Documents come before redaction, which then sees them too.
    "document_retrieval": InterceptorKind("mutation", _MODEL, priority=-200_000),
    "secret_redaction": InterceptorKind("mutation", _ASKED, _RESULTS, priority=-110_000),
    "pii_redaction": InterceptorKind("mutation", _ASKED, _RESULTS, priority=-100_000),
    "timestamp_injector": InterceptorKind("mutation", _MODEL, priority=100),
    "tool_filter": InterceptorKind("mutation", (*_MODEL, "tools/list"), ("tools/list",)),
    "content_moderation": InterceptorKind("validation", _ASKED, _RESULTS, reports=True),
    "prompt_injection": InterceptorKind("validation", _ASKED, _RESULTS, reports=True),
    "hallucination_detection": InterceptorKind("validation", response=_MODEL, reports=True),
    "pii_restoration": InterceptorKind("mutation", response=_ASKED, priority=100_000),
    "audit_logging": InterceptorKind("validation", EVENTS, EVENTS),
}
"""The one table of what hooks where; middlewares that are not in it are of ``OTHERS``, by their phase."""

_MENDING: Final = InterceptorKind("mutation", response=_MODEL, priority=-100)
OTHERS: Final[Mapping[str, InterceptorKind]] = {
    "outbound": InterceptorKind("mutation", _MODEL),
    "inbound": InterceptorKind("mutation", response=_MODEL),
}


def kind_of(name: str, phase: str, usual: Mapping[str, Any]) -> InterceptorKind:
    """Return what a middleware is; ``usual`` are the arguments that the tenant's policy gives it.

    A policy that lets hallucination_detection mend or annotate answers makes it a mutation.
    """
    if name == "hallucination_detection" and usual.get("action") in {"fix", "annotate"}:
        return _MENDING
    return KINDS.get(name) or OTHERS[phase]


class PhasePriority(BaseModel):
    """A priority for each phase; absent: 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    request: "Priority | None" = None
    response: "Priority | None" = None


Priority = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class InterceptorPolicy(BaseModel):
    """What is recommended to those who invoke one interceptor; absent members: as it is built."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["active", "audit"] | None = Field(
        default=None, description="audit: observe, never block and never change."
    )
    fail_open: bool | None = Field(default=None, description="Whether a message may pass where it fails.")
    priority_hint: Priority | PhasePriority | None = Field(
        default=None, description="Order among mutations, lower first; one number or one per phase."
    )


def routing(kind: InterceptorKind, policy: InterceptorPolicy) -> dict[str, Any]:
    """Return ``mode``, ``failOpen`` and ``priorityHint`` as the wire has them: defaults are left out."""
    made: dict[str, Any] = {}
    if policy.mode == "audit":
        made["mode"] = "audit"
    if policy.fail_open:
        made["failOpen"] = True
    hint: Any = policy.priority_hint if policy.priority_hint is not None else kind.priority
    if isinstance(hint, PhasePriority):
        hint = {phase: number for phase, number in hint.model_dump().items() if number}
    if hint and kind.type == "mutation":
        made["priorityHint"] = hint
    return made


def config_schema(schema: Mapping[str, Any], kind: InterceptorKind) -> dict[str, Any]:
    """Return an input schema in the restricted form of ``configSchema``, its references resolved.

    A validation changes nothing, so what a middleware offers to do about its findings is left out.
    """
    definitions = schema.get("$defs", {})
    properties = {
        name: _inlined(one, definitions)
        for name, one in schema.get("properties", {}).items()
        if not (kind.reports and kind.type == "validation" and name in REPORTING)
    }
    made: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in schema.get("required", []) if name in properties]
    if required:
        made["required"] = required
    return {**made, "additionalProperties": False}


def _inlined(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    if isinstance(schema, Mapping):
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions:
            # A definition that holds itself has no end; below some depth anything goes.
            return _inlined(definitions[name], definitions, depth + 1) if depth < _NESTED else {}
        return {key: _inlined(one, definitions, depth) for key, one in schema.items() if key != "$defs"}
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_inlined(one, definitions, depth) for one in schema]
    return schema


_NESTED: Final = 8
_SEVERITIES: Final[Mapping[str, str]] = {"high": "error", "medium": "warn", "low": "info"}


@dataclass(frozen=True, slots=True)
class Message:
    """What a validation says of one item of the context; ``pointer`` is where in the context it stands."""

    text: str
    severity: str
    pointer: str | None = None
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validation decided; only ``error`` stops a message."""

    valid: bool
    severity: str
    messages: list[Message] = field(default_factory=list)


def verdict(name: str, said: Mapping[str, Any]) -> Verdict:
    """Return the verdict in the metadata of a middleware that is a validation."""
    if name == "content_moderation":
        return _moderated(said)
    if name in {"prompt_injection", "hallucination_detection"}:
        valid = (
            not said.get("suspected", False) if name == "prompt_injection" else said.get("supported", True)
        )
        messages = [_finding(name, one) for one in said.get("findings", [])]
        worst = "error" if not valid else "warn" if messages else "info"
        return Verdict(bool(valid), worst, messages)
    return Verdict(valid=True, severity="info")


def _moderated(said: Mapping[str, Any]) -> Verdict:
    valid = bool(said.get("allow", True))
    severity = "error" if not valid else "warn" if said.get("flags") else "info"
    messages = [
        Message(f"Flagged: {', '.join(one['flags'])}.", severity, f"/{one['item']}")
        for one in said.get("items", [])
        if one.get("flags")
    ]
    return Verdict(valid, severity, messages)


def _finding(name: str, found: Mapping[str, Any]) -> Message:
    said = found.get("message")
    if not isinstance(said, str):
        kind = str(found.get("kind", "finding")).replace("_", " ")
        said = f"Suspected attack: {kind}." if name == "prompt_injection" else f"Found: {kind}."
    pointer = found.get("pointer")
    if not isinstance(pointer, str):
        pointer = f"/{found['item']}" if isinstance(found.get("item"), int) else None
    fix = found.get("fix")
    severity = _SEVERITIES.get(str(found.get("severity")), "warn")
    return Message(said, severity, pointer, fix if isinstance(fix, str) else None)
