"""Middlewares as interceptors of the proposal SEP-2624: hooks, types and verdicts."""

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
_ALL_BUT_LISTS: Final = tuple(event for event in EVENTS if event != "tools/list")
_RESULT_EVENTS: Final = ("tools/call", "resources/read", "prompts/get")
_MODEL_EVENTS: Final = ("sampling/createMessage", "llm/completion", "context/transform")

REPORTING: Final[Mapping[str, Any]] = {"action": "report"}
"""Arguments of a validation: change nothing and report what would be refused."""


@dataclass(frozen=True, slots=True)
class InterceptorKind:
    """A middleware's role as an interceptor: its type, its events by phase, and its priority among others."""

    type: Type
    request: tuple[str, ...] = ()
    response: tuple[str, ...] = ()
    priority: int | Mapping[str, int] = 0
    reports: bool = False

    def hooks(self) -> list[dict[str, Any]]:
        """Return the hooks for the descriptor, one per phase."""
        phases = (("request", self.request), ("response", self.response))
        return [{"events": list(events), "phase": phase} for phase, events in phases if events]

    def covers(self, event: str, phase: str) -> bool:
        """Return whether the interceptor hooks this event in this phase."""
        return event in (self.request if phase == "request" else self.response)


KINDS: Final[Mapping[str, InterceptorKind]] = {
    # Documents are added before redaction, so that redaction sees them too.
    "document_retrieval": InterceptorKind("mutation", _MODEL_EVENTS, priority=-200_000),
    "secret_redaction": InterceptorKind("mutation", _ALL_BUT_LISTS, _RESULT_EVENTS, priority=-110_000),
    "pii_redaction": InterceptorKind("mutation", _ALL_BUT_LISTS, _RESULT_EVENTS, priority=-100_000),
    "timestamp_injector": InterceptorKind("mutation", _MODEL_EVENTS, priority=100),
    "tool_filter": InterceptorKind("mutation", (*_MODEL_EVENTS, "tools/list"), ("tools/list",)),
    "content_moderation": InterceptorKind("validation", _ALL_BUT_LISTS, _RESULT_EVENTS, reports=True),
    "prompt_injection": InterceptorKind("validation", _ALL_BUT_LISTS, _RESULT_EVENTS, reports=True),
    "hallucination_detection": InterceptorKind("validation", response=_MODEL_EVENTS, reports=True),
    "pii_restoration": InterceptorKind("mutation", response=_ALL_BUT_LISTS, priority=100_000),
    "audit_logging": InterceptorKind("validation", EVENTS, EVENTS),
}
"""What each middleware hooks; those that are not listed take the entry of ``OTHERS`` for their phase."""

_CORRECTING: Final = InterceptorKind("mutation", response=_MODEL_EVENTS, priority=-100)
OTHERS: Final[Mapping[str, InterceptorKind]] = {
    "outbound": InterceptorKind("mutation", _MODEL_EVENTS),
    "inbound": InterceptorKind("mutation", response=_MODEL_EVENTS),
}


def kind_of(name: str, phase: str, usual: Mapping[str, Any]) -> InterceptorKind:
    """Return the kind of a middleware; ``usual`` are the arguments that the tenant's policy sets for it.

    A policy that lets hallucination_detection fix or annotate answers makes it a mutation.
    """
    if name == "hallucination_detection" and usual.get("action") in {"fix", "annotate"}:
        return _CORRECTING
    return KINDS.get(name) or OTHERS[phase]


Priority = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class PhasePriority(BaseModel):
    """A priority per phase; absent: 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    request: Priority | None = Field(default=None, description="Order in the request phase.")
    response: Priority | None = Field(default=None, description="Order in the response phase.")


class InterceptorPolicy(BaseModel):
    """Recommendations for callers of one interceptor; absent members: its built-in values."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["active", "audit"] | None = Field(
        default=None, description="audit: observe, never block and never change."
    )
    fail_open: bool | None = Field(
        default=None, description="Whether a message may pass if the interceptor fails."
    )
    priority_hint: Priority | PhasePriority | None = Field(
        default=None, description="Order among mutations, lower first; one number or one per phase."
    )


