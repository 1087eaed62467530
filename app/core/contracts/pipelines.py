"""Pipelines: middlewares that one call runs in order, defined by a tenant's operators."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.core.contracts.middleware import Arguments, Phase, ScopeName
from app.core.contracts.policy import Milliseconds
from app.core.contracts.policy_steps import Step

MAX_PIPELINES: Final = 200
MAX_STEPS: Final = 32
PIPELINES_CHANGED: Final = "pipelines"
PipelineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Line = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class PipelineArguments(Arguments):
    """Arguments of every pipeline, in addition to an object of arguments under each step's name."""

    scope: ScopeName | None = Field(
        default=None,
        description="Vault scope of every step that uses one. Without it, a new random scope is created and returned.",
    )
    dry_run: bool = Field(
        default=False,
        alias="dryRun",
        description="Show what each step changes and store nothing; handles are temporary.",
    )


class PipelineStep(Step):
    """One middleware of a pipeline, and what happens to the call if it fails."""

    name: str = Field(min_length=1, max_length=160, description="Name of the middleware.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Arguments of the middleware; callers cannot change them."
    )
    on_error: Literal["fail", "skip"] = Field(
        default="fail",
        description="fail: the whole call fails; skip: the context stays as it was before this step.",
    )
    timeout_ms: Milliseconds | None = Field(
        default=None, description="Time limit of the step in milliseconds, within the request's limit."
    )


class PipelineDefinition(BaseModel):
    """Middlewares that run in the order of ``steps``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Line = ""
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    phase: Phase = Field(default="outbound", description="outbound: before the model; inbound: after it.")
    steps: list[PipelineStep] = Field(min_length=1, max_length=MAX_STEPS)


class Pipeline(PipelineDefinition):
    """A definition and its name."""

    name: PipelineName = Field(
        description="Name in `middleware/list`; must differ from every installed middleware's."
    )

    def declared(self) -> dict[str, Any]:
        """Return the pipeline as an operator writes it, without defaults."""
        return {"name": self.name, "phase": self.phase, **self.model_dump(mode="json", exclude_defaults=True)}

    def document(self) -> dict[str, Any]:
        """Return the pipeline as it is stored, without its name."""
        return self.model_dump(mode="json", exclude={"name"})


def input_schema(pipeline: Pipeline, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of a pipeline's arguments: ``PipelineArguments`` and an object per step's name.

    ``schemas`` are those of the middlewares, by name. Arguments that the pipeline sets are left out, since a caller
    cannot change them.
    """
    properties: dict[str, Any] = PipelineArguments.model_json_schema(by_alias=True)["properties"]
    definitions: dict[str, Any] = {}
    for step in pipeline.steps:
        if step.name not in schemas:
            continue
        schema = dict(schemas[step.name])
        for name, definition in schema.pop("$defs", {}).items():
            definitions[f"{step.name}.{name}"] = _with_moved_references(definition, step.name)
        fixed = set(step.arguments)
        schema["properties"] = {
            name: _with_moved_references(property_schema, step.name)
            for name, property_schema in schema.get("properties", {}).items()
            if name not in fixed
        }
        # The policy may set required arguments, so missing ones are detected when the step runs.
        schema.pop("required", None)
        properties[step.name] = schema
    result: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if definitions:
        result["$defs"] = definitions
    return result


def _with_moved_references(schema: Any, step: str) -> Any:
    """Return a schema with references that point to the definitions of its step."""
    if isinstance(schema, Mapping):
        return {
            key: member.replace("#/$defs/", f"#/$defs/{step}.")
            if key == "$ref" and isinstance(member, str)
            else _with_moved_references(member, step)
            for key, member in schema.items()
        }
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_with_moved_references(item, step) for item in schema]
    return schema
