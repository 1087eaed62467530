"""Progressive disclosure: the short form of a tool at first, and the full form once its description is read."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from app.core.access import Caller
from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.catalog.schema_examples import example_arguments
from app.core.catalog.schema_reading import constraints, required_names
from app.core.catalog.summaries import spoken_name, summary
from app.core.contracts.policy import Policy

MAX_SHORT: Final = 500
MAX_DESCRIPTION: Final = 32_768
MAX_EXAMPLES: Final = 32
_OPEN_SCHEMA: Final = {"type": "object", "additionalProperties": True}
_FIRST_STAGE_MEMBERS: Final = ("annotations", "icons", "execution", "_meta")

# Anything but control characters; databases do not store NUL and lone surrogates.
Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SHORT, pattern=r"^[^\x00-\x1f\x7f]+$")]
Prose = Annotated[str, StringConstraints(min_length=1, max_length=MAX_DESCRIPTION, pattern=r"^[^\x00]+$")]
Guidance = dict[str, JsonValue]


class ToolExample(BaseModel):
    """One example of a call; other members (such as ``output``) are kept unchanged."""

    model_config = ConfigDict(extra="allow", frozen=True)

    description: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        default=None, description="What the call is for."
    )
    input: dict[str, JsonValue] = Field(description="The arguments of the call.")

    def wire(self) -> dict[str, Any]:
        """Return the example in wire form."""
        return self.model_dump(exclude_none=True)


class ToolDescription(BaseModel):
    """An operator's description of one tool; missing members come from the server's definition or are derived.

    An empty list or object counts as written: nothing is derived instead.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    short: Line | None = Field(
        default=None, description="For the first stage: enough to choose the tool, but not how to call it."
    )
    description: Prose | None = Field(
        default=None, description="For the second stage; null: the server's own."
    )
    examples: Annotated[list[ToolExample], Field(max_length=MAX_EXAMPLES)] | None = Field(
        default=None,
        description="Valid calls; null: one derived from the input schema, if it certainly fits.",
    )
    usage_guidance: Guidance | None = Field(default=None, description="Notes on use, in any members.")
    error_guidance: Guidance | None = Field(
        default=None, description="What errors mean; null: derived from the bounds of the input schema."
    )

    def completed_by(self, defaults: "ToolDescription | None") -> "ToolDescription":
        """Return this description with missing members taken from ``defaults``."""
        if defaults is None:
            return self
        members = {name: value for name, value in self if value is not None}
        return defaults.model_copy(update=members)


def short_form(definition: Mapping[str, Any], described: ToolDescription | None) -> dict[str, Any]:
    """Return the first stage of a tool: enough to choose it, but not how to call it."""
    entry: dict[str, Any] = {"name": definition["name"]}
    if "title" in definition:
        entry["title"] = definition["title"]
    entry["description"] = _short_description(definition, described)
    entry["inputSchema"] = dict(_OPEN_SCHEMA)
    entry |= {name: definition[name] for name in _FIRST_STAGE_MEMBERS if name in definition}
    return entry


def full_entry(
    definition: Mapping[str, Any], exposed_name: str, described: ToolDescription | None
) -> dict[str, Any]:
    """Return the second stage of a tool: all that is required to call it."""
    content = described or ToolDescription()
    schema = definition.get("inputSchema", {"type": "object"})
    own = definition.get("description")
    entry: dict[str, Any] = {
        "name": exposed_name,
        "description": content.description
        or (own if isinstance(own, str) and own.strip() else None)
        or _short_description(definition, described),
        "inputSchema": schema,
    }
    entry |= {name: definition[name] for name in ("outputSchema", "annotations") if name in definition}
    entry["examples"] = _examples(schema, content)
    if content.usage_guidance:
        entry["usage_guidance"] = content.usage_guidance
    guidance = content.error_guidance if content.error_guidance is not None else _error_guidance(schema)
    if guidance:
        entry["error_guidance"] = guidance
    return entry


def staged_for(policy: Policy, caller: Caller, primitive: Primitive) -> bool:
    """Return whether a caller gets a tool in two stages, as set for its key, else the tenant, else the server."""
    if primitive.kind is not PrimitiveKind.TOOL or primitive.short is None:
        return False
    setting = policy.disclosure.keys.get(caller.key_id) or policy.disclosure.default
    return primitive.staged if setting is None else setting == "staged"


def any_staged(policy: Policy, caller: Caller, tools: Iterable[Primitive]) -> bool:
    """Return whether a caller gets any of ``tools`` in two stages, and so the resource that describes them."""
    return any(staged_for(policy, caller, tool) for tool in tools)


def _short_description(definition: Mapping[str, Any], described: ToolDescription | None) -> str:
    if described is not None and described.short is not None:
        return described.short
    own_description = described.description if described is not None else None
    for text in (own_description, definition.get("description")):
        sentence = summary(text) if isinstance(text, str) else None
        if sentence is not None:
            return sentence
    annotations = definition.get("annotations")
    titles = (definition.get("title"), annotations.get("title") if isinstance(annotations, Mapping) else None)
    for title in titles:
        sentence = summary(title) if isinstance(title, str) else None
        if sentence is not None:
            return sentence
    return spoken_name(str(definition["name"]))


def _examples(schema: Any, content: ToolDescription) -> list[dict[str, Any]]:
    if content.examples is not None:
        return [example.wire() for example in content.examples]
    arguments = example_arguments(schema)
    if arguments is None:
        return []
    required = required_names(schema)
    description = (
        "With the required arguments"
        if required
        else "Without arguments"
        if not arguments
        else "With some arguments"
    )
    return [{"description": description, "input": arguments}]


def _error_guidance(schema: Any) -> dict[str, Any]:
    guidance: dict[str, Any] = {}
    required = required_names(schema)
    if required:
        guidance["missing_argument"] = f"Give every required argument: {', '.join(required)}."
    bounds = constraints(schema)
    if bounds:
        guidance["invalid_argument"] = bounds
    if isinstance(schema, Mapping) and schema.get("additionalProperties") is False:
        guidance["unknown_argument"] = "Only the arguments of the input schema are accepted."
    return guidance
