"""Sign in with an identity provider: leave for it, come back, and end when it says so."""

from collections.abc import Mapping
from http import HTTPStatus
from math import inf
from typing import Annotated, Final

from fastapi import Path, Query, Request
from starlette.responses import JSONResponse, Response

from app.console.rendering import page
from app.console.sign_in import keep_session, sign_in_page
from app.console.visits import (
    FORM,
    HOME,
    SIGN_IN,
    console_services,
    cookie_of,
    new_pages,
    own_page,
    read_form,
    see,
)
from app.core.errors import (
    ForbiddenError,
    NotFoundError,
    OverloadedError,
    ServiceError,
    UnauthenticatedError,
)
from app.edge.facts import facts_of
from app.edge.limits import takes
from app.edge.problems import status_of
from app.services.access.identity.logouts import LogoutService
from app.services.access.identity.sign_ins import SIGN_IN_S, IdentitySignIns, slot_of

LOGOUT: Final = "/console/logout"
"""Where issuers say who has signed out; no browser asks for it."""
_COOKIE: Final = "sluice_identity_"
"""Before the first character of the state: tabs that sign in at once, as all do after a pause, keep out of each
other's way, and a browser holds at most 64.
"""
_PARAMETERS: Final = ("code", "state", "iss", "error")
_REFUSALS: Final = (UnauthenticatedError, ForbiddenError, OverloadedError)

router = new_pages()


@router.get("/console/sign-in/with/{issuer}")
async def leave(
    request: Request,
    issuer: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")],
    following: Annotated[str | None, Query(alias="next", max_length=2000)] = None,
    quiet: Annotated[str | None, Query(pattern="^1$")] = None,
) -> Response:
    """Lead the browser to an issuer; ``quiet``: it is to ask nobody."""
    wanted = own_page(following)
    try:
        departure = await (await _people(request)).begin(issuer, wanted, quiet=quiet is not None)
    except OverloadedError as error:
        facts_of(request.scope).fail(error)
        return sign_in_page(request, wanted, refused=error)
    answer = see(departure.address)
    # Lax: the issuer leads the browser back, which is another site.
    answer.set_cookie(
        _COOKIE + departure.slot,
        departure.cookie,
        max_age=SIGN_IN_S,
        path=SIGN_IN,
        secure=departure.secure,
        httponly=True,
        samesite="lax",
    )
    return answer


@router.get("/console/sign-in/return")
async def come_back(request: Request) -> Response:
    """Begin the session of whom an issuer names, and lead on."""
    facts = facts_of(request.scope)
    brought = _answer_of(request)
    slot = slot_of(brought.get("state", ""))
    cookie = cookie_of(request.scope["headers"], _COOKIE + slot)
    try:
        arrival = await (await _people(request)).finish(cookie, brought, facts.info(inf))
    except _REFUSALS as error:
        facts.fail(error)
        answer = sign_in_page(request, HOME, refused=error)
    else:
        facts.admit(arrival.caller)
        # A page, not a redirect: a browser that comes from another site would not send the session along.
        answer = page(request, "signed_in.html", {"following": arrival.following, "version": ""})
        keep_session(answer, arrival.token, secure=arrival.secure)
    answer.delete_cookie(_COOKIE + slot, path=SIGN_IN, httponly=True, samesite="lax")
    return answer


@router.post(LOGOUT)
@takes(FORM)
async def log_out(request: Request) -> Response:
    """Take the logout token of an issuer (OpenID Connect Back-Channel Logout 1.0, section 2.8)."""
    people, facts = await _people(request), facts_of(request.scope)
    try:
        form = await read_form(request)
        await LogoutService(people.callers, people.authenticator).end(
            form.get("logout_token", ""), facts.info(inf)
        )
    except ServiceError as error:
        facts.fail(error)
        fault = {"error": "invalid_request", "error_description": error.message}
        status = (
            HTTPStatus.BAD_REQUEST
            if status_of(error) < HTTPStatus.INTERNAL_SERVER_ERROR
            else status_of(error)
        )
        return JSONResponse(fault, status)
    return Response(status_code=HTTPStatus.OK.value)


async def _people(request: Request) -> IdentitySignIns:
    people = console_services(request).sessions.people
    if people is not None:
        await people.ready()
    if people is None or not people.offered():
        raise NotFoundError("There is no such page. The navigation leads to those that there are.")
    return people


def _answer_of(request: Request) -> Mapping[str, str]:
    """Return what an issuer answers through the browser; a parameter that comes twice says nothing."""
    query = request.query_params
    named = {name: query.getlist(name) for name in _PARAMETERS}
    return {name: values[0] for name, values in named.items() if len(values) == 1}
