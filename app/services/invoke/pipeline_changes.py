"""Changes of pipelines: checked against the installed middlewares, stored as versions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.core.contracts.middleware import REMOTE_SEPARATOR, Middleware
from app.core.contracts.pipelines import MAX_PIPELINES, PIPELINES_CHANGED, Pipeline, PipelineStep
from app.core.errors import ConflictError, InvalidArgumentsError, TooLargeError
from app.core.events import Changed
from app.services.access.policies import ArgumentCheck
from app.store.changes import announce
from app.store.pipelines import (
    Origin,
    PipelineTransaction,
    StoredPipeline,
    add_pipeline,
    list_pipelines,
)


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """What storing a set of pipelines changes: names in alphabetical order."""

    created: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: list[str]


@dataclass(frozen=True, slots=True)
class PipelineRules:
    """The rules for what may be stored, given the installed middlewares."""

    middlewares: Mapping[str, Middleware[Any]]
    check_arguments: ArgumentCheck

    def check(self, pipeline: Pipeline, at: str = "") -> None:
        """Refuse what could not run, or would pass on what a step is meant to withhold."""
        if pipeline.name in self.middlewares:
            raise ConflictError(
                "An installed middleware has this name; give the pipeline another.",
                details={"pointer": f"{at}/name"},
            )
        if REMOTE_SEPARATOR in pipeline.name:
            raise InvalidArgumentsError(
                "Two underscores separate a server from its middleware; give the pipeline another name.",
                details={"pointer": f"{at}/name"},
            )
        scopes = {step.arguments["scope"] for step in pipeline.steps if step.arguments.get("scope")}
        if len(scopes) > 1:
            raise InvalidArgumentsError(
                "The steps of one pipeline share one vault scope.", details={"pointer": f"{at}/steps"}
            )
        conceals = restores = False
        for number, step in enumerate(pipeline.steps):
            self._check_step(step, f"{at}/steps/{number}")
            middleware = self.middlewares.get(step.name)
            if middleware is None:
                # A remote middleware: whether its server offers it shows only when it runs.
                if restores:
                    raise InvalidArgumentsError(
                        "Originals never go to another server; put this step before the one that restores.",
                        details={"pointer": f"{at}/steps/{number}/name"},
                    )
                continue
            if middleware.restores and conceals:
                raise InvalidArgumentsError(
                    "A pipeline that redacts must not restore after that; make two pipelines.",
                    details={"pointer": f"{at}/steps/{number}/name"},
                )
            conceals, restores = conceals or middleware.conceals, restores or middleware.restores

    def _check_step(self, step: PipelineStep, pointer: str) -> None:
        fault = self.check_arguments(step.name, step.arguments)
        if fault is not None and not fault.pointer:
            raise InvalidArgumentsError(
                "There is no middleware of that name; a step is a middleware, never another pipeline.",
                details={"pointer": f"{pointer}/name"},
            )
        if fault is not None:
            raise InvalidArgumentsError(
                fault.message, details={"pointer": f"{pointer}/arguments{fault.pointer}"}
            )
        installed = self.middlewares.get(step.name)
        if installed is not None and installed.conceals and step.on_error == "skip":
            raise InvalidArgumentsError(
                "A step that redacts cannot be skipped: nothing may pass that it has not checked.",
                details={"pointer": f"{pointer}/on_error"},
            )


async def replace_pipelines(
    tx: PipelineTransaction,
    tenant: str,
    wanted: Sequence[Pipeline],
    moment: datetime,
    *,
    by: str,
    check: Callable[[Pipeline, str], None],
) -> PipelinePlan:
    """Make the declarative file's pipelines exactly ``wanted``; those made over REST stay unless named."""
    stored = {version.name: version for version in await list_pipelines(tx, tenant)}
    active = {name: version for name, version in stored.items() if version.state == "active"}
    named = {pipeline.name: pipeline for pipeline in wanted}
    for number, pipeline in enumerate(wanted):
        check(pipeline, f"/pipelines/{number}")
    gone = sorted(name for name, version in active.items() if name not in named and version.origin == "file")
    check_number(len(named.keys() | active.keys()) - len(gone))
    new = sorted(named.keys() - active.keys())
    other = sorted(
        name
        for name in named.keys() & active.keys()
        if pipeline_of(active[name]).document() != named[name].document()
    )
    same = sorted(named.keys() - {*new, *other})
    for name in [*new, *other, *(name for name in same if active[name].origin != "file")]:
        await store_version(tx, tenant, named[name], stored.get(name), "file", moment, by)
    for name in gone:
        await _store(tx, tenant, next_version(active[name], "removed", moment, by))
    if new or other or gone:
        await announce(tx, Changed(PIPELINES_CHANGED, tenant))
    return PipelinePlan(new, other, gone, same)


async def store_version(
    tx: PipelineTransaction,
    tenant: str,
    pipeline: Pipeline,
    current: StoredPipeline | None,
    origin: Origin,
    moment: datetime,
    by: str,
) -> StoredPipeline:
    """Store the version after ``current``, or raise ConflictError if another process stored it first."""
    version = current.version + 1 if current is not None else 1
    added = StoredPipeline(pipeline.name, version, pipeline.document(), "active", origin, moment, by)
    await _store(tx, tenant, added)
    return added


def next_version(current: StoredPipeline, state: Any, moment: datetime, by: str) -> StoredPipeline:
    """Return the version after ``current``, which differs only in its state."""
    return replace(current, version=current.version + 1, state=state, created=moment, created_by=by)


async def _store(tx: PipelineTransaction, tenant: str, added: StoredPipeline) -> None:
    if not await add_pipeline(tx, tenant, added):
        raise version_conflict(added.version)


def check_number(number: int) -> None:
    """Refuse more pipelines than one list shows."""
    if number > MAX_PIPELINES:
        raise TooLargeError(
            f"There are at most {MAX_PIPELINES} pipelines.",
            details={"limit": "pipelines", "maximum": MAX_PIPELINES},
        )


def pipeline_of(stored: StoredPipeline) -> Pipeline:
    """Return a stored pipeline in the form in which operators write it."""
    return Pipeline.model_validate({**stored.document, "name": stored.name})


def version_conflict(current_version: int) -> ConflictError:
    """Return the error for a change that is based on another version than the current one."""
    return ConflictError(
        "The pipeline was changed meanwhile; read it again and repeat the change.",
        details={"version": current_version},
    )
