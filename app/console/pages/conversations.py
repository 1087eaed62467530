"""Conversations: what became of a scope, its handles and its end, and an original for those who say why."""

from datetime import timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query
from starlette.responses import Response

from app.console.timelines import timeline
from app.console.visits import FORM, FormDep, Visit, VisitDep, new_pages, see
from app.core.access import Role
from app.core.content.handles import Handle
from app.core.errors import InvalidArgumentsError, NotFoundError
from app.edge.limits import needs, takes
from app.services.audit.audit import AuditQuery
from app.services.audit.pages import WINDOW
from app.services.vault.reveals import REVEAL, RevealService

HOME: Final = "/console/conversations"
SCOPE: Final = f"{HOME}/scope"
PAGE: Final = 50
_LISTERS: Final = (Role.OPERATOR, Role.AUDITOR, Role.ERASER)
_READERS: Final = (*_LISTERS, Role.RESTORER)
_LIVES: Final = {
    "1": "in an hour",
    "24": "in a day",
    "168": "in 7 days",
    "720": "in 30 days",
    "2160": "in 90 days",
    "8760": "in a year",
    "": "never",
}
_EARLIER: Final = timedelta(minutes=1)
"""An event is dated before the scope that it makes."""

Name = Annotated[str, Query(min_length=1, max_length=200)]
Cursor = Annotated[str | None, Query(max_length=200)]

router = new_pages()


@router.get(HOME)
async def show_scopes(
    visit: VisitDep, prefix: Annotated[str, Query(max_length=200)] = "", after: Cursor = None
) -> Response:
    """Show the live scopes by name to those who may list them, and to the others where to name one."""
    visit.caller.require(*_READERS)
    page = None
    if visit.may(*_LISTERS):
        page = await visit.services.vault.list_scopes(
            visit.caller, limit=PAGE, cursor=after, request=visit.info, prefix=prefix
        )
    following = urlencode({"prefix": prefix, "after": page.next}) if page and page.next else None
    return visit.page(
        "conversations.html",
        {
            "scopes": None if page is None else [(scope, scope_address(scope.id)) for scope in page.items],
            "prefix": prefix,
            "is_first": after is None,
            "next": following,
        },
    )


@router.get(SCOPE)
async def show_scope(visit: VisitDep, name: Name, handles: Cursor = None, events: Cursor = None) -> Response:
    """Show a scope: its facts and handles, and to auditors its timeline, even after it has ended."""
    visit.caller.require(*_READERS)
    vault, caller = visit.services.vault, visit.caller
    try:
        scope = await vault.get_scope(caller, name, visit.info)
    except NotFoundError:
        if not visit.may(Role.AUDITOR):
            raise
        scope = None
    entries = None
    if scope is not None:
        entries = await vault.entries(caller, name, limit=PAGE, cursor=handles, request=visit.info)
    record = None
    if visit.may(Role.AUDITOR):
        since = scope.created - _EARLIER if scope and scope.created < vault.now() - WINDOW else None
        query = AuditQuery(scope=name, since=since)
        record = await visit.services.audit.query(caller, query, visit.info, limit=PAGE, cursor=events)
        if scope is None and not record.items and events is None:
            raise NotFoundError(
                "There is no such scope, and the record of the last 30 days does not have it."
            )
    return visit.page(
        "conversation.html",
        {
            "name": name,
            "scope": scope,
            "entries": entries,
            "more_handles": _further(name, handles=entries.next if entries else None),
            "steps": None if record is None else timeline(record.items),
            "record": record,
            "is_first": handles is None and events is None,
            "older": _further(name, events=record.next if record else None),
            "in_audit": f"/console/audit?{urlencode({'scope': name})}",
            "lives": _LIVES,
        },
    )


@router.post(f"{HOME}/expiry")
@takes(FORM)
@needs(Role.OPERATOR, Role.ERASER, action="vault.set_expiry")
async def set_expiry(visit: VisitDep, form: FormDep) -> Response:
    """Let a scope end after a time from now, or never."""
    name, hours = form.get("name", ""), form.get("hours", "1")
    if hours not in _LIVES:
        raise InvalidArgumentsError("The form has a choice that there is not.")
    vault = visit.services.vault
    expires = vault.now() + timedelta(hours=int(hours)) if hours else None
    await vault.set_expiry(visit.caller, name, expires, visit.info)
    return see(scope_address(name))


@router.post(f"{HOME}/erase")
@takes(FORM)
@needs(Role.ERASER, action="vault.erase_scope")
async def erase_scope(visit: VisitDep, form: FormDep) -> Response:
    """Erase a scope, or one handle of it, and show the receipt."""
    if form.get("sure") != "on":
        raise InvalidArgumentsError("Tick that it is to be erased: nothing brings it back.")
    vault, name, handle = visit.services.vault, form.get("name", ""), form.get("handle")
    if handle is None:
        receipt = await vault.erase_scope(visit.caller, name, visit.info)
    else:
        receipt = await vault.erase_handle(visit.caller, name, _handle(handle), visit.info)
    return _outcome(visit, name, {"receipt": receipt, "handle": handle, "original": None})


@router.post(f"{HOME}/reveal")
@takes(FORM)
@needs(Role.RESTORER, action=REVEAL)
async def reveal_original(visit: VisitDep, form: FormDep) -> Response:
    """Show the original behind a handle, once; who looked and why is on record before."""
    name, handle = form.get("name", ""), _handle(form.get("handle", ""))
    reveals = RevealService(visit.services.vault)
    original = await reveals.reveal(visit.caller, name, handle, form.get("reason", ""), visit.info)
    return _outcome(visit, name, {"receipt": None, "handle": handle.name, "original": original})


def scope_address(name: str) -> str:
    """Return where a scope is shown."""
    return f"{SCOPE}?{urlencode({'name': name})}"


def _further(name: str, **cursors: str | None) -> str | None:
    """Return where a list of a scope's page goes on, None where it does not."""
    further = {member: cursor for member, cursor in cursors.items() if cursor}
    return f"{SCOPE}?{urlencode({'name': name, **further})}" if further else None


def _handle(text: str) -> Handle:
    handle = Handle.parse(text)
    if handle is None:
        raise NotFoundError("This scope has no such handle.")
    return handle


def _outcome(visit: Visit, name: str, values: dict[str, Any]) -> Response:
    return visit.page("conversation_outcome.html", {"name": name, "back": scope_address(name), **values})
