"""Doors in the shape of model providers: the paths below /openai/v1 and /anthropic, in the providers' own forms.

They are not in the OpenAPI document of this service: their bodies are those of the providers, and documented there.
"""

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import parse_qsl

import structlog
from fastapi import APIRouter
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.auth import RouteServices, admitted
from app.api.credentials import foreign_key, own_key
from app.core.access import Role
from app.core.errors import InternalError, InvalidRequestError, ServiceError
from app.core.gateway.kinds import KINDS, NotCoveredError, Operation, ProviderError, ProviderKind
from app.edge.departures import UntilDisconnect
from app.edge.facts import RequestFacts, facts_of
from app.edge.limits import needs
from app.edge.observability import log_bug
from app.edge.problems import error_headers, internal_error
from app.edge.surfaces import ForeignRefusal, ForeignSurface
from app.services.gateway.door_requests import DoorRequest

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_SCOPE: Final = "x-sluice-scope"
_MOST_FIELDS: Final = 200
_PATHS: Final = "{path:path}"


class ProviderDoor:
    """Serves every path of one kind of provider: an ASGI application, so that nothing buffers what streams.

    Without ``services`` it finds them in the state of the application that serves the request.
    """

    def __init__(self, kind: ProviderKind, services: RouteServices | None = None) -> None:
        self.kind = kind
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; when its client goes away, the work ends, and with it the provider's request."""
        until = UntilDisconnect(receive)
        with until:
            await self._answered(scope, _Answer(send, until))
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError  # an error while the work ended has taken its place

    async def _answered(self, scope: Scope, answer: "_Answer") -> None:
        facts = facts_of(scope)
        try:
            await self._run(scope, facts, answer)
        except NotCoveredError as error:
            facts.error_code = error.code
            await answer.refuse(self.kind.error(error.code, error.message, status=error.status), {})
        except ServiceError as error:
            facts.fail(error)
            if isinstance(error, InternalError):
                log_bug(structlog.get_logger("sluice"), error.__cause__ or error, facts.request_id)
            refused = self.kind.fault(error)
            await answer.refuse(refused, error_headers(error, refused.status))
        except Exception as error:  # noqa: BLE001 - nothing of an exception's text may leave
            facts.error_code = InternalError.code
            log_bug(structlog.get_logger("sluice"), error, facts.request_id)
            await answer.refuse(self.kind.fault(internal_error()), {})

    async def _run(self, scope: Scope, facts: RequestFacts, answer: "_Answer") -> None:
        facts.route = f"{self.kind.prefix}/{_PATHS}"
        operation = self._operation(scope)
        facts.route = self.kind.prefix + operation.pattern
        services = self._services or cast("RouteServices", scope["app"].state.route_services)
        caller = facts.caller or await admitted(services, facts, own_key(scope["headers"]))
        # A stream may last for long after its request has left: nothing here keeps what the request brought.
        async with services.gateway.answered(
            caller, self._incoming(scope, facts, services, operation), facts.info(math.inf)
        ) as reply:
            await answer.begin(reply.status, reply.headers)
            async for chunk in reply.chunks:
                await answer.chunk(chunk)
            await answer.end()

    def _operation(self, scope: Scope) -> Operation:
        path = scope["path"].removeprefix(self.kind.prefix)
        upgrades = {name.lower(): value for name, value in scope["headers"]}.get(b"upgrade", b"")
        return self.kind.find(scope["method"], path, upgrade=upgrades.lower() == b"websocket")

    def _incoming(
        self, scope: Scope, facts: RequestFacts, services: RouteServices, operation: Operation
    ) -> DoorRequest:
        """Return the request, whose body the record of it then holds no longer."""
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        caller_key, query = foreign_key(scope["headers"]), _query(scope)
        _check_tokens(services, caller_key, query)
        incoming = DoorRequest(
            kind=self.kind,
            operation=operation,
            method=scope["method"],
            headers=headers,
            query=query,
            body=facts.body or b"",
            value=facts.json,
            caller_key=caller_key,
            scope={name.lower(): value for name, value in headers}.get(_SCOPE),
        )
        facts.forget_body()
        return incoming


@dataclass(slots=True)
class _Answer:
    """Sends an answer, and refusals as long as none has begun."""

    send: Send
    until: UntilDisconnect
    started: bool = field(default=False, init=False)

    async def begin(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self.started = True
        raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})

    async def chunk(self, chunk: bytes) -> None:
        await self.send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        self.until.stop()  # what is left to do, the end of the record, is done whether the client stays or not
        await self.send({"type": "http.response.body", "body": b""})

    async def refuse(self, refusal: ProviderError, headers: Mapping[str, str]) -> None:
        if self.started:
            return  # without an end, the client, if it is still there, sees that the answer is not whole
        await self.begin(
            refusal.status,
            [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(refusal.body))),
                *headers.items(),
            ],
        )
        await self.send({"type": "http.response.body", "body": refusal.body})


def _check_tokens(services: RouteServices, caller_key: str | None, query: Sequence[tuple[str, str]]) -> None:
    """Refuse a token of ours where it would go to the provider, or has been seen by every proxy on the way."""
    if caller_key is not None and services.authenticator.recognizes(caller_key):
        raise InvalidRequestError(
            "A token of an issuer of Sluice is never sent to a provider: send the provider's own key beside "
            "X-Sluice-Key, or none."
        )
    if any(name == "access_token" or services.authenticator.recognizes(value) for name, value in query):
        raise InvalidRequestError("A token stands in the address: send it in the header Authorization only.")


def _query(scope: Scope) -> list[tuple[str, str]]:
    try:
        query = scope["query_string"].decode("latin-1")
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidRequestError(f"The query has more than {_MOST_FIELDS} parameters.") from None


def _surface(kind: ProviderKind) -> ForeignSurface:
    def refusal(error: ServiceError, status: int | None) -> ForeignRefusal:
        refused = kind.fault(error)
        return ForeignRefusal(status or refused.status, refused.body)

    def upgrade(path: str) -> ForeignRefusal:
        try:
            kind.find("GET", path.removeprefix(kind.prefix), upgrade=True)
        except NotCoveredError as error:
            refused = kind.error(error.code, error.message, status=error.status)
            return ForeignRefusal(refused.status, refused.body)
        raise AssertionError("no operation is served over a WebSocket")

    def slashes(method: str, raw: bytes) -> bool:
        return kind.has_slashes(method, raw.decode("latin-1").removeprefix(kind.prefix))

    return ForeignSurface(f"{kind.prefix}/", own_key, refusal, upgrade, slashes)


def _route(kind: ProviderKind) -> Route:
    door = needs(Role.INVOKER, action="gateway.request")(ProviderDoor(kind))
    return Route(f"{kind.prefix}/{_PATHS}", door, methods=list(_METHODS), include_in_schema=False)


def doors(services: RouteServices, general: ASGIApp) -> dict[str, ASGIApp]:
    """Return the doors by the prefix of their paths, for who calls them without looking for their routes.

    ``general`` has what is no request of theirs: methods that no door knows.
    """
    return {f"{kind.prefix}/": _known(ProviderDoor(kind, services), general) for kind in KINDS.values()}


def _known(door: ASGIApp, general: ASGIApp) -> ASGIApp:
    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        is_known = scope["method"] in _METHODS and not scope.get("root_path")
        return (door if is_known else general)(scope, receive, send)

    return serve


SURFACES: Final = tuple(_surface(kind) for kind in KINDS.values())
router = APIRouter(routes=[_route(kind) for kind in KINDS.values()])
