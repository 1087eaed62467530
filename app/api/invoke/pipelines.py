"""Pipelines over REST: read, change and dry-run versioned sequences of middlewares."""

from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import Body as FromBody
from fastapi import Path, Query, Request, Response
from fastapi.openapi.models import Example
from pydantic import Field

from app.api.auth import CallerDep, InfoDep, ServicesDep, info_of, json_object, new_router, services_of
from app.api.fields import AnswerBody, CursorQuery, LimitQuery, Page, answer_page
from app.core.access import Role
from app.core.contracts.pipelines import Pipeline, PipelineDefinition, PipelineName
from app.core.errors import InvalidArgumentsError
from app.core.offload import off_loop
from app.core.strictjson import dumps
from app.edge.facts import facts_of
from app.edge.limits import needs
from app.services.invoke.pipelines import PipelineVersion

_MAX_VERSION: Final = 2**53
_OUTBOUND: Final = {
    "name": "to_model",
    "title": "To the model",
    "phase": "outbound",
    "steps": [
        {"name": "pii_redaction", "arguments": {"aggressiveness": "standard"}},
        {"name": "timestamp_injector", "on_error": "skip", "timeout_ms": 100},
    ],
}
_ITEMS: Final = {"type": "array", "items": {"type": "object"}}
_RUN: Final = {
    "type": "object",
    "required": ["context"],
    "additionalProperties": False,
    "properties": {
        "arguments": {"type": "object", "description": "Arguments that match the pipeline's inputSchema."},
        "context": _ITEMS,
    },
}
_EXAMPLE: Final = {"context": [{"type": "text", "text": "Mail Jane Smith."}]}

PipelinePath = Annotated[
    str, Path(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="Name of a pipeline.", examples=["to_model"])
]


class NamedDefinition(PipelineDefinition):
    """A pipeline in a request; the path names it, and the body may."""

    name: PipelineName | None = Field(
        default=None, description="Name of the pipeline; optional, must equal the name in the path."
    )


PipelineBody = Annotated[
    NamedDefinition,
    FromBody(openapi_examples={"to_model": Example(summary="Redact, then inject the time", value=_OUTBOUND)}),
]
ExpectedQuery = Annotated[
    int | None,
    Query(
        ge=0,
        le=_MAX_VERSION,
        description="Refuse the change (409) unless this is the current version; 0: no pipeline exists.",
    ),
]

router = new_router("/pipelines", "pipelines")
runs = new_router("/pipelines", "pipelines", invokes=True)


class PipelineAnswer(AnswerBody):
    """A version of a pipeline."""

    version: int
    pipeline: dict[str, Any] = Field(
        description="The pipeline in the form of the declarative file; absent fields are omitted."
    )
    state: str = Field(description="`active`; `removed`: this version deleted the pipeline.")
    origin: str = Field(description="`file`: managed by the declarative file; `api`: created over REST.")
    created: datetime
    created_by: str = Field(description="Id of the key that stored it.")


@router.get("", summary="List pipelines")
async def list_pipelines(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: CursorQuery = None,
) -> Page[PipelineAnswer]:
    """Return pipelines by name, each in its current version. Needs the role operator."""
    pipelines = await services.pipelines.list(caller, info, after=cursor, limit=limit + 1)
    return answer_page(pipelines, limit, _answer, lambda version: version.pipeline.name)


@router.get("/{name}", summary="Get a pipeline")
async def get_pipeline(
    name: PipelinePath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> PipelineAnswer:
    """Return the current version. Needs the role operator."""
    return _answer(await services.pipelines.get(caller, name, info))


@router.put("/{name}", summary="Create or change a pipeline")
@needs(Role.OPERATOR, action="pipelines.put")
async def put_pipeline(
    name: PipelinePath,
    body: PipelineBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> PipelineAnswer:
    """Store the next version. Every process uses it at once. Needs the role operator."""
    if body.name not in (None, name):
        raise InvalidArgumentsError(
            "The name in the body differs from the name in the path.", details={"pointer": "/name"}
        )
    pipeline = Pipeline.model_validate({**dict(body), "name": name})
    return _answer(await services.pipelines.put(caller, pipeline, info, expected_version=expected_version))


@router.get("/{name}/versions", summary="List the versions of a pipeline")
async def list_pipeline_versions(
    name: PipelinePath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    limit: LimitQuery = 100,
    cursor: Annotated[
        int | None, Query(ge=0, le=_MAX_VERSION, description="`next` of the previous page.")
    ] = None,
) -> Page[PipelineAnswer]:
    """Return versions, newest first, including deletions. Needs the role operator."""
    versions = await services.pipelines.history(caller, name, info, before=cursor, limit=limit + 1)
    return answer_page(versions, limit, _answer, lambda version: str(version.version))


@router.delete("/{name}", status_code=204, summary="Delete a pipeline")
@needs(Role.OPERATOR, action="pipelines.delete")
async def delete_pipeline(
    name: PipelinePath,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    expected_version: ExpectedQuery = None,
) -> None:
    """Delete a pipeline; its versions stay in the history. Needs the role operator."""
    await services.pipelines.delete(caller, name, info, expected_version=expected_version)


@runs.post(
    "/{name}/dry-run",
    summary="Show what each step of a pipeline changes",
    response_class=Response,
    responses={
        200: {
            "description": "The context after all steps, and the changes of each step in `metadata.steps`.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["content", "metadata"],
                        "properties": {"content": _ITEMS, "metadata": {"type": "object"}},
                    }
                }
            },
        }
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _RUN, "examples": {"text": {"value": _EXAMPLE}}}},
        },
    },
)
@needs(Role.INVOKER, Role.RESTORER, action="middleware.dry_run")
async def dry_run_pipeline(name: PipelinePath, request: Request, caller: CallerDep) -> Response:
    """Run the pipeline for this caller and store only the audit event. Handles are temporary."""
    services, info = services_of(request), info_of(request)
    body = json_object(request, frozenset({"arguments", "context"}))
    arguments = body.get("arguments", {})
    if not isinstance(arguments, dict):
        raise InvalidArgumentsError("arguments must be an object.", details={"pointer": "/arguments"})
    if not isinstance(body.get("context"), list):
        raise InvalidArgumentsError("context must be a list of items.", details={"pointer": "/context"})
    result = await services.invoke.dry_run(caller, name, arguments, body["context"], info)
    size = facts_of(request.scope).bytes_in
    answer = await off_loop(size, dumps, {"content": result.content, "metadata": result.metadata})
    return Response(answer, media_type="application/json")


def _answer(version: PipelineVersion) -> PipelineAnswer:
    return PipelineAnswer.model_validate({**version._asdict(), "pipeline": version.pipeline.declared()})
