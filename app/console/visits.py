"""Who looks at a page, and what their form says: what every page needs before it calls a service."""

import hmac
import math
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any, Final, cast
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import cookie_parser
from starlette.responses import RedirectResponse, Response

from app.console.rendering import error_page, page
from app.console.services import ConsoleServices
from app.core.access import Caller, Role
from app.core.errors import (
    ForbiddenError,
    InvalidArgumentsError,
    InvalidRequestError,
    ServiceError,
    UnauthenticatedError,
)
from app.core.request import RequestInfo
from app.edge.facts import facts_of
from app.edge.limits import RouteLimits
from app.edge.problems import log_cause, status_of
from app.edge.surfaces import RawHeaders
from app.services.access.console_sessions import form_token

HOME: Final = "/console/"
SIGN_IN: Final = "/console/sign-in"
SESSION_COOKIE: Final = "sluice_console"
FORM: Final = RouteLimits(streamed=frozenset({"application/x-www-form-urlencoded"}), whole=True)
"""The limits of a route that takes a form; stands below the decorator that makes the route."""

_MOST_FIELDS: Final = 1000
_OWN_PAGE: Final = re.compile(r"(?![^?]*/(?:/|(?:\.|%2[Ee]){1,2}(?:[/?]|$)))/console/[A-Za-z0-9/?&=%._~:+-]*")
"""No address that leads out of the console again, by dots or by an empty step."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """An entry of the navigation; ``roles`` are those of which one is needed to see it."""

    path: str
    name: str
    roles: frozenset[Role]


NAVIGATION: Final = (
    PageLink("/console/", "Overview", frozenset(Role)),
    PageLink("/console/playground", "Playground", frozenset({Role.INVOKER})),
    PageLink(
        "/console/conversations",
        "Conversations",
        frozenset({Role.OPERATOR, Role.AUDITOR, Role.ERASER, Role.RESTORER}),
    ),
    PageLink("/console/audit", "Audit", frozenset({Role.AUDITOR})),
    PageLink("/console/subjects", "Data subjects", frozenset({Role.ERASER})),
    PageLink("/console/policies", "Policies", frozenset({Role.OPERATOR})),
    PageLink("/console/servers", "Servers", frozenset({Role.OPERATOR})),
    PageLink("/console/collections", "Collections", frozenset({Role.OPERATOR})),
    PageLink("/console/gateway", "Gateway", frozenset({Role.OPERATOR, Role.AUDITOR})),
    PageLink("/console/access", "Access", frozenset({Role.KEY_CUSTODIAN})),
    PageLink("/console/identities", "Identities", frozenset({Role.KEY_CUSTODIAN})),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a signed-in person; ``token`` is the session's, never shown."""

    request: Request
    services: ConsoleServices
    caller: Caller
    info: RequestInfo
    token: str = field(repr=False)

    @property
    def base(self) -> str:
        """Return the address of the service, as this browser reaches it."""
        return f"{self.request.url.scheme}://{self.request.url.netloc}"

    def may(self, *roles: Role) -> bool:
        """Return whether the person has one of ``roles``."""
        return not self.caller.roles.isdisjoint(roles)

    async def still_may(self, *roles: Role) -> bool:
        """Return whether the session still lives and its key has one of ``roles``; no use of the session."""
        facts = facts_of(self.request.scope)
        try:
            caller = await self.services.sessions.resume(self.token, facts.address, is_use=False)
        except UnauthenticatedError:
            return False
        return not caller.roles.isdisjoint(roles)

    def page(self, template: str, values: Mapping[str, Any], *, status: int = HTTPStatus.OK) -> Response:
        """Return a page with its frame."""
        return page(self.request, template, {**values, **self._frame()}, status=status)

    def _frame(self) -> dict[str, Any]:
        path = self.request.url.path
        shown = [entry for entry in NAVIGATION if not self.caller.roles.isdisjoint(entry.roles)]
        return {
            "visit": self,
            "caller": self.caller,
            "roles": sorted(self.caller.roles),
            "navigation": shown,
            "here": max((e.path for e in shown if path.startswith(e.path)), key=len, default=""),
            "form_token": form_token(self.token),
            "version": self.services.version,
        }


