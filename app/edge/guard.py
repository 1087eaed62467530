"""The outermost layer of the service: every request, REST or MCP, passes here first and leaves here last."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core.errors import InvalidRequestError, OverloadedError, ServiceError
from app.core.strictjson import dumps
from app.edge.bodies import Bodies, linger, replayed
from app.edge.budget import SMALL_BODY, Holding
from app.edge.facts import GROUP_PATH, INVOKE_PREFIX, RequestFacts, facts_of, is_under_mcp
from app.edge.lifespan_state import SERVED, CallerGate, Drain, Served
from app.edge.limits import (
    MCP_NEEDS,
    PROBES,
    ClientGoneError,
    DeclaredLimits,
    EdgeLimits,
    Headers,
    Refused,
    check_origin,
    check_path,
    has_body,
)
from app.edge.memory import FreedMemory
from app.edge.observability import UNMATCHED, FinishedRequest, Metrics, log_bug, log_request
from app.edge.problems import error_headers, internal_error, problem, status_of
from app.edge.protected_resources import ProtectedResources
from app.edge.surfaces import ForeignRefusal, ForeignSurface, RawHeaders
from app.edge.tracing import Tracer

CLIENT_GONE: Final = 499
"""The status that logs and metrics show where nobody was left to answer."""
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_ALWAYS_SERVED: Final = PROBES | {"/metrics"}
_ID: Final = b"x-request-id"
_CLIENT_ID: Final = b"x-client-request-id"
_OWN_ID: Final = b"x-sluice-request-id"
_SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_SECURITY_NAMES: Final = frozenset(name for name, _ in _SECURITY_HEADERS)
_CHALLENGED: Final = frozenset({401, 403})
_UNBUFFERED: Final = (b"x-accel-buffering", b"no")
"""Tells nginx to pass each event on as it comes, which it would keep where it compresses answers."""
_EVENTS: Final = b"text/event-stream"


@dataclass(frozen=True, slots=True)
class EdgeGuard:
    """Wraps the whole application: raw ASGI, because frameworks read bodies before asking.

    It begins the record of the request, see ``app.edge.facts``. ``routes`` are the limits that routes declare
    beside ``limits``, which hold for all. ``served`` holds where the state of a lifespan brings none of its own.
    ``rpc_codes`` are the JSON-RPC codes of refusals under /mcp, ``surfaces`` the paths that speak another API,
    ``resources`` what clients that need a token are told.
    """

    app: ASGIApp
    limits: EdgeLimits = field(default_factory=EdgeLimits)
    routes: DeclaredLimits = field(default_factory=DeclaredLimits)
    served: Served = field(default_factory=Served)
    drain: Drain = field(default_factory=Drain)
    metrics: Metrics = field(default_factory=Metrics)
    tracer: Tracer | None = None
    rpc_codes: Mapping[str, int] = field(default_factory=dict)
    surfaces: Sequence[ForeignSurface] = ()
    resources: ProtectedResources | None = None
    logger: Any = field(default_factory=lambda: structlog.get_logger("sluice"))
    bodies: Bodies = field(init=False)
    freed: FreedMemory = field(default_factory=FreedMemory)
    _prefixes: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Build what reads the bodies, within the limits."""
        object.__setattr__(self, "bodies", Bodies.within(self.limits))
        object.__setattr__(self, "_prefixes", tuple(surface.prefix for surface in self.surfaces))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._refuse_websocket(scope, send)
        else:
            await self.app(scope, receive, send)

    def _surface_at(self, path: str) -> ForeignSurface | None:
        """Return the surface that has ``path``, or None."""
        if not path.startswith(self._prefixes):
            return None
        for surface in self.surfaces:
            if path.startswith(surface.prefix):
                return surface
        return None

    async def _refuse_websocket(self, scope: Scope, send: Send) -> None:
        """Close a WebSocket; where a surface has an answer for it and the server can send one, answer."""
        surface = self._surface_at(scope.get("path", ""))
        able = "websocket.http.response" in (scope.get("extensions") or {})
        if surface is None or surface.upgrade is None or not able:
            await send({"type": "websocket.close", "code": 1008})
            return
        status, body, *_ = surface.upgrade(scope["path"])
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        facts = facts_of(scope)
        answer = Answer(send, facts, self.drain, scope["headers"], self.resources)
        started = time.perf_counter()
        self.metrics.begin()
        self.drain.running += 1
        tracer = self.tracer
        try:
            if tracer is None:
                await self._answered(scope, receive, answer)
                exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
            else:
                with tracer.span(scope["method"], facts.traceparent) as span:
                    await self._answered(scope, receive, answer)
                    exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
                    tracer.finish(span, exchange)
        except BaseException:
            # Only cancellation comes here: the server is shutting down or the client is gone.
            answer.status = answer.status or CLIENT_GONE
            exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
            raise
        finally:
            facts.forget_body()
            size = facts.bytes_in + answer.bytes_out
            if size > SMALL_BODY:
                self.freed.ended(size)
            self.drain.running -= 1
            self.metrics.end(exchange)
            log_request(self.logger, exchange)

    async def _answered(self, scope: Scope, receive: Receive, answer: "Answer") -> None:
        """Run the request and answer its failure, whatever it is."""
        facts = facts_of(scope)
        holding: Holding | None = None
        try:
            surface, method = self._surface_at(facts.path), scope["method"]
            headers = self._checked(scope, facts, surface)
            served: Served = scope.get("state", {}).get(SERVED, self.served)
            gate = served.gate if surface is None else surface.gate_of(facts.path, served)
            if has_body(method) and gate is not None:
                await self._check_caller(gate, scope, facts, headers, surface)
            if surface is None and scope.get("query_string"):
                self._check_query(scope, facts)
            if has_body(method):
                holding = self.bodies.holding(facts.caller)
                receive = await self._body(method, facts, headers, receive, holding)
            await self._routed(served, facts)(scope, receive, answer.send)
            if not answer.started:  # it ended because nobody was left to answer
                answer.status = CLIENT_GONE
        except Refused as refusal:
            answer.closing = True
            rest = receive if refusal.linger and not self._awaits_leave(scope) else None
            await self._refuse(facts, answer, refusal.error, refusal.status, rest)
        except ServiceError as error:
            await self._refuse(facts, answer, error)
        except ClientGoneError:
            answer.status = CLIENT_GONE
        except Exception as error:  # noqa: BLE001 - the last net: nothing of an exception's text may leave
            log_bug(self.logger, error, facts.request_id)
            await self._refuse(facts, answer, internal_error())
        finally:
            if holding is not None:
                holding.release()

    def _routed(self, served: Served, facts: RequestFacts) -> ASGIApp:
        """Return what serves the request: of its own for what is called most, the application for all the rest."""
        if facts.is_mcp:
            return served.mcp or self.app
        return (served.invoke if facts.path.startswith(INVOKE_PREFIX) else None) or self.app

    def _checked(self, scope: Scope, facts: RequestFacts, surface: ForeignSurface | None) -> Headers:
        """Check all that can be checked without knowing the caller or the route."""
        headers = Headers(scope["headers"])
        if self.drain.draining and facts.path not in _ALWAYS_SERVED:
            raise Refused(
                OverloadedError("This process is shutting down; another one answers.", retry_after_s=1)
            )
        check_path(scope, surface)
        check_origin(headers, facts.path, self.limits)
        return headers

    async def _check_caller(
        self,
        gate: CallerGate,
        scope: Scope,
        facts: RequestFacts,
        headers: Headers,
        surface: ForeignSurface | None,
    ) -> None:
        """Refuse who has no valid key, or no role for this route, before anything of the body is read."""
        try:
            needed = MCP_NEEDS if facts.is_mcp else self.routes.needs_of(scope["method"], facts.path)
            facts.required = needed.roles if needed is not None else ()
            key = headers.bearer if surface is None else surface.credential(scope["headers"])
            caller = await gate.authenticate(key, facts.address)
            if facts.end_users:
                caller = await gate.acting(caller, facts.end_users, facts.info(math.inf))
            facts.admit(caller)
            if needed is not None and caller.roles.isdisjoint(needed.roles):
                await gate.refuse(caller, needed.roles, needed.action, facts.info(math.inf))
        except ServiceError as error:
            if headers.announces_body:
                raise Refused(error, linger=True) from None
            raise

    def _check_query(self, scope: Scope, facts: RequestFacts) -> None:
        """Refuse names in the query that the route does not read."""
        query = scope["query_string"]
        fault = self.routes.queries.fault(scope["method"], facts.path, query, mcp=facts.is_mcp)
        if fault is not None:
            raise Refused(fault, linger=has_body(scope["method"]))

    async def _body(
        self, method: str, facts: RequestFacts, headers: Headers, receive: Receive, holding: Holding
    ) -> Receive:
        """Read the body, if there is one; return where it is to be read again, or for the first time."""
        streamed = self.routes.streamed(method, facts.path, headers)
        if streamed is not None:
            return await self.bodies.streamed(receive, headers, streamed, holding)
        return replayed(await self.bodies.json(receive, headers, facts, holding), receive)

    @staticmethod
    def _awaits_leave(scope: Scope) -> bool:
        """Return whether the client sends its body only when it is told to, so that nothing is on its way."""
        return any(name == b"expect" for name, _ in scope["headers"])

    async def _refuse(
        self,
        facts: RequestFacts,
        answer: "Answer",
        error: ServiceError,
        status: int | None = None,
        rest: Receive | None = None,
    ) -> None:
        """Answer with the error; ``rest``: then take what the client still sends, lest it cannot read the answer."""
        facts.fail(error)
        if answer.started:
            return
        if (surface := self._surface_at(facts.path)) is not None and surface.refuses:
            form = surface.refused(error, status, facts.request_id)
        elif is_under_mcp(facts.path):
            form = ForeignRefusal(status or status_of(error), self._rpc_error(error, facts.request_id))
        else:
            body = dumps(problem(error, facts.request_id, status))
            form = ForeignRefusal(status or status_of(error), body, b"application/problem+json")
        status, body, media_type, more = form
        headers = [(name.encode(), value.encode()) for name, value in error_headers(error, status).items()]
        headers += [(b"content-type", media_type), (b"content-length", str(len(body)).encode()), *more]
        await answer.send({"type": "http.response.start", "status": status, "headers": headers})
        if rest is not None:
            await answer.send({"type": "http.response.body", "body": body, "more_body": True})
            await linger(rest)
            body = b""
        await answer.send({"type": "http.response.body", "body": body})

    def _rpc_error(self, error: ServiceError, request_id: str) -> bytes:
        code = self.rpc_codes.get(error.code, _INVALID_REQUEST)
        if isinstance(error, InvalidRequestError) and "position" in error.details:
            code = _PARSE_ERROR
        data = {**error.details, "code": error.code, "requestId": request_id}
        return dumps(
            {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message, "data": data}}
        )


