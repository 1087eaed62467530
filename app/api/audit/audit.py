"""The audit log over REST: a page of events, or all of them as a file."""

from datetime import date
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from fastapi import Depends, Path, Query
from pydantic import ConfigDict, Field
from starlette.responses import Response, StreamingResponse

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Body, EndUser, Moment, Word
from app.core.access import Role
from app.core.audit import AUDIT_FILTERS
from app.core.strictjson import dumps
from app.edge.limits import needs
from app.services.audit.audit import MAX_PAGE, AuditQuery
from app.services.audit.counts import AuditCounts, Dimension
from app.services.audit.export import described, moment_text
from app.services.audit.keeping import KeptContent

_MEDIA_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One action: who, what, its outcome, keyed digests and counts; never content.",
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
        "on_behalf_of": {
            "type": ["string", "null"],
            "description": "Keyed digest of the end user whom X-Sluice-User or a token named.",
        },
        "content_kept": {"type": "boolean", "description": "Whether it keeps content, sealed."},
        "end_user_kept": {
            "type": "boolean",
            "description": "Whether it keeps the end user's name, sealed.",
        },
        "key_name": {"type": ["string", "null"], "description": "What people call the key."},
        "address_class": {"enum": ["loopback", "link-local", "private", "public", None]},
        "decision": {
            "enum": ["allow", "flag", "change", "block", None],
            "description": "What became of content; null where the event is about none.",
        },
        "versions": {
            "type": ["object", "null"],
            "description": "Version of Sluice, and in `engines` of the engine of each middleware that has one.",
        },
    },
}
_PAGE: Final = {
    "type": "object",
    "required": ["items", "next", "since"],
    "properties": {
        "items": {"type": "array", "items": _EVENT, "description": "Newest first."},
        "next": {
            "type": ["string", "null"],
            "description": "Cursor of the next page; null: this was the last page.",
        },
        "since": {
            "type": "string",
            "format": "date-time",
            "description": "Where the time begins that was searched: `since`, or 30 days before `until` or now.",
        },
    },
}

_KEPT: Final = {
    "schema": {
        "type": "object",
        "required": ["id", "content"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "The event."},
            "content": {"type": "array", "description": "The context, as it came in.", "items": {}},
        },
    },
    "example": {
        "id": "0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11",
        "content": [{"type": "text", "text": "Call Jane Smith."}],
    },
}

_KEPT_END_USER: Final = {
    "schema": {
        "type": "object",
        "required": ["id", "end_user"],
        "properties": {
            "id": {"type": "string", "format": "uuid", "description": "The event."},
            "end_user": {"type": "string", "description": "For whom the actor asked."},
        },
    },
    "example": {"id": "0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11", "end_user": "jane@example.org"},
}

_COUNTS: Final = {
    "schema": {
        "type": "object",
        "required": ["items", "counted", "sealed"],
        "properties": {
            "items": {
                "type": "array",
                "description": "In the order of what was counted by.",
                "items": {
                    "type": "object",
                    "required": ["events"],
                    "properties": {
                        **{name: {"type": "string"} for name in ("day", "action", "outcome", "actor")},
                        "events": {"type": "integer", "description": "How many events have these in common."},
                    },
                },
            },
            "counted": {"type": "integer", "description": "The counts are of that many events of the log."},
            "sealed": {"type": "integer", "description": "How many events the log has."},
        },
    },
    "example": {
        "items": [{"day": "2026-11-23", "outcome": "ok", "events": 1204}],
        "counted": 1204,
        "sealed": 1204,
    },
}

router = new_router("/audit", "audit")


