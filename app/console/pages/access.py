"""The keys of a tenant: who may do what, what waits for a second person, and a new key's secret, shown once."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import Path, Query
from starlette.responses import Response

from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.errors import InvalidArgumentsError
from app.edge.limits import needs, takes
from app.services.access.access import NewKey
from app.services.access.key_usage import LOOKED_BACK_DAYS, KeyUsage
from app.services.vault.ring_state import ring_state

PAGE: Final = 50
_ROLE: Final = "role-"
_LIVES: Final = {
    "": "never",
    "1": "after a day",
    "30": "after 30 days",
    "90": "after 90 days",
    "365": "after a year",
}
_ROLES: Final = {
    Role.INVOKER: "call middlewares, tools and models",
    Role.RESTORER: "get originals back",
    Role.AUDITOR: "read the record",
    Role.ERASER: "find and erase a person's values",
    Role.OPERATOR: "policies, servers, providers",
    Role.KEY_CUSTODIAN: "make, approve and revoke keys",
    Role.DELEGATE: "say for which end user a call is",
    Role.PROVISIONER: "mirror people and groups (SCIM)",
}

KeyPath = Annotated[str, Path(pattern=r"^[0-9a-f]{8}$")]

router = new_pages()


@router.get("/console/access")
async def show_keys(visit: VisitDep, after: Annotated[str | None, Query(max_length=8)] = None) -> Response:
    """Show the keys by id, and the form for a new one."""
    return await _page(visit, after)


@router.post("/console/access")
@takes(FORM)
@needs(Role.KEY_CUSTODIAN, action="key.create")
async def create_key(visit: VisitDep, form: FormDep) -> Response:
    """Make a key and show it, this once."""
    days = form.get("days", "")
    if days not in _LIVES:
        raise InvalidArgumentsError("The form has a choice that there is not.")
    made = await visit.services.access.create_key(
        visit.caller,
        [field.removeprefix(_ROLE) for field in form if field.startswith(_ROLE)],
        visit.info,
        name=form.get("name", "").strip() or None,
        expires=datetime.now(UTC) + timedelta(days=int(days)) if days else None,
        cidrs=form.get("cidrs", "").replace(",", " ").split(),
    )
    return await _page(visit, None, made)


@router.post("/console/access/{key_id}/approve")
@takes(FORM)
@needs(Role.KEY_CUSTODIAN, action="key.approve")
async def approve_key(visit: VisitDep, key_id: KeyPath, form: FormDep) -> Response:  # noqa: ARG001 - its token is checked
    """Give a key the roles for which it waits."""
    await visit.services.access.approve_key(visit.caller, key_id, visit.info)
    return see("/console/access")


@router.post("/console/access/{key_id}/revoke")
@takes(FORM)
@needs(Role.KEY_CUSTODIAN, action="key.revoke")
async def revoke_key(visit: VisitDep, key_id: KeyPath, form: FormDep) -> Response:  # noqa: ARG001 - as above
    """End a key at once, and with it its sessions here."""
    await visit.services.access.revoke_key(visit.caller, key_id, visit.info)
    return see("/console/access")


async def _page(visit: Visit, after: str | None, made: NewKey | None = None) -> Response:
    access = visit.services.access
    listed = await access.list_keys(visit.caller, None, visit.info, after=after, limit=PAGE + 1)
    moment, shown = access.now(), listed[:PAGE]
    used = await KeyUsage(access).last_used(visit.caller, [info.id for info in shown], visit.info)
    reaches_all = access.authority.reaches_all(visit.caller)
    rows: list[dict[str, Any]] = [
        {
            "info": info,
            "state": info.state(moment),
            "roles": sorted(info.roles),
            "waits": sorted(info.pending_roles),
            "used": used.get(info.id),
        }
        for info in shown
    ]
    values = {
        "keys": rows,
        "next": listed[PAGE - 1].id if len(listed) > PAGE else None,
        "after": after,
        "made": made,
        "all_roles": _ROLES,
        "role_field": _ROLE,
        "lives": _LIVES,
        "looked_back": LOOKED_BACK_DAYS,
        "ring": await ring_state(visit.services.vault, access.authority, visit.caller, visit.info)
        if reaches_all
        else None,
    }
    return visit.page("access.html", values)
