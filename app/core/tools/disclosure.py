"""Progressive disclosure: what of a tool is shown at first, and what once its description is asked for."""

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
_KEPT_AT_FIRST: Final = ("annotations", "icons", "execution", "_meta")

# Anything but control characters; NUL and lone surrogates no database keeps.
Line = Annotated[str, StringConstraints(min_length=1, max_length=MAX_SHORT, pattern=r"^[^\x00-\x1f\x7f]+$")]
Prose = Annotated[str, StringConstraints(min_length=1, max_length=MAX_DESCRIPTION, pattern=r"^[^\x00]+$")]
Guidance = dict[str, JsonValue]


class ToolExample(BaseModel):
    """One example of a call; members beside these two (``output``, say) are kept as they are."""

    model_config = ConfigDict(extra="allow", frozen=True)

    description: Annotated[str, StringConstraints(max_length=4096)] | None = Field(
        default=None, description="What the call is for."
    )
    input: dict[str, JsonValue] = Field(description="The arguments.")

    def wire(self) -> dict[str, Any]:
        """Return the example as clients see it."""
        return self.model_dump(exclude_none=True)


class ToolDescription(BaseModel):
    """What operators write about one tool; what they leave out is taken from the server's definition or derived.

    An empty list or object is an answer too: nothing is derived in its place.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    short: Line | None = Field(
        default=None, description="For the first stage: enough to choose the tool, nothing on how to call it."
    )
    description: Prose | None = Field(
        default=None, description="For the second stage; null: the server's own."
    )
    examples: Annotated[list[ToolExample], Field(max_length=MAX_EXAMPLES)] | None = Field(
        default=None,
        description="Calls that work; null: one derived from the input schema, where that is sure.",
    )
    usage_guidance: Guidance | None = Field(default=None, description="Notes on use, in any members.")
    error_guidance: Guidance | None = Field(
        default=None, description="What errors mean; null: derived from the bounds of the input schema."
    )

    def over(self, below: "ToolDescription | None") -> "ToolDescription":
        """Return this one, completed by what ``below`` says where this one says nothing."""
        if below is None:
            return self
        said = {name: value for name, value in self if value is not None}
        return below.model_copy(update=said)


def short_form(definition: Mapping[str, Any], described: ToolDescription | None) -> dict[str, Any]:
    """Return the first stage of a tool: enough to choose it, nothing on how to call it."""
    made: dict[str, Any] = {"name": definition["name"]}
    if "title" in definition:
        made["title"] = definition["title"]
    made["description"] = _short(definition, described)
    made["inputSchema"] = dict(_OPEN_SCHEMA)
    made |= {name: definition[name] for name in _KEPT_AT_FIRST if name in definition}
    return made


def full_entry(
    definition: Mapping[str, Any], exposed_name: str, described: ToolDescription | None
) -> dict[str, Any]:
    """Return the second stage of a tool: all that is needed to call it."""
    told = described or ToolDescription()
    schema = definition.get("inputSchema", {"type": "object"})
    own = definition.get("description")
    made: dict[str, Any] = {
        "name": exposed_name,
        "description": told.description
        or (own if isinstance(own, str) and own.strip() else None)
        or _short(definition, described),
        "inputSchema": schema,
    }
    made |= {name: definition[name] for name in ("outputSchema", "annotations") if name in definition}
    made["examples"] = _examples(schema, told)
    if told.usage_guidance:
        made["usage_guidance"] = told.usage_guidance
    guidance = told.error_guidance if told.error_guidance is not None else _error_guidance(schema)
    if guidance:
        made["error_guidance"] = guidance
    return made


def staged_for(policy: Policy, caller: Caller, primitive: Primitive) -> bool:
    """Return whether a caller gets a tool in two stages: as its key, else the tenant, else the server says."""
    if primitive.kind is not PrimitiveKind.TOOL or primitive.short is None:
        return False
    said = policy.disclosure.keys.get(caller.key_id) or policy.disclosure.default
    return primitive.staged if said is None else said == "staged"


def any_staged(policy: Policy, caller: Caller, tools: Iterable[Primitive]) -> bool:
    """Return whether a caller gets any of ``tools`` in two stages, and so the resource that describes them."""
    return any(staged_for(policy, caller, one) for one in tools)


def _short(definition: Mapping[str, Any], described: ToolDescription | None) -> str:
    if described is not None and described.short is not None:
        return described.short
    written = described.description if described is not None else None
    for text in (written, definition.get("description")):
        found = summary(text) if isinstance(text, str) else None
        if found is not None:
            return found
    annotations = definition.get("annotations")
    titles = (definition.get("title"), annotations.get("title") if isinstance(annotations, Mapping) else None)
    for title in titles:
        found = summary(title) if isinstance(title, str) else None
        if found is not None:
            return found
    return spoken_name(str(definition["name"]))


def _examples(schema: Any, told: ToolDescription) -> list[dict[str, Any]]:
    if told.examples is not None:
        return [one.wire() for one in told.examples]
    found = example_arguments(schema)
    if found is None:
        return []
    needed = required_names(schema)
    said = (
        "With the required arguments"
        if needed
        else "Without arguments"
        if not found
        else "With some arguments"
    )
    return [{"description": said, "input": found}]


def _error_guidance(schema: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    needed = required_names(schema)
    if needed:
        made["missing_argument"] = f"Give every required argument: {', '.join(needed)}."
    bounds = constraints(schema)
    if bounds:
        made["invalid_argument"] = bounds
    if isinstance(schema, Mapping) and schema.get("additionalProperties") is False:
        made["unknown_argument"] = "Only the arguments of the input schema are accepted."
    return made