class ReasonBody(Body):
    """Why somebody opens what was kept."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "Complaint 2026-114"}]})

    reason: str = Field(max_length=1000, description="3 to 500 printable characters. It is on record.")


_KINDS: Final = {
    "time": Moment | None,
    "word": Word | None,
    "outcome": Literal["ok", "refused", "failed", "sent"] | None,
    "user": EndUser | None,
}


async def audit_filters(**values: Any) -> AuditQuery:
    """Return the filters of the query string."""
    return AuditQuery(**values)


# FastAPI reads the parameters from the signature.
vars(audit_filters)["__signature__"] = Signature(
    [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_KINDS[each.kind], Query(description=each.help)],
        )
        for each in AUDIT_FILTERS
    ]
)
FiltersDep = Annotated[AuditQuery, Depends(audit_filters)]
EventPath = Annotated[
    UUID, Path(description="Id of an event.", examples=["0193b2f0-7c1d-7a53-9f0e-3f6a2f1b8c11"])
]


@router.get(
    "/events",
    summary="Read a page of the audit log",
    response_class=Response,
    responses={200: {"description": "Events.", "content": {"application/json": {"schema": _PAGE}}}},
)
async def list_audit_events(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    query: FiltersDep,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Events per page.")] = 100,
    cursor: Annotated[Word | None, Query(description="`next` of the previous page.")] = None,
) -> Response:
    """Return events, newest first. Needs the role auditor; reading is recorded too.

    A query for which too many events would have to be read is refused with 422, and says how to narrow it.
    """
    page = await services.audit.query(caller, query, info, limit=limit, cursor=cursor)
    items = [described(event) for event in page.items]
    body = dumps({"items": items, "next": page.next, "since": moment_text(page.since)})
    return Response(body, media_type="application/json")


@router.get(
    "/export",
    summary="Export the audit log as a file",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "All matching events, newest first.",
            "content": {
                "application/x-ndjson": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            },
        }
    },
)
async def export_audit_events(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    query: FiltersDep,
    form: Annotated[
        Literal["jsonl", "csv"], Query(alias="format", description="Output format of the file.")
    ] = "jsonl",
) -> StreamingResponse:
    """Stream JSON Lines or CSV. Needs the role auditor; the export is recorded before its first line is sent."""
    pieces = await services.audit.export(caller, query, form, info)
    headers = {"content-disposition": f'attachment; filename="audit.{form}"'}
    return StreamingResponse(pieces, media_type=_MEDIA_TYPES[form], headers=headers)


@router.get(
    "/counts",
    summary="Count the events of the audit log",
    response_class=Response,
    responses={200: {"description": "Sums.", "content": {"application/json": _COUNTS}}},
)
async def count_audit_events(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    by: Annotated[
        list[Dimension] | None,
        Query(max_length=4, description="By what; may be repeated. Without it: by day."),
    ] = None,
    since: Annotated[date | None, Query(description="First day (UTC).")] = None,
    until: Annotated[date | None, Query(description="The day behind the last (UTC).")] = None,
) -> Response:
    """Return how many sealed events there are by day, action, outcome or actor. Needs the role auditor; on record.

    No events are read for it, so it is quick however many there are.
    """
    dimensions: list[Dimension] = list(dict.fromkeys(by or ["day"]))
    page = await AuditCounts(services.audit).counts(caller, dimensions, info, since=since, until=until)
    items = [{**dict(zip(dimensions, row.values, strict=True)), "events": row.events} for row in page.items]
    body = dumps({"items": items, "counted": page.counted, "sealed": page.sealed})
    return Response(body, media_type="application/json")


@router.get(
    "/events/{event}",
    summary="Read one event of the audit log",
    response_class=Response,
    responses={200: {"description": "The event.", "content": {"application/json": {"schema": _EVENT}}}},
)
async def get_audit_event(
    event: EventPath, caller: CallerDep, services: ServicesDep, info: InfoDep
) -> Response:
    """Return an event of the caller's tenant. Needs the role auditor; reading it is on record."""
    stored = await services.audit.get(caller, event, info)
    return Response(dumps(described(stored)), media_type="application/json")


@router.post(
    "/events/{event}/content",
    summary="Open the content that an event keeps",
    response_class=Response,
    responses={200: {"description": "The kept content.", "content": {"application/json": _KEPT}}},
)
@needs(Role.RESTORER, action="audit.content")
async def open_kept_content(
    event: EventPath,
    body: ReasonBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
) -> Response:
    """Return what `audit_logging` kept where the policy has `audit_content`.

    Needs the roles auditor and restorer together, and a reason; each opening is on record with it.
    """
    content = await KeptContent(services.audit).open(caller, event, body.reason, info)
    return Response(
        b'{"id":"%b","content":%b}' % (str(event).encode(), content), media_type="application/json"
    )


@router.post(
    "/events/{event}/end-user",
    summary="Open the end user's name that an event keeps",
    response_class=Response,
    responses={200: {"description": "The name.", "content": {"application/json": _KEPT_END_USER}}},
)
@needs(Role.RESTORER, action="audit.end_user")
async def open_kept_end_user(
    event: EventPath,
    body: ReasonBody,
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
) -> Response:
    """Return for whom the actor asked, where the policy had `audit_end_users`.

    Needs the roles auditor and restorer together, and a reason; each opening is on record with it.
    """
    name = await KeptContent(services.audit).end_user(caller, event, body.reason, info)
    return Response(dumps({"id": str(event), "end_user": name}), media_type="application/json")
