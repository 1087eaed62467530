"""The log over the audit record, over REST: its newest checkpoint, its keys, and events with their proofs."""

from dataclasses import asdict
from typing import Annotated, Any, Final, get_args
from uuid import UUID

from fastapi import Query
from starlette.responses import JSONResponse, Response, StreamingResponse

from app.api.auth import CallerDep, InfoDep, ServicesDep, new_router
from app.api.fields import Moment
from app.core.access import Role
from app.edge.limits import needs
from app.services.audit.export import moment_text
from app.services.audit.findings import FindingKind
from app.services.audit.log_access import AuditLogService

MOST_EVENTS: Final = 100
MOST_FINDINGS: Final = 1000
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
_VERIFIED: Final[dict[str, Any]] = {
    "schema": {
        "type": "object",
        "required": [
            *("holds", "events", "unnumbered", "pruned", "waiting", "unsigned", "checkpoints"),
            *("found", "findings"),
        ],
        "properties": {
            "holds": {"type": "boolean", "description": "Whether nothing was found wrong."},
            "events": {"type": "integer", "description": "How many events were compared."},
            "unnumbered": {"type": "integer", "description": "Events from before events were numbered."},
            "pruned": {
                "type": "integer",
                "description": "Events that are gone because their retention was over.",
            },
            "waiting": {"type": "integer", "description": "Events that are stored and not sealed yet."},
            "unsigned": {"type": "integer", "description": "Heads that no checkpoint has yet."},
            "checkpoints": {"type": "integer", "description": "How many checkpoints were compared."},
            "found": {"type": "integer", "description": "How many things do not hold."},
            "findings": {
                "type": "array",
                "description": f"What does not hold, at most the first {MOST_FINDINGS}.",
                "items": {
                    "type": "object",
                    "required": ["kind", "tenant", "place", "meaning"],
                    "properties": {
                        "kind": {"enum": [*get_args(FindingKind)]},
                        "tenant": {
                            "type": ["string", "null"],
                            "description": "In whose log; null: in the log of all tenants' heads.",
                        },
                        "place": {"type": "string", "description": "Which event, tile, head or checkpoint."},
                        "meaning": {"type": "string"},
                    },
                },
            },
        },
    },
    "example": {
        "holds": True,
        "events": 1204,
        "unnumbered": 0,
        "pruned": 0,
        "waiting": 2,
        "unsigned": 0,
        "checkpoints": 96,
        "found": 0,
        "findings": [],
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


@router.post(
    "/verify",
    summary="Verify the audit log",
    response_class=Response,
    responses={200: {"description": "What was found.", "content": {"application/json": _VERIFIED}}},
)
@needs(Role.AUDITOR, action="audit.verify")
async def verify_audit_log(caller: CallerDep, services: ServicesDep, info: InfoDep) -> Response:
    """Recompute the log of the caller's tenant and name what does not hold. Needs the role auditor; on record.

    A process verifies one log at a time (503 meanwhile). A record that is too large for it is refused with 422: it is
    verified on the host by `sluice audit verify`, which takes checkpoints that were kept elsewhere, too.
    """
    result = await AuditLogService(services.audit).verify_now(caller, info)
    counted = ("events", "unnumbered", "pruned", "waiting", "unsigned", "checkpoints")
    return JSONResponse(
        {
            "holds": result.holds,
            **{name: getattr(result, name) for name in counted},
            "found": len(result.findings),
            "findings": [asdict(finding) for finding in result.findings[:MOST_FINDINGS]],
        }
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
