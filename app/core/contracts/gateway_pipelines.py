"""What the pipelines of a gateway's policy run: middlewares alone, with the steps of the tenant's own pipelines."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from app.core.contracts.gateway_policy import RESTORATION, GatewayPipeline
from app.core.contracts.middleware import REMOTE_SEPARATOR
from app.core.contracts.pipelines import Pipeline, PipelineStep
from app.core.contracts.policy_steps import Step
from app.core.errors import BlockedByPolicyError

_SOURCES: Final = ("scope", "redactions")


def flattened(entry: GatewayPipeline, find_pipeline: Callable[[str], Pipeline | None]) -> GatewayPipeline:
    """Return ``entry`` with the steps of pipelines in the places of their names; all are ``PipelineStep``s.

    Raises BlockedByPolicyError, whose details point into the entry, for what the gateway could not do: arguments for no
    step or against the pipeline's own, originals for another server, originals from elsewhere than the conversation.
    """
    parts: dict[str, list[Step]] = {}
    remote: list[str] = []
    for part, steps in (("outbound", entry.outbound), ("inbound", entry.inbound)):
        parts[part] = []
        for number, step in enumerate(steps):
            at, pipeline = f"/{part}/{number}", find_pipeline(step.name)
            if pipeline is None:
                inner = [PipelineStep(name=step.name, arguments=step.arguments)]
            else:
                inner = _inner(pipeline, step.arguments, at)
            if part == "inbound":
                _check_sources(inner, at)
                remote += [at for each in inner if REMOTE_SEPARATOR in each.name]
            parts[part] += inner
    result = entry.model_copy(update=parts)
    if result.restores and remote:
        raise _refused(
            "Answers are checked with originals in them, which never go to another server: leave its middleware or "
            f"{RESTORATION} out.",
            f"{remote[0]}/name",
        )
    return result


def joined(entries: Sequence[GatewayPipeline]) -> GatewayPipeline:
    """Return one entry that does what each of ``entries`` does, and restores only where all of them restore."""
    if len(entries) == 1:
        return entries[0]
    restored = all(entry.restores for entry in entries)
    inbound = [
        step
        for step in _different(entry.inbound for entry in entries)
        if restored or step.name != RESTORATION
    ]
    refuses = any(entry.streams == "refuse" for entry in entries)
    return GatewayPipeline.model_construct(
        outbound=_different(entry.outbound for entry in entries),
        inbound=inbound,
        streams="refuse" if refuses else "hold",
    )


def _inner(pipeline: Pipeline, arguments: Mapping[str, Any], at: str) -> list[PipelineStep]:
    """Return the steps of a pipeline with the policy's arguments for them, by their names."""
    names = {step.name for step in pipeline.steps}
    for name, own in arguments.items():
        if name not in names or not isinstance(own, Mapping):
            raise _refused(
                "Arguments of a pipeline are objects under the names of its steps.", f"{at}/arguments/{name}"
            )
    inner = []
    for step in pipeline.steps:
        own = arguments.get(step.name, {})
        if any(step.arguments.get(key, value) != value for key, value in own.items()):
            raise _refused("The pipeline sets this argument to another value.", f"{at}/arguments/{step.name}")
        inner.append(step.model_copy(update={"arguments": {**own, **step.arguments}}))
    return inner


def _check_sources(steps: Sequence[Step], at: str) -> None:
    for name in _SOURCES:
        if any(step.name == RESTORATION and name in step.arguments for step in steps):
            raise _refused(
                f"The gateway restores from its conversation: leave {name} of {RESTORATION} out.",
                f"{at}/arguments",
            )


def _different(lists: Iterable[Sequence[Step]]) -> list[Step]:
    steps: list[Step] = []
    for step in chain.from_iterable(lists):
        if step not in steps:
            steps.append(step)
    return steps


def _refused(message: str, pointer: str) -> BlockedByPolicyError:
    return BlockedByPolicyError(message, details={"pointer": pointer})
