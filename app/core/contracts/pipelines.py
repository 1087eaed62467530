"""Pipelines: middlewares that one call runs in order, named by a tenant's operators."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from app.core.contracts.middleware import Arguments, Phase, ScopeName
from app.core.contracts.policy import Milliseconds

MAX_PIPELINES: Final = 200
MAX_STEPS: Final = 32
PIPELINES_CHANGED: Final = "pipelines"
PipelineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Line = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class PipelineArguments(Arguments):
    """What a caller may say to every pipeline, beside an object of arguments under a step's name."""

    scope: ScopeName | None = Field(
        default=None,
        description="Vault scope of every step that has one. Without it a new random one is made and returned.",
    )
    dry_run: bool = Field(
        default=False,
        alias="dryRun",
        description="Show what each step changes and store nothing; handles are provisional.",
    )


class PipelineStep(BaseModel):
    """One middleware of a pipeline and what becomes of the call where it fails."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=160, description="Name of the middleware.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Its arguments; callers cannot change these."
    )
    on_error: Literal["fail", "skip"] = Field(
        default="fail",
        description="fail: the whole call fails; skip: the text stays as it was before this step.",
    )
    timeout_ms: Milliseconds | None = Field(
        default=None, description="Time limit of the step, within the request's."
    )


class PipelineDefinition(BaseModel):
    """Middlewares that are run in the order of ``steps``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Line = ""
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    phase: Phase = Field(default="outbound", description="Before the model, or after it.")
    steps: list[PipelineStep] = Field(min_length=1, max_length=MAX_STEPS)


class Pipeline(PipelineDefinition):
    """A definition under its name."""

    name: PipelineName = Field(description="Name in `middleware/list`; no installed middleware has it.")

    def declared(self) -> dict[str, Any]:
        """Return the pipeline as an operator writes it, without what holds anyway."""
        return {"name": self.name, "phase": self.phase, **self.model_dump(mode="json", exclude_defaults=True)}

    def document(self) -> dict[str, Any]:
        """Return the pipeline as it is stored, without its name."""
        return self.model_dump(mode="json", exclude={"name"})


def input_schema(pipeline: Pipeline, schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of what a caller may say: ``PipelineArguments`` and an object per step's name.

    ``schemas`` are those of the middlewares by name. Arguments that the pipeline sets are left out: a caller cannot
    change them.
    """
    properties: dict[str, Any] = PipelineArguments.model_json_schema(by_alias=True)["properties"]
    definitions: dict[str, Any] = {}
    for step in pipeline.steps:
        if step.name not in schemas:
            continue
        schema = dict(schemas[step.name])
        for name, one in schema.pop("$defs", {}).items():
            definitions[f"{step.name}.{name}"] = _moved(one, step.name)
        given = set(step.arguments)
        schema["properties"] = {
            name: _moved(one, step.name)
            for name, one in schema.get("properties", {}).items()
            if name not in given
        }
        # What a step lacks is found when it runs: the policy may give it.
        schema.pop("required", None)
        properties[step.name] = schema
    made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if definitions:
        made["$defs"] = definitions
    return made


def _moved(schema: Any, step: str) -> Any:
    """Return a schema whose references point to the definitions of its step."""
    if isinstance(schema, Mapping):
        return {
            key: one.replace("#/$defs/", f"#/$defs/{step}.")
            if key == "$ref" and isinstance(one, str)
            else _moved(one, step)
            for key, one in schema.items()
        }
    if isinstance(schema, Sequence) and not isinstance(schema, str):
        return [_moved(one, step) for one in schema]
    return schema
