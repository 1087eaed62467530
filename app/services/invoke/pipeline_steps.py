"""The steps of a pipeline run: the arguments of each, and a report of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.contracts.engines import EngineReport
from app.core.contracts.middleware import Middleware
from app.core.contracts.pipelines import Pipeline, PipelineArguments, PipelineStep
from app.core.contracts.policy import Policy
from app.core.errors import (
    BlockedByPolicyError,
    ForbiddenError,
    InvalidArgumentsError,
    NotFoundError,
    ServiceError,
    UnscannableContentError,
)
from app.services.invoke.calls import by_field, checked, policy_arguments, refuse_changes

FINAL: Final = (BlockedByPolicyError, UnscannableContentError, ForbiddenError, InvalidArgumentsError)
"""Refusals: they are a step's result, not its failure, so ``on_error`` never skips them."""

_PER_STEP: Final = frozenset({"engine", "warnings", "unscanned"})
"""Members of metadata that describe one step, never the whole pipeline."""


@dataclass(frozen=True, slots=True)
class ReadyStep:
    """A step with the middleware that it names and the arguments that it runs with."""

    step: PipelineStep
    middleware: Middleware[Any]
    arguments: Any


@dataclass(slots=True)
class StepReport:
    """The result of a step; ``outcome`` is ok, or the code of the error for which it was skipped."""

    name: str
    outcome: str = "ok"
    duration_us: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    details: Mapping[str, str | int | bool] = field(default_factory=dict)
    changes: dict[str, Any] | None = None
    engine: EngineReport | None = None

    def shown(self) -> dict[str, Any]:
        """Return the report as it appears in metadata."""
        skipped = self.outcome != "ok"
        shown: dict[str, Any] = {
            "name": self.name,
            "outcome": "skipped" if skipped else "ok",
            "durationMs": self.duration_us / 1000,
        }
        if skipped:
            shown["error"] = self.outcome
        if self.metadata:
            shown["metadata"] = self.metadata
        return shown | (self.changes or {})


def ready(
    pipeline: Pipeline,
    middlewares: Mapping[str, Middleware[Any]],
    policy: Policy,
    arguments: Mapping[str, Any],
) -> tuple[PipelineArguments, list[ReadyStep]]:
    """Return the caller's arguments for the whole pipeline, and every step with its arguments; all are checked.

    A step's arguments are the policy's defaults, overridden by the caller's, by the pipeline's, and by what the policy
    fixes. A caller who sends another value for what the pipeline or the policy sets is refused.
    """
    names = {step.name for step in pipeline.steps}
    whole = {key: value for key, value in arguments.items() if key not in names}
    own = checked(PipelineArguments, whole, beside=names)
    steps = [
        _ready_step(step, middlewares, policy, own, arguments.get(step.name, {})) for step in pipeline.steps
    ]
    return own, steps


def _ready_step(
    step: PipelineStep,
    middlewares: Mapping[str, Middleware[Any]],
    policy: Policy,
    own: PipelineArguments,
    step_arguments: Any,
) -> ReadyStep:
    at = f"/arguments/{step.name}"
    middleware = middlewares.get(step.name)
    if middleware is None:
        raise NotFoundError("A step of this pipeline names a middleware that is not installed here.")
    if not isinstance(step_arguments, Mapping):
        raise InvalidArgumentsError("The arguments of a step must be an object.", details={"pointer": at})
    usual, fixed = policy_arguments(policy, middleware)
    pipelines, callers = by_field(middleware, step.arguments), by_field(middleware, step_arguments)
    model = middleware.arguments
    refuse_changes(model, callers, pipelines, "The pipeline sets this argument to another value.", at)
    refuse_changes(
        model, callers, fixed, "The policy of this tenant fixes this argument to another value.", at
    )
    merged = {**usual, **callers, **pipelines, **fixed}
    if own.scope is not None and "scope" in middleware.arguments.model_fields:
        if merged.get("scope") not in (None, own.scope):
            raise BlockedByPolicyError(
                "A step of this pipeline has another vault scope.", details={"pointer": "/arguments/scope"}
            )
        merged["scope"] = own.scope
    return ReadyStep(step, middleware, checked(model, merged, at))


def overall(reports: Sequence[StepReport]) -> dict[str, Any]:
    """Return the steps' metadata about the context: members that only one step has, as that step returned them."""
    merged: dict[str, Any] = {}
    repeated: set[str] = set()
    for report in reports:
        for key, value in report.metadata.items():
            repeated |= {key} & merged.keys()
            merged.setdefault(key, value)
    kept = {key: value for key, value in merged.items() if key not in repeated and key not in _PER_STEP}
    if any(report.metadata.get("degraded") for report in reports):
        kept["degraded"] = True
    return kept


def audited(reports: Iterable[StepReport]) -> dict[str, str | int | bool]:
    """Return the steps as the details of an audit event: names, outcomes, times and identifiers."""
    details: dict[str, str | int | bool] = {}
    for number, report in enumerate(reports, 1):
        at = f"step_{number}"
        details |= {at: report.name, f"{at}_outcome": report.outcome, f"{at}_us": report.duration_us}
        if report.metadata.get("degraded"):
            details[f"{at}_degraded"] = True
        details |= {f"{at}_{key}": value for key, value in report.details.items()}
    return details


def engines_of(reports: Iterable[StepReport]) -> dict[str, str]:
    """Return name and version of the engine of each step that has one, for an audit event."""
    return {report.name: str(report.engine) for report in reports if report.engine is not None}


def changes(before: Sequence[Any], after: Sequence[Any]) -> dict[str, Any]:
    """Return which items a step changed and which it added in front, for a dry run."""
    added = len(after) - len(before)
    if added < 0:
        return {"changes": [{"before": list(before), "after": list(after)}], "added": []}
    pairs = enumerate(zip(before, after[added:], strict=True))
    changed = [{"item": item, "before": old, "after": new} for item, (old, new) in pairs if old != new]
    return {"changes": changed, "added": list(after[:added])}


def failure_of(error: Exception) -> str:
    """Return the code under which a failure is recorded."""
    return error.code if isinstance(error, ServiceError) else "internal_error"