def routing(kind: InterceptorKind, policy: InterceptorPolicy) -> dict[str, Any]:
    """Return ``mode``, ``failOpen`` and ``priorityHint`` in wire form, without defaults."""
    result: dict[str, Any] = {}
    if policy.mode == "audit":
        result["mode"] = "audit"
    if policy.fail_open:
        result["failOpen"] = True
    hint: Any = policy.priority_hint if policy.priority_hint is not None else kind.priority
    if isinstance(hint, PhasePriority):
        hint = {phase: number for phase, number in hint.model_dump().items() if number}
    if hint and kind.type == "mutation":
        result["priorityHint"] = hint
    return result


def config_schema(schema: Mapping[str, Any], kind: InterceptorKind) -> dict[str, Any]:
    """Return an input schema in the restricted form of ``configSchema``, with references resolved.

    A validation changes nothing, so the middleware's argument ``action`` is left out.
    """
    definitions = schema.get("$defs", {})
    properties = {
        name: _inlined(property_schema, definitions)
        for name, property_schema in schema.get("properties", {}).items()
        if not (kind.reports and kind.type == "validation" and name in REPORTING)
    }
    result: dict[str, Any] = {"type": "object", "properties": properties}
    required = [name for name in schema.get("required", []) if name in properties]
    if required:
        result["required"] = required
    return {**result, "additionalProperties": False}


def _inlined(schema: Any, definitions: Mapping[str, Any], depth: int = 0) -> Any:
    if isinstance(schema, Mapping):
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in definitions:
            # A definition may contain itself, so below some depth the schema allows anything.
            return _inlined(definitions[name], definitions, depth + 1) if depth < _MAX_NESTING else {}
        return {key: _inlined(member, definitions, depth) for key, member in schema.items() if key != "$defs"}
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_inlined(item, definitions, depth) for item in schema]
    return schema


_MAX_NESTING: Final = 8
_SEVERITIES: Final[Mapping[str, str]] = {"high": "error", "medium": "warn", "low": "info"}


@dataclass(frozen=True, slots=True)
class Message:
    """A validation's message about one item; ``pointer`` is the item's JSON pointer in the context."""

    text: str
    severity: str
    pointer: str | None = None
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of a validation; only the severity ``error`` stops a message."""

    valid: bool
    severity: str
    messages: list[Message] = field(default_factory=list)


def verdict(name: str, metadata: Mapping[str, Any]) -> Verdict:
    """Return the verdict in the metadata of a middleware that runs as a validation."""
    if name == "content_moderation":
        return _moderation_verdict(metadata)
    if name in {"prompt_injection", "hallucination_detection"}:
        valid = (
            not metadata.get("suspected", False)
            if name == "prompt_injection"
            else metadata.get("supported", True)
        )
        messages = [_message_of(name, finding) for finding in metadata.get("findings", [])]
        worst = "error" if not valid else "warn" if messages else "info"
        return Verdict(bool(valid), worst, messages)
    return Verdict(valid=True, severity="info")


def _moderation_verdict(metadata: Mapping[str, Any]) -> Verdict:
    valid = bool(metadata.get("allow", True))
    severity = "error" if not valid else "warn" if metadata.get("flags") else "info"
    messages = [
        Message(f"Flagged: {', '.join(item['flags'])}.", severity, f"/{item['item']}")
        for item in metadata.get("items", [])
        if item.get("flags")
    ]
    return Verdict(valid, severity, messages)


def _message_of(name: str, finding: Mapping[str, Any]) -> Message:
    text = finding.get("message")
    if not isinstance(text, str):
        kind = str(finding.get("kind", "finding")).replace("_", " ")
        text = f"Suspected attack: {kind}." if name == "prompt_injection" else f"Found: {kind}."
    pointer = finding.get("pointer")
    if not isinstance(pointer, str):
        pointer = f"/{finding['item']}" if isinstance(finding.get("item"), int) else None
    fix = finding.get("fix")
    severity = _SEVERITIES.get(str(finding.get("severity")), "warn")
    return Message(text, severity, pointer, fix if isinstance(fix, str) else None)
