"""The pipelines of a tenant: their steps in order, with what each is told, and their versions."""

import json
from typing import Annotated, Any, Final

from fastapi import Path, Query
from starlette.responses import Response

from app.console.visits import VisitDep, new_pages
from app.core.access import Role
from app.core.contracts.pipelines import Pipeline
from app.core.errors import NotFoundError
from app.services.invoke.pipelines import PipelineVersion

PAGE: Final = "/console/policies/pipelines"
_LISTED: Final = 50
_MOST_VERSION: Final = 2**53

PipelinePath = Annotated[str, Path(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
VersionQuery = Annotated[int | None, Query(ge=1, le=_MOST_VERSION)]

router = new_pages()


@router.get(PAGE)
async def show_pipelines(
    visit: VisitDep, after: Annotated[str | None, Query(max_length=64)] = None
) -> Response:
    """Show the pipelines by name, each with the order of its steps."""
    listed = await visit.services.pipelines.list(visit.caller, visit.info, after=after, limit=_LISTED + 1)
    following = listed[_LISTED - 1].pipeline.name if len(listed) > _LISTED else None
    return visit.page("pipelines.html", {"pipelines": listed[:_LISTED], "next": following, "after": after})


@router.get(PAGE + "/{name}")
async def show_pipeline(visit: VisitDep, name: PipelinePath, version: VersionQuery = None) -> Response:
    """Show one pipeline, in its newest version or in another, and what that changed."""
    pipelines = visit.services.pipelines
    versions = await pipelines.history(visit.caller, name, visit.info, limit=_LISTED)
    shown = versions[0]
    if version is not None and version != shown.version:
        others = await pipelines.history(visit.caller, name, visit.info, before=version + 1, limit=1)
        if not others or others[0].version != version:
            raise NotFoundError("There is no such version of the pipeline.")
        shown = others[0]
    earlier = await pipelines.history(visit.caller, name, visit.info, before=shown.version, limit=1)
    values = {
        "shown": shown,
        "steps": _steps(shown.pipeline),
        "versions": versions,
        "changes": _changes(earlier[0], shown) if earlier else [],
        "earlier": earlier[0] if earlier else None,
        "may_try": visit.may(Role.INVOKER, Role.RESTORER) and versions[0].state == "active",
    }
    return visit.page("pipeline.html", values)


def _steps(pipeline: Pipeline) -> list[dict[str, Any]]:
    return [
        {
            "name": step.name,
            "arguments": _spelled(step.arguments) if step.arguments else "",
            "on_error": step.on_error,
            "timeout_ms": step.timeout_ms,
        }
        for step in pipeline.steps
    ]


def _changes(before: PipelineVersion, after: PipelineVersion) -> list[dict[str, str]]:
    """Return what differs between two versions, each step by its place."""
    old, new = _flat(before), _flat(after)
    return [
        {"pointer": pointer, "before": old.get(pointer, "absent"), "after": new.get(pointer, "absent")}
        for pointer in {**old, **new}
        if old.get(pointer) != new.get(pointer)
    ]


def _flat(version: PipelineVersion) -> dict[str, str]:
    document = version.pipeline.document()
    steps = document.pop("steps")
    flat = {"/state": version.state, **{f"/{name}": _spelled(value) for name, value in document.items()}}
    return flat | {f"/steps/{number}": _spelled(step) for number, step in enumerate(steps)}


def _spelled(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