class GuardedApp(FastAPI):
    """The application behind its guard, which answers every failure: the framework's own layers for that are left out.

    What has a way of its own behind the guard pays for nothing of the framework.
    """

    def __init__(self, guard: Callable[[ASGIApp, Sequence[BaseRoute]], EdgeGuard], **settings: Any) -> None:
        """Take what builds the guard, from the application behind it and the framework's own routes.

        ``settings`` are FastAPI's.
        """
        super().__init__(**settings)
        self._guard = guard(super().__call__, self.routes)

    def build_middleware_stack(self) -> ASGIApp:
        """Return what stands between the guard and the routes."""
        handlers: dict[Any, Any] = {
            kind: handler for kind, handler in self.exception_handlers.items() if kind is not Exception
        }
        return ExceptionMiddleware(AsyncExitStackMiddleware(self.router), handlers=handlers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        await self._guard(scope, receive, send)


class Answer:
    """Passes the answer on, adds the headers that every answer has, and remembers what logs want to know.

    ``sent`` are the headers of the request. Set ``closing`` where the connection is to end with the answer.
    """

    __slots__ = ("_drain", "_facts", "_resources", "_send", "_sent", "bytes_out", "closing", "status")

    def __init__(
        self,
        send: Send,
        facts: RequestFacts,
        drain: Drain,
        sent: RawHeaders,
        resources: ProtectedResources | None,
    ) -> None:
        self._send, self._sent = send, sent
        self._facts, self._resources = facts, resources
        self._drain = drain
        self.closing = False
        self.status = 0
        self.bytes_out = 0

    @property
    def started(self) -> bool:
        """Return whether a head was sent."""
        return self.status != 0

    async def send(self, message: Message) -> None:
        """Pass one message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            if self._resources is not None and self.status in _CHALLENGED:
                headers = self._resources.challenged(self.status, headers, self._facts, self._sent)
            message = {**message, "headers": self._completed(headers)}
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self._send(message)

    def _completed(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        present = {name.lower(): value for name, value in headers}
        if present.keys().isdisjoint(_SECURITY_NAMES):
            headers += _SECURITY_HEADERS
        else:
            headers += [pair for pair in _SECURITY_HEADERS if pair[0] not in present]
        if present.get(b"content-type", b"").lower().startswith(_EVENTS):
            headers = [pair for pair in headers if pair[0].lower() != _UNBUFFERED[0]] + [_UNBUFFERED]
        facts = self._facts
        # A provider's own id of the request keeps its header, by which its clients know it.
        name = _OWN_ID if _ID in present else _ID
        headers.append((name, facts.request_id.encode()))
        if facts.client_request_id is not None:
            name = _OWN_ID if _CLIENT_ID in present else _CLIENT_ID
            headers.append((name, facts.client_request_id.encode()))
        if (self.closing or self._drain.draining) and b"connection" not in present:
            headers.append((b"connection", b"close"))
        return headers


def _exchange(scope: Scope, facts: RequestFacts, answer: "Answer", seconds: float) -> FinishedRequest:
    return FinishedRequest(
        method=scope["method"],
        route=_template(scope, facts),
        status=answer.status,
        seconds=seconds,
        bytes_in=facts.bytes_in,
        bytes_out=answer.bytes_out,
        request_id=facts.request_id,
        client_request_id=facts.client_request_id,
        error_code=facts.error_code,
        tenant=facts.tenant,
        key_id=facts.key_id,
        middleware=facts.middleware,
    )


def _template(scope: Scope, facts: RequestFacts) -> str:
    path = facts.route or getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    if facts.group is not None:
        return GROUP_PATH + "{name}"
    return facts.path if facts.is_mcp else UNMATCHED
