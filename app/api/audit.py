"""The record over REST: a page of events, or all of them as a file."""

from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Query
from starlette.responses import Response, StreamingResponse

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Moment, Word
from app.core.strictjson import dumps
from app.services.audit.audit import MAX_PAGE, AuditQuery
from app.services.audit.export import described

_MEDIA_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One act: who, what, how it ended, keyed digests and counts; never content.",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "at": {"type": "string", "format": "date-time"},
        "tenant": {"type": "string"},
        "actor": {"type": "string", "description": "Id of the API key."},
        "action": {"type": "string", "examples": ["middleware.invoke"]},
        "outcome": {"enum": ["ok", "refused", "failed", "sent"]},
        "middleware": {"type": ["string", "null"]},
        "request_id": {"type": ["string", "null"]},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}
_PAGE: Final = {
    "type": "object",
    "required": ["items", "next"],
    "properties": {
        "items": {"type": "array", "items": _EVENT, "description": "Newest first."},
        "next": {"type": ["string", "null"], "description": "The cursor of the next page; null: no more."},
    },
}

router = new_router("/audit", "audit")


async def asked(
    since: Annotated[Moment | None, Query(description="Not before this time (with zone).")] = None,
    until: Annotated[Moment | None, Query(description="Before this time (with zone).")] = None,
    actor: Annotated[Word | None, Query(description="Id of an API key.")] = None,
    middleware: Annotated[Word | None, Query(description="Name of a middleware.")] = None,
    action: Annotated[Word | None, Query(description="Such as middleware.invoke.")] = None,
    outcome: Annotated[
        Literal["ok", "refused", "failed", "sent"] | None, Query(description="How it ended.")
    ] = None,
    scope: Annotated[Word | None, Query(description="A vault scope, by name.")] = None,
    request_id: Annotated[Word | None, Query(description="The id that the answer carried.")] = None,
) -> AuditQuery:
    """Collect the filters that the query string names."""
    return AuditQuery(
        since=since,
        until=until,
        actor=actor,
        middleware=middleware,
        action=action,
        outcome=outcome,
        scope=scope,
        request_id=request_id,
    )


AskedDep = Annotated[AuditQuery, Depends(asked)]


@router.get(
    "/events",
    summary="Read a page of the record",
    response_class=Response,
    responses={200: {"description": "Events.", "content": {"application/json": {"schema": _PAGE}}}},
)
async def list_events(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    query: AskedDep,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Events per page.")] = 100,
    cursor: Annotated[Word | None, Query(description="`next` of the page before.")] = None,
) -> Response:
    """Newest first; needs the role auditor, and reading is itself recorded."""
    page = await services.audit.query(caller, query, info, limit=limit, cursor=cursor)
    body = dumps({"items": [described(event) for event in page.items], "next": page.next})
    return Response(body, media_type="application/json")


@router.get(
    "/export",
    summary="Export the record as a file",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "All events that match, newest first.",
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            },
        }
    },
)
async def export_events(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    query: AskedDep,
    form: Annotated[Literal["jsonl", "csv"], Query(alias="format", description="Of the file.")] = "jsonl",
) -> StreamingResponse:
    """Stream JSON lines or CSV; needs the role auditor, and the export is on record before its first line."""
    pieces = await services.audit.export(caller, query, form, info)
    headers = {"content-disposition": f'attachment; filename="audit.{form}"'}
    return StreamingResponse(pieces, media_type=_MEDIA_TYPES[form], headers=headers)
