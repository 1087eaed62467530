"""The outermost layer of the service: every request, REST or MCP, passes here first and leaves here last."""

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.core.errors import InvalidRequestError, OverloadedError, ServiceError
from app.core.strictjson import dumps
from app.edge.facts import GROUP_PATH, MCP_PATH, RequestFacts, facts_of
from app.edge.limits import (
    PROBES,
    ClientGoneError,
    DeclaredLimits,
    EdgeLimits,
    Headers,
    Refused,
    check_origin,
    check_type,
    counted,
    has_body,
    linger,
    read_json,
    replayed,
)
from app.edge.observability import UNMATCHED, FinishedRequest, Metrics, log_bug, log_request
from app.edge.problems import error_headers, internal_error, problem, status_of
from app.edge.tracing import Tracer

MCP_SURFACE: Final = "mcp_surface"
"""Under which the state of the lifespan holds what serves the MCP endpoints: before the routes of ``app`` are tried."""

CLIENT_GONE: Final = 499
"""The status that logs and metrics show where nobody was left to answer."""
_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_ALWAYS_SERVED: Final = PROBES | {"/metrics"}
_SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Drain:
    """Whether this process still takes new requests, and how many it is busy with."""

    def __init__(self) -> None:
        self.draining = False
        self.running = 0
        self._listeners: list[Callable[[], object]] = []

    def subscribe(self, listener: Callable[[], object]) -> None:
        """Call ``listener`` once, when the process goes out of service; it may be called from a signal handler."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """Refuse new requests from now on; those that run may end, and the listeners end what never would."""
        self.draining = True
        for tell in self._listeners:
            tell()


@dataclass(frozen=True, slots=True)
class EdgeGuard:
    """Wraps the whole application: raw ASGI, because frameworks read bodies before asking.

    It begins the record of the request, see ``app.edge.facts``. ``routes`` are the limits that routes declare
    beside ``limits``, which hold for all; ``rpc_codes`` are the JSON-RPC codes of refusals under /mcp.
    """

    app: ASGIApp
    limits: EdgeLimits = field(default_factory=EdgeLimits)
    routes: DeclaredLimits = field(default_factory=DeclaredLimits)
    drain: Drain = field(default_factory=Drain)
    metrics: Metrics = field(default_factory=Metrics)
    tracer: Tracer | None = None
    rpc_codes: Mapping[str, int] = field(default_factory=dict)
    logger: Any = field(default_factory=lambda: structlog.get_logger("sluice"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        facts = facts_of(scope)
        answer = _Answer(send, facts.request_id, self.drain)
        started = time.perf_counter()
        self.metrics.begin()
        self.drain.running += 1
        tracer = self.tracer
        tracing = nullcontext() if tracer is None else tracer.span(scope["method"], facts.traceparent)
        try:
            with tracing as span:
                await self._answered(scope, receive, answer)
                exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
                if tracer is not None:
                    tracer.finish(span, exchange)
        except BaseException:
            # Only cancellation comes here: the server is shutting down or the client is gone.
            answer.status = answer.status or CLIENT_GONE
            exchange = _exchange(scope, facts, answer, time.perf_counter() - started)
            raise
        finally:
            self.drain.running -= 1
            self.metrics.end(exchange)
            log_request(self.logger, exchange)

    async def _answered(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Run the request and answer its failure, whatever it is."""
        facts = facts_of(scope)
        try:
            surface = scope.get("state", {}).get(MCP_SURFACE, self.app) if facts.is_mcp else self.app
            await surface(scope, await self._admitted(scope, facts, receive), answer.send)
        except Refused as refusal:
            answer.closing = True
            if refusal.linger:
                await linger(receive)
            await self._refuse(facts, answer, refusal.error, refusal.status)
        except ServiceError as error:
            await self._refuse(facts, answer, error)
        except ClientGoneError:
            answer.status = CLIENT_GONE
        except Exception as error:  # noqa: BLE001 - the last net: nothing of an exception's text may leave
            log_bug(self.logger, error, facts.request_id)
            await self._refuse(facts, answer, internal_error())

    async def _admitted(self, scope: Scope, facts: RequestFacts, receive: Receive) -> Receive:
        """Check all that can be checked without knowing the route; return where the body is to be read."""
        headers = Headers(scope["headers"])
        path = facts.path
        if self.drain.draining and path not in _ALWAYS_SERVED:
            raise Refused(
                OverloadedError("This process is shutting down; another one answers.", retry_after_s=1)
            )
        check_origin(headers, path, self.limits)
        if not has_body(scope["method"]):
            return receive
        streamed = self.routes.streamed_types(path, headers)
        if streamed is not None:
            check_type(headers, streamed)
            return counted(receive, self.limits)
        body, value = await read_json(receive, headers, self.limits)
        if body:
            facts.body, facts.json = body, value
        return replayed(body, receive)

    async def _refuse(
        self, facts: RequestFacts, answer: "_Answer", error: ServiceError, status: int | None = None
    ) -> None:
        facts.error_code = error.code
        if answer.started:
            return
        status = status or status_of(error)
        if _under_mcp(facts.path):
            media_type, body = b"application/json", self._rpc_error(error, facts.request_id)
        else:
            media_type, body = b"application/problem+json", dumps(problem(error, facts.request_id, status))
        headers = [(name.encode(), value.encode()) for name, value in error_headers(error, status).items()]
        headers += [(b"content-type", media_type), (b"content-length", str(len(body)).encode())]
        await answer.send({"type": "http.response.start", "status": status, "headers": headers})
        await answer.send({"type": "http.response.body", "body": body})

    def _rpc_error(self, error: ServiceError, request_id: str) -> bytes:
        code = self.rpc_codes.get(error.code, _INVALID_REQUEST)
        if isinstance(error, InvalidRequestError) and "position" in error.details:
            code = _PARSE_ERROR
        data = {**error.details, "code": error.code, "requestId": request_id}
        return dumps(
            {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message, "data": data}}
        )


class _Answer:
    """Passes the answer on, adds the headers that every answer has, and remembers what logs want to know."""

    __slots__ = ("_drain", "_request_id", "_send", "bytes_out", "closing", "status")

    def __init__(self, send: Send, request_id: str, drain: Drain) -> None:
        self._send = send
        self._request_id = request_id.encode()
        self._drain = drain
        self.closing = False
        self.status = 0
        self.bytes_out = 0

    @property
    def started(self) -> bool:
        return self.status != 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            headers += [pair for pair in _SECURITY_HEADERS if pair[0] not in present]
            headers.append((b"x-request-id", self._request_id))
            if (self.closing or self._drain.draining) and b"connection" not in present:
                headers.append((b"connection", b"close"))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self._send(message)


def _exchange(scope: Scope, facts: RequestFacts, answer: _Answer, seconds: float) -> FinishedRequest:
    return FinishedRequest(
        method=scope["method"],
        route=_template(scope, facts),
        status=answer.status,
        seconds=seconds,
        bytes_in=facts.bytes_in,
        bytes_out=answer.bytes_out,
        request_id=facts.request_id,
        error_code=facts.error_code,
        tenant=facts.tenant,
        key_id=facts.key_id,
        middleware=facts.middleware,
    )


def _template(scope: Scope, facts: RequestFacts) -> str:
    path = getattr(scope.get("route"), "path", None)
    if isinstance(path, str):
        return path
    if facts.group is not None:
        return GROUP_PATH + "{name}"
    return facts.path if facts.is_mcp else UNMATCHED


def _under_mcp(path: str) -> bool:
    return path == MCP_PATH or path.startswith(MCP_PATH + "/")
