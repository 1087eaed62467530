"""The log over the audit record, over REST: its newest checkpoint, its keys, and events with their proofs."""

from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Query
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Moment
from app.services.audit.export import moment_text
from app.services.audit.log_access import AuditLogService

MOST_EVENTS: Final = 100
_NOTE: Final = "text/plain; charset=utf-8"
_NAME: Final = "sluice/0f1e2d3c4b5a6978"
_ROOT: Final = "XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg="
_SIGNED: Final = (
    "dPfKPOjsraF7RHARaWdiVSp6lLROq7g4R8Fm4t0xD+8sxX2Znz9sxogPyw7KUTBfZIMCvZJ/6uD43CxlrtmIcJV0kAc="
)
_CHECKPOINT: Final = f"{_NAME}\n8\n{_ROOT}\n\n\N{EM DASH} {_NAME} {_SIGNED}\n"
_KEYS: Final[dict[str, Any]] = {
    "schema": {
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "description": "Oldest first; the last one signs now.",
                "items": {
                    "type": "object",
                    "required": ["key", "created"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "description": "Verifier key, as C2SP's signed-note writes it.",
                        },
                        "created": {"type": "string", "format": "date-time"},
                    },
                },
            }
        },
    },
    "example": {
        "items": [
            {
                "key": f"{_NAME}+74f7ca3c+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4",
                "created": "2026-11-23T08:00:00Z",
            }
        ]
    },
}

router = new_router("/audit", "audit")


@router.get(
    "/checkpoint",
    summary="Read the newest checkpoint of the audit log",
    response_class=Response,
    responses={
        200: {
            "description": "A signed note; keep it where nobody who has the database can change it.",
            "content": {"text/plain": {"schema": {"type": "string"}, "example": _CHECKPOINT}},
        }
    },
)
async def get_audit_checkpoint(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    old: Annotated[
        int | None,
        Query(ge=1, description="Size of an earlier checkpoint: a proof that the log only grew comes first."),
    ] = None,
) -> Response:
    """Return the newest signed head of the log of all tenants' heads. Needs the role auditor; 404 before the first.

    With `old` the answer has the form of C2SP's tlog-witness; deploy/verify_growth.py verifies it.
    """
    log = AuditLogService(services.audit)
    note = (await log.checkpoint(caller, info)).note if old is None else await log.growth(caller, old, info)
    return Response(note, media_type=_NOTE, headers={"cache-control": "no-store"})


@router.get(
    "/keys",
    summary="List the public keys of the audit log",
    response_class=Response,
    responses={200: {"description": "Keys that ever signed.", "content": {"application/json": _KEYS}}},
)
async def list_audit_keys(caller: CallerDep, services: ServicesDep, info: InfoDep) -> Response:
    """Return the keys that ever signed a checkpoint. Needs the role auditor."""
    keys = await AuditLogService(services.audit).keys(caller, info)
    return JSONResponse(
        {"items": [{"key": str(key), "created": moment_text(created)} for key, created in keys]}
    )


@router.get(
    "/proofs",
    summary="Read events with proofs that they are in the log",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A head, then events in the order of the log; deploy/verify_audit.py verifies them.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    },
)
async def list_audit_proofs(
    caller: CallerDep,
    services: ServicesDep,
    info: InfoDep,
    event: Annotated[
        list[UUID] | None, Query(max_length=MOST_EVENTS, description="Id of an event; may be repeated.")
    ] = None,
    since: Annotated[
        Moment | None, Query(description="Only events at or after this time, with zone.")
    ] = None,
    until: Annotated[Moment | None, Query(description="Only events before this time, with zone.")] = None,
) -> StreamingResponse:
    """Stream JSON Lines: the events named, or all of the caller's tenant. Needs the role auditor; on record."""
    log = AuditLogService(services.audit)
    lines = await log.prove(caller, caller.tenant, event, info, since=since, until=until)
    headers = {"content-disposition": 'attachment; filename="proofs.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)
