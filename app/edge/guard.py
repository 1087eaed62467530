"""The outermost layer of the service: every request, REST or MCP, passes here first and leaves here last."""

import asyncio
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
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import InvalidRequestError, OverloadedError, ServiceError
from app.core.strictjson import dumps
from app.edge.answers import Answer
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
from app.edge.standing import RECHECK_S, WatchedRequest, watch
from app.edge.surfaces import ForeignRefusal, ForeignSurface
from app.edge.tracing import Tracer

CLIENT_GONE: Final = 499
"""The status that logs and metrics show where nobody was left to answer."""
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_ALWAYS_SERVED: Final = PROBES | {"/metrics"}


@dataclass(frozen=True, slots=True)
class EdgeGuard:
    """Wraps the whole application: raw ASGI, because frameworks read bodies before asking.

    It begins the record of the request, see ``app.edge.facts``. ``routes`` are the limits that routes declare
    beside ``limits``, which hold for all. ``served`` holds where the state of a lifespan brings none of its own.
    ``rpc_codes`` are the JSON-RPC codes of refusals under /mcp, ``surfaces`` the paths that speak another API. The
    credential of what takes longer is looked at again every ``recheck_s`` seconds.
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
    logger: Any = field(default_factory=lambda: structlog.get_logger("sluice"))
    bodies: Bodies = field(init=False)
    freed: FreedMemory = field(default_factory=FreedMemory)
    recheck_s: float = RECHECK_S
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
        served: Served = scope.get("state", {}).get(SERVED, self.served)
        answer = Answer(send, facts, self.drain, scope["headers"], served)
        started = time.perf_counter()
        self.metrics.begin()
        self.drain.running += 1
        tracer = self.tracer
        try:
            if tracer is None:
                await self._answered(scope, receive, answer, served)
                exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
            else:
                with tracer.span(scope["method"], facts.traceparent) as span:
                    await self._answered(scope, receive, answer, served)
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

    async def _answered(self, scope: Scope, receive: Receive, answer: Answer, served: Served) -> None:
        """Run the request and answer its failure, whatever it is."""
        facts = facts_of(scope)
        holding: Holding | None = None
        try:
            surface, method = self._surface_at(facts.path), scope["method"]
            headers = self._checked(scope, facts, surface)
            gate = served.gate if surface is None else surface.gate_of(facts.path, served)
            if has_body(method) and gate is not None:
                await self._check_caller(gate, scope, facts, headers, surface)
            if surface is None and scope.get("query_string"):
                self._check_query(scope, facts)
            if has_body(method):
                holding = self.bodies.holding(facts.caller)
                receive = await self._body(method, facts, headers, receive, holding)
            await self._while_valid(gate, served, surface, scope, receive, answer)
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

    async def _while_valid(
        self,
        gate: CallerGate | None,
        served: Served,
        surface: ForeignSurface | None,
        scope: Scope,
        receive: Receive,
        answer: Answer,
    ) -> None:
        """Serve the request for as long as its credential counts; else raise UnauthenticatedError."""
        facts = facts_of(scope)
        # What is called most has a way of its own, all the rest the application.
        if surface is not None:
            own = served.doors.get(surface.prefix)
        else:
            own = (
                served.invoke
                if facts.path.startswith(INVOKE_PREFIX)
                else served.mcp
                if facts.is_mcp
                else None
            )
        serve = own or self.app
        if gate is None:
            await serve(scope, receive, answer.send)
            return
        request = WatchedRequest(asyncio.current_task(), scope, gate, surface)
        timer = asyncio.get_running_loop().call_later(self.recheck_s, watch, request, self.recheck_s)
        try:
            await serve(scope, receive, answer.send)
        except asyncio.CancelledError:
            request.check_ended()
            raise
        finally:
            timer.cancel()
            if request.watcher is not None:
                request.watcher.cancel()

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
        answer: Answer,
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


def _exchange(scope: Scope, facts: RequestFacts, answer: Answer, seconds: float) -> FinishedRequest:
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
