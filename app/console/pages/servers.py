"""The MCP servers of a tenant: what each offers, what of it is new or changed, and what an operator does about it."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Path, Query
from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.catalog.primitives import PrimitiveKind
from app.core.catalog.servers import SERVER_NAME
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs, takes
from app.services.servers.approval import WantedDefinition
from app.services.servers.pins import UNAPPROVABLE, PinName, PinState, Review
from app.services.servers.sealing import SubmittedServer, shown
from app.services.servers.server_records import ServerRecord, StoredPin

PAGE: Final = 50
_PICK: Final = "pick-"
_TRUST: Final = frozenset({"pinned", "trusted"})

ServerPath = Annotated[str, Path(pattern=rf"^{SERVER_NAME.pattern}$")]

router = new_pages()


@router.get("/console/servers")
async def show_servers(
    visit: VisitDep, after: Annotated[str | None, Query(max_length=64)] = None
) -> Response:
    """Show the servers by name, each with its state and what waits there."""
    visit.caller.require(Role.OPERATOR)
    listed = await visit.services.servers.list(visit.caller, visit.info, after=after, limit=PAGE + 1)
    rows = [described(visit, record) for record in listed[:PAGE]]
    following = listed[PAGE - 1].stored.name if len(listed) > PAGE else None
    return visit.page("servers.html", {"servers": rows, "next": following, "after": after})


@router.get("/console/servers/{name}")
async def show_server(visit: VisitDep, name: ServerPath) -> Response:
    """Show one server with its definitions: what is served, what is not, and what changed."""
    detail = await visit.services.servers.get(visit.caller, name, visit.info)
    return _page(visit, detail.record, detail.reviews, detail.pins)


@router.post("/console/servers/{name}/test")
@takes(FORM)
@needs(Role.OPERATOR, action="servers.test")
async def test_server(visit: VisitDep, name: ServerPath, form: FormDep) -> Response:  # noqa: ARG001 - its token is checked
    """Connect once, and show what the server offers now."""
    trial = await visit.services.servers.test(visit.caller, name, visit.info)
    detail = await visit.services.servers.get(visit.caller, name, visit.info)
    if trial.inspection.ready:
        return _page(visit, detail.record, trial.reviews, trial.pins, tested=True)
    return _page(
        visit, detail.record, None, {}, fault=trial.inspection.status.error or "It could not be listed."
    )


@router.post("/console/servers/{name}/approve")
@takes(FORM)
@needs(Role.OPERATOR, action="servers.approve")
async def approve_server(visit: VisitDep, name: ServerPath, form: FormDep) -> Response:
    """Approve the definitions that were picked, each in the form that was shown."""
    wanted = [_wanted(value) for field, value in form.items() if field.startswith(_PICK)]
    if not wanted:
        raise InvalidArgumentsError("Pick at least one definition to approve.")
    await visit.services.servers.approve(visit.caller, name, wanted, visit.info)
    return see(f"/console/servers/{name}")


@router.post("/console/servers/{name}/pause")
@takes(FORM)
@needs(Role.OPERATOR, action="servers.pause")
async def pause_server(visit: VisitDep, name: ServerPath, form: FormDep) -> Response:  # noqa: ARG001 - as above
    """Serve nothing of a server until it is resumed."""
    await visit.services.servers.pause(visit.caller, name, visit.info)
    return see(f"/console/servers/{name}")


@router.post("/console/servers/{name}/resume")
@takes(FORM)
@needs(Role.OPERATOR, action="servers.resume")
async def resume_server(visit: VisitDep, name: ServerPath, form: FormDep) -> Response:  # noqa: ARG001 - as above
    """Serve a paused server again."""
    await visit.services.servers.resume(visit.caller, name, visit.info)
    return see(f"/console/servers/{name}")


@router.post("/console/servers/{name}/trust")
@takes(FORM)
@needs(Role.OPERATOR, action="servers.put")
async def trust_server(visit: VisitDep, name: ServerPath, form: FormDep) -> Response:
    """Serve what a server changes at once, or only after an approval; a wider trust must be confirmed."""
    definitions = form.get("definitions", "")
    if definitions not in _TRUST:
        raise InvalidArgumentsError("The form has a choice that there is not.")
    if definitions == "trusted" and form.get("sure") != "on":
        raise InvalidArgumentsError("Tick that nobody has to approve what this server changes.")
    detail = await visit.services.servers.get(visit.caller, name, visit.info)
    entry = detail.record.entry
    submitted = SubmittedServer(
        {**shown(entry.settings), "definitions": definitions},
        tool_filter=entry.tool_filter,
        aliases=entry.aliases,
        disclosure=entry.disclosure,
    )
    await visit.services.servers.put(visit.caller, name, submitted, visit.info)
    return see(f"/console/servers/{name}")


def described(visit: Visit, record: ServerRecord) -> Mapping[str, Any]:
    """Return a server as lists show it, with the connection of the process that answers."""
    stored, upstreams = record.stored, visit.services.servers.upstreams
    return {
        "name": stored.name,
        "state": stored.state,
        "type": record.entry.settings.type,
        "text": record.entry.settings.description,
        "trusted": record.entry.settings.definitions == "trusted",
        "status": upstreams.status(stored.tenant, stored.name),
        "fault": upstreams.fault(stored.tenant, stored.name),
        "waiting": sum(review.quarantined for review in upstreams.reviews(stored.tenant, stored.name)),
        "approved": stored.pinned,
        "editable": stored.origin != "file",
    }


def _page(
    visit: Visit,
    record: ServerRecord,
    reviews: Sequence[Review] | None,
    pins: Mapping[PinName, StoredPin],
    *,
    tested: bool = False,
    fault: str | None = None,
) -> Response:
    rows = [_definition(review, pins) for review in reviews or ()]
    rows.sort(key=lambda row: row["is_approved"])  # what waits comes first; the rest keeps the server's order
    values = {
        "server": described(visit, record),
        "settings": json.dumps(shown(record.entry.settings), indent=2, ensure_ascii=False),
        "definitions": rows if reviews is not None else None,
        "waiting": sum(row["can_be_approved"] for row in rows),
        "tested": tested,
        "fault": fault,
        "pick": _PICK,
    }
    status = HTTPStatus.OK if fault is None else HTTPStatus.BAD_GATEWAY
    return visit.page("server.html", values, status=status)


def _definition(review: Review, pins: Mapping[PinName, StoredPin]) -> dict[str, Any]:
    pin = pins.get(PinName(review.kind, review.name))
    is_approved = review.state is PinState.APPROVED
    return {
        "kind": review.kind.value,
        "name": review.name,
        "state": review.state.value,
        "is_approved": is_approved,
        "can_be_approved": review.quarantined and review.state not in UNAPPROVABLE,
        "now": _json(review.offer.definition) if review.offer is not None else None,
        "before": _json(pin.definition) if pin is not None and not is_approved else None,
        "picked": json.dumps([review.kind.value, review.name, review.digest]),
    }


def _json(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, indent=2, ensure_ascii=False, sort_keys=True)


def _wanted(value: str) -> WantedDefinition:
    """Return a definition as the form has it, in the form that was shown."""
    try:
        kind, name, digest = json.loads(value)
        return WantedDefinition(PrimitiveKind(kind), str(name), str(digest))
    except (ValueError, TypeError):
        raise InvalidArgumentsError("The form names no definition.") from None
