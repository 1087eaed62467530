"""Sign in with an API key, and sign out."""

from contextlib import suppress
from http import HTTPStatus
from math import inf
from typing import Annotated, Final

from fastapi import Query, Request
from starlette.responses import Response

from app.console.rendering import page
from app.console.visits import (
    SESSION_COOKIE,
    SIGN_IN,
    FormDep,
    VisitDep,
    check_form,
    console_services,
    cookie_of,
    is_https,
    new_pages,
    new_token,
    own_page,
    read_form,
    see,
)
from app.core.errors import ServiceError, UnauthenticatedError
from app.edge.facts import facts_of
from app.edge.limits import RouteLimits, takes
from app.edge.problems import status_of
from app.services.access.console_sessions import LONGEST, form_token

_FORM_COOKIE: Final = "sluice_sign_in"
_MOST_BYTES: Final = 4096
_FORM_S: Final = 3600
_FORM_TYPE: Final = frozenset({"application/x-www-form-urlencoded"})
_INVALID_LINK: Final = UnauthenticatedError(
    "This link was used already, or is older than five minutes. `sluice console` makes another one."
)
_INVALID_KEY: Final = UnauthenticatedError(
    "This key is not valid here. It may be mistyped, revoked, expired, or bound to another network."
)

router = new_pages()


@router.get("/console/sign-in")
async def show_sign_in(
    request: Request, following: Annotated[str | None, Query(alias="next", max_length=2000)] = None
) -> Response:
    """Show the form for a key, and the issuers with which people sign in."""
    people = console_services(request).sessions.people
    with suppress(ServiceError):  # while the database is away, those that were read last
        if people is not None:
            await people.ready()
    return sign_in_page(request, own_page(following))


@router.post("/console/sign-in")
@takes(RouteLimits(streamed=_FORM_TYPE, whole=True, most=_MOST_BYTES))
async def sign_in(request: Request) -> Response:
    """Begin a session with the key of the form, and lead on."""
    services, facts = console_services(request), facts_of(request.scope)
    form = await read_form(request)
    following = own_page(form.get("next"))
    cookie = cookie_of(request.scope["headers"], _FORM_COOKIE)
    check_form(form, form_token(cookie) if cookie else new_token())
    link = form.get("link")
    try:
        if link:
            caller, token = await services.sessions.redeem(link, facts.info(inf))
        else:
            key = form.get("key", "").strip() or None
            caller, token = await services.sessions.start(key, facts.info(inf))
    except UnauthenticatedError as error:
        facts.fail(error)
        return sign_in_page(request, following, refused=_INVALID_LINK if link else _INVALID_KEY)
    facts.admit(caller)
    answer = see(following)
    keep_session(answer, token, secure=is_https(request))
    answer.delete_cookie(_FORM_COOKIE, path=SIGN_IN, httponly=True, samesite="strict")
    return answer


@router.post("/console/sign-out")
@takes(RouteLimits(streamed=_FORM_TYPE, whole=True, most=_MOST_BYTES))
async def sign_out(visit: VisitDep, form: FormDep) -> Response:  # noqa: ARG001 - its token is checked
    """End the session, here and in the database."""
    await visit.services.sessions.end(visit.token, visit.caller, visit.info)
    answer = see(SIGN_IN)
    answer.delete_cookie(SESSION_COOKIE, path="/console", httponly=True, samesite="strict")
    return answer


def keep_session(answer: Response, token: str, *, secure: bool) -> None:
    """Let the browser keep the token of a session, which other sites never make it send."""
    answer.set_cookie(
        SESSION_COOKIE,
        token,
        max_age=int(LONGEST.total_seconds()),
        path="/console",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def sign_in_page(request: Request, following: str, *, refused: ServiceError | None = None) -> Response:
    """Return the page to sign in with; ``refused`` is why the last attempt failed."""
    cookie = cookie_of(request.scope["headers"], _FORM_COOKIE) or new_token()
    services = console_services(request)
    people = services.sessions.people
    answer = page(
        request,
        "sign_in.html",
        {
            "form_token": form_token(cookie),
            "following": following,
            "refused": refused.message if refused is not None else None,
            "needs_key": services.sessions.needs_key,
            "issuers": people.offered() if people is not None else [],
            "version": services.version,
        },
        status=status_of(refused) if refused is not None else HTTPStatus.OK,
    )
    answer.set_cookie(
        _FORM_COOKIE,
        cookie,
        max_age=_FORM_S,
        path=SIGN_IN,
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )
    return answer