class PageRoute(APIRoute):
    """A route whose failures are pages; who is not signed in is led to where they can."""

    def get_route_handler(self) -> Any:
        """Return the handler, whose errors are answered here."""
        handle = super().get_route_handler()

        async def shown(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError:
                return failed(
                    request,
                    InvalidArgumentsError("The address of this page has a part that it does not take."),
                )
            except UnauthenticatedError as error:
                return _signed_out(request, error)
            except ServiceError as error:
                return failed(request, error)

        return shown


def new_pages() -> APIRouter:
    """Return a router for pages, which the API's document does not list."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def failed(request: Request, error: ServiceError, status: int | None = None) -> Response:
    """Return the page of an error, noted for the logs."""
    facts = facts_of(request.scope)
    facts.fail(error)
    log_cause(error, facts.request_id)
    return error_page(request, error, status or status_of(error), facts.request_id)


def console_services(request: Request) -> ConsoleServices:
    """Return what the application was built with."""
    return cast("ConsoleServices", request.app.state.console_services)


def cookie_of(headers: RawHeaders, name: str) -> str | None:
    """Return a cookie of a request, None where it has none of that name."""
    cookies = [value.decode("latin-1") for header, value in headers if header == b"cookie"]
    return cookie_parser("; ".join(cookies)).get(name)


def session_of(headers: RawHeaders) -> str | None:
    """Return the token of the session that a request presents, None without one."""
    return cookie_of(headers, SESSION_COOKIE)


async def visiting(request: Request) -> Visit:
    """Return who asks; where a form was sent, the edge has found that out already."""
    services, facts = console_services(request), facts_of(request.scope)
    token = session_of(request.scope["headers"])
    caller = facts.caller or await services.sessions.resume(token, facts.address)
    facts.admit(caller)
    await services.requests.count(caller.tenant)
    return Visit(request, services, caller, facts.info(math.inf), token or "")


VisitDep = Annotated[Visit, Depends(visiting)]


async def submitted(visit: VisitDep) -> Mapping[str, str]:
    """Return the members of a form that a page of this session has sent, or raise what refuses it."""
    form = await read_form(visit.request)
    check_form(form, form_token(visit.token))
    return form


FormDep = Annotated[Mapping[str, str], Depends(submitted)]


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the members of the form in a request's body, each of which comes once."""
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            max_num_fields=_MOST_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise InvalidRequestError("The form cannot be read.") from None
    form = dict(pairs)
    if len(form) < len(pairs) or any("\0" in text for pair in pairs for text in pair):
        raise InvalidRequestError("The form cannot be read.")
    return form


def check_form(form: Mapping[str, str], expected: str) -> None:
    """Raise ForbiddenError unless the form comes from a page of ours."""
    if not hmac.compare_digest(form.get("form_token", "").encode(), expected.encode()):
        raise ForbiddenError(
            "This form is too old, or comes from elsewhere: load the page again, and send it from there."
        )


def own_page(address: str | None) -> str:
    """Return where to go after signing in: a page of the console, whatever was asked for."""
    return address if address is not None and _OWN_PAGE.fullmatch(address) else HOME


def is_https(request: Request) -> bool:
    """Return whether the browser speaks TLS, with us or with a proxy before us, whose requests name the origin."""
    origin = request.headers.get("origin", "")
    return request.url.scheme == "https" or urlsplit(origin).scheme == "https"


def new_token() -> str:
    """Return 256 random bits as text."""
    return secrets.token_urlsafe(32)


def see(path: str) -> Response:
    """Return an answer that leads a browser to another page of the console."""
    return RedirectResponse(path, HTTPStatus.SEE_OTHER.value)


def _signed_out(request: Request, error: UnauthenticatedError) -> Response:
    facts = facts_of(request.scope)
    facts.fail(error)
    address = SIGN_IN
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    renew = error.details.get("renew") if request.method == "GET" else None
    if renew is not None:
        # The issuer answers without a word while the person is signed in there.
        address = f"{SIGN_IN}/with/{renew}?quiet=1&next={quote(own_page(wanted), safe='')}"
    elif wanted != HOME and own_page(wanted) == wanted:
        address = f"{SIGN_IN}?next={quote(wanted, safe='')}"
    if "hx-request" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT.value, headers={"hx-redirect": address})
    return see(address)
