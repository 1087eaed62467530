"""The front of /mcp: who asks, is it one JSON-RPC message, which leg of the SDK serves it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from mcp.server.transport_security import TransportSecurityMiddleware
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import CLIENT_CAPABILITIES_META_KEY, METHOD_NOT_FOUND
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from app.core.access import Caller
from app.core.client_features import client_features
from app.core.errors import InternalError, NotFoundError, ServiceError
from app.core.request import RequestInfo
from app.edge.bodies import replayed
from app.edge.facts import facts_of
from app.edge.standing import until_ended
from app.protocol.wire.answers import answer_empty, answer_failure, answer_refusal, marked
from app.protocol.wire.direct import Direct
from app.protocol.wire.envelope import (
    check_modern_headers,
    is_response,
    message_id,
    parse_message,
    the_object,
    wants_stream,
)
from app.protocol.wire.errors import RefusedError, internal_error
from app.protocol.wire.exchange import (
    SCOPE_KEY,
    Exchange,
    Fields,
    bearer_of,
    read_body,
    with_headers,
)
from app.protocol.wire.guards import Running
from app.protocol.wire.process_sessions import ProcessSessions
from app.protocol.wire.sdk_transports import SdkTransports
from app.protocol.wire.sessions import LOG_LEVEL, SESSION_HEADER, VirtualSessions, accepts_stream, at_endpoint
from app.services.access.credentials import Authenticator
from app.services.access.sessions import Session
from app.services.access.traffic import Traffic

ServesGroup = Callable[[Exchange], Awaitable[bool]]
"""Whether the group of the endpoint that a request came to is there for its caller."""

Initialized = Callable[[Caller, str, Mapping[str, Any]], Awaitable[None]]
"""Take note of the params of ``notifications/initialized`` in the session of that id."""

_LONGEST_CALL_S: Final = 3600.0
_ALLOW: Final = {"allow": "GET, POST, DELETE"}


class _Turn:
    """One HTTP request: the ASGI triple, whether its answer began, and the id that an error answers."""

    __slots__ = (
        "_send",
        "body",
        "facts",
        "headers",
        "info",
        "message",
        "message_id",
        "receive",
        "scope",
        "started",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send, deadline_s: float) -> None:
        fields = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        self.facts = facts_of(scope)
        self.scope = {**scope, "headers": fields}
        self.receive = receive
        self._send = send
        self.info = self.facts.info(asyncio.get_running_loop().time() + deadline_s)
        self.headers = Fields(fields)
        self.started = False
        self.body = b""
        self.message: dict[str, Any] = {}
        self.message_id: int | str | None = None

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        self.started = True
        await self._send(message)

    async def read(self) -> bool:
        """Take the message that the edge guard parsed, or parse it; False where the client went away."""
        if self.facts.body is not None:
            self.body = self.facts.body
            self.message = the_object(self.facts.json)
            return True
        body = await read_body(self.receive)
        if body is None:
            return False
        self.body = body
        self.message = parse_message(body)
        return True

    @property
    def method(self) -> Any:
        """Return the JSON-RPC method, if the message has one."""
        return self.message.get("method")

    @property
    def params(self) -> dict[str, Any]:
        """Return the params, empty where there are none."""
        return self.message.get("params") or {}


@dataclass(frozen=True, slots=True)
class Front:
    """Raw ASGI endpoint.

    ``counted`` are the methods that count against the tenant's rate by themselves, ``forwarded`` those that wait for
    servers behind this one; ``expect`` is told who calls a tool
    before the SDK looks at the call; ``serves_group`` says whether the group of an endpoint is there;
    ``initialized`` takes note of ``notifications/initialized``; ``alone`` are the methods at the endpoint of
    interceptors.
    """

    authenticator: Authenticator
    sessions: VirtualSessions
    process_sessions: ProcessSessions
    transports: SdkTransports
    direct: Direct
    running: Running
    security: TransportSecurityMiddleware
    deadline_s: float
    recheck_s: float
    counted: frozenset[str]
    forwarded: frozenset[str]
    expect: Callable[[Caller, RequestInfo], Awaitable[None]]
    serves_group: ServesGroup
    initialized: Initialized
    alone: frozenset[str]
    requests: Traffic = field(default_factory=Traffic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; every way out is an answer in JSON-RPC's form."""
        turn = _Turn(scope, receive, send, self.deadline_s)
        failure: ServiceError | RefusedError
        try:
            await self._serve(turn)
            return
        except InternalError as error:
            failure = internal_error(error, turn.info.request_id)
        except (ServiceError, RefusedError) as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - the last net before the wire
            failure = internal_error(error, turn.info.request_id)
        if isinstance(failure, RefusedError):
            turn.facts.error_code = failure.name
        else:
            turn.facts.fail(failure)
        if turn.started:  # too late for another answer: the server closes the connection
            return
        if isinstance(failure, RefusedError):
            await answer_refusal(turn.send, failure, turn.info.request_id, turn.message_id)
        else:
            await answer_failure(turn.send, failure, turn.info.request_id, turn.message_id)

    async def _serve(self, turn: _Turn) -> None:
        await self._check_edge(turn)
        caller = turn.facts.caller
        if caller is None:
            caller = await self.authenticator.acting(
                await self._caller(turn), turn.facts.end_users, turn.info
            )
        exchange = Exchange(caller, turn.info, self.sessions.service, turn.facts)
        turn.scope |= {SCOPE_KEY: exchange}
        turn.facts.admit(caller)
        if exchange.group is not None and not await self.serves_group(exchange):
            raise RefusedError(
                "There is no such group.", status=HTTPStatus.NOT_FOUND, name=NotFoundError.code
            )
        version = turn.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        modern = version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS
        if turn.scope["method"] == "POST":
            await self._post(turn, exchange, version, modern=modern)
        elif modern or turn.scope["method"] not in {"GET", "DELETE"}:
            allow = {"allow": "POST"} if modern else _ALLOW
            raise RefusedError(
                "This method is not served here.", status=HTTPStatus.METHOD_NOT_ALLOWED, headers=allow
            )
        else:
            await self.requests.count(caller.tenant)
            await self._session_request(turn, exchange)

    @asynccontextmanager
    async def _while_valid(self, turn: _Turn, exchange: Exchange) -> AsyncIterator[None]:
        """End the streams that the body opens once their key or token counts no more, or gives less than it did."""

        async def watch() -> None:
            key = bearer_of(turn.headers)
            await until_ended(self.authenticator, key, turn.facts, exchange.caller, self.recheck_s)
            self.sessions.notifications.end(owner=exchange)
            if exchange.process_session is not None:
                await self.process_sessions.end(exchange.process_session)

        turn.facts.ends_itself = True
        watcher = asyncio.create_task(watch())
        try:
            yield
        finally:
            watcher.cancel()

    async def _caller(self, turn: _Turn) -> Caller:
        return await self.authenticator.authenticate(bearer_of(turn.headers), turn.info.address)

    async def _check_edge(self, turn: _Turn) -> None:
        """Refuse foreign hosts and origins before anything else is looked at."""
        refusal = await self.security.validate_request(Request(turn.scope), is_post=False)
        if refusal is not None:
            raise RefusedError(bytes(refusal.body).decode() + ".", status=refusal.status_code)
        if turn.scope["method"] == "POST" and not _is_json(turn.headers):
            raise RefusedError(
                "Send the message as application/json.", status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE
            )

    async def _session_request(self, turn: _Turn, exchange: Exchange) -> None:
        session_id = turn.headers.get(SESSION_HEADER)
        if session_id is not None and self.transports.is_process_session(session_id):
            await self._find_session(exchange, session_id)
            await self._bound_request(turn, exchange)
        elif turn.scope["method"] == "DELETE":
            await self.sessions.end(exchange, session_id, turn.send)
        elif accepts_stream(turn.scope):
            async with self._while_valid(turn, exchange):
                await self.sessions.stream(exchange, session_id, turn.receive, turn.send)
        else:
            raise RefusedError(
                "This answer is an event stream; accept text/event-stream.",
                status=HTTPStatus.NOT_ACCEPTABLE,
            )

    async def _bound_request(self, turn: _Turn, exchange: Exchange) -> None:
        """Serve the stream of a process session, or its end."""
        process_session = exchange.process_session
        with nullcontext() if process_session is None else process_session.streaming():
            async with self._while_valid(turn, exchange):
                await self.transports.serve_process_session(
                    exchange.caller, turn.scope, turn.receive, turn.send
                )

    async def _post(self, turn: _Turn, exchange: Exchange, version: str | None, *, modern: bool) -> None:
        if not await turn.read():
            return
        turn.message_id = message_id(turn.message)
        answers_us = is_response(turn.message)
        check_modern_headers(turn.message, turn.headers, version)
        if exchange.facts.interceptors_only and turn.message_id is not None and not answers_us:
            self._check_alone(turn.method, modern=modern)
        if turn.method not in self.counted:
            await self.requests.count(exchange.caller.tenant)
        if turn.method in self.forwarded:
            # How long a server may take is its own setting; ours bounds what is done here.
            until = asyncio.get_running_loop().time() + _LONGEST_CALL_S
            exchange.info = replace(exchange.info, deadline=until)
        if modern:
            if self.process_sessions.carries_questions:
                _note_features(exchange, _declared(turn.params))
            if turn.method == "tools/call":
                await self.expect(exchange.caller, exchange.info)
            await self._dispatch(turn, exchange, turn.scope, logs=False)
        elif turn.method == "initialize":
            await self._initialize(turn, exchange)
        else:
            await self._handshake(turn, exchange, version, answers_us=answers_us)

    def _check_alone(self, method: Any, *, modern: bool) -> None:
        """Refuse what the endpoint of interceptors does not have."""
        if method not in self.alone:
            raise RefusedError(
                "There is no such method at this endpoint.",
                status=HTTPStatus.NOT_FOUND if modern else HTTPStatus.OK,
                code=METHOD_NOT_FOUND,
                name=NotFoundError.code,
            )

    async def _initialize(self, turn: _Turn, exchange: Exchange) -> None:
        if self.transports.opens_process_session(exchange.caller, turn.params.get("capabilities")):
            exchange.binds = self.transports.end_process_session
            receive = replayed(turn.body, turn.receive)
            await self.transports.serve_process_session(exchange.caller, turn.scope, receive, turn.send)
            return
        exchange.begins = True
        wanted = turn.params.get("protocolVersion")
        # The stateless SDK shapes the answer for the header's revision, which clients do not send yet.
        version = wanted if wanted in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        scope = with_headers(turn.scope, mcp_protocol_version=version)
        await self.transports.json(scope, turn.body, turn.receive, marked(turn.send, exchange))

    async def _handshake(
        self, turn: _Turn, exchange: Exchange, version: str | None, *, answers_us: bool
    ) -> None:
        session = await self._find_session(exchange, turn.headers.get(SESSION_HEADER))
        if turn.method == "notifications/initialized":
            await self.initialized(exchange.caller, session.id, turn.params)
        if exchange.process_session is not None:
            receive = replayed(turn.body, turn.receive)
            await self.transports.serve_process_session(exchange.caller, turn.scope, receive, turn.send)
            return
        if turn.method == "notifications/cancelled":
            cancelled = turn.params.get("requestId")
            if isinstance(cancelled, int | str):
                self.running.cancel(session.id, cancelled)
        if answers_us or turn.message_id is None:
            # Nothing was asked of this client, and no notification of it needs more than the above.
            await answer_empty(turn.send, HTTPStatus.ACCEPTED)
            return
        scope: Scope = turn.scope
        if version is None:
            turn.headers[MCP_PROTOCOL_VERSION_HEADER] = session.revision
            scope = with_headers(scope, mcp_protocol_version=session.revision)
        await self._dispatch(turn, exchange, scope, logs=LOG_LEVEL in session.preferences)

    async def _find_session(self, exchange: Exchange, session_id: str | None) -> Session:
        """Return the session of a request, the companion where it is bound, and note it in the exchange."""
        if session_id is not None and self.transports.is_process_session(session_id):
            exchange.process_session = self.process_sessions.find(exchange.caller, session_id)
            session_id = exchange.process_session.session_id
        try:
            session = await self.sessions.find(exchange.caller, session_id)
        except RefusedError:
            if exchange.process_session is not None:
                await self.process_sessions.end(exchange.process_session)
            raise
        exchange.session_id, exchange.session = at_endpoint(session, exchange).id, session
        if exchange.process_session is not None:
            _note_features(exchange, exchange.process_session.capabilities)
        return session

    async def _dispatch(self, turn: _Turn, exchange: Exchange, scope: Scope, *, logs: bool) -> None:
        streams = wants_stream(turn.params, logs=logs)
        send = marked(turn.send, exchange)
        if turn.method == "subscriptions/listen":
            async with self._while_valid(turn, exchange):
                await self.transports.stream(scope, turn.body, turn.receive, send)
        elif streams and accepts_stream(scope):
            await self.transports.stream(scope, turn.body, turn.receive, send)
        elif not await self.direct.serve(
            scope, turn.headers, turn.message, len(turn.body), turn.receive, send
        ):
            await self.transports.json(scope, turn.body, turn.receive, send)


def _declared(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the capabilities that a modern client declared with its request."""
    meta = params.get("_meta")
    declared = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    return declared if isinstance(declared, Mapping) else {}


def _note_features(exchange: Exchange, capabilities: Mapping[str, Any]) -> None:
    if capabilities:
        exchange.info = replace(exchange.info, features=client_features(capabilities))


def _is_json(headers: Fields) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" and "content-type" not in headers.repeated
