"""The short way of ``middleware/invoke``: an ordinary call goes from the guard straight to the use case.

What is ordinary stands in ``_call_of``: one request, answered with one JSON body, whose head and envelope are exactly
as the protocol has them. Everything else takes the general way, before anything was done, so that faults of a request
are answered in one place; a differential test holds the two ways side by side.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.access import Caller
from app.core.client_features import NO_FEATURES, ClientFeatures, client_features
from app.core.errors import InternalError, NotFoundError, ServiceError
from app.core.offload import off_loop
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.edge.departures import UntilDisconnect
from app.edge.facts import MCP_PATH, RequestFacts, facts_of
from app.protocol.methods.middleware import INVOKE, unknown_name
from app.protocol.methods.tool_lists import TOOL_FILTER
from app.protocol.wire.answers import marked
from app.protocol.wire.direct import TAKES_JSON, error_answer
from app.protocol.wire.errors import as_mcp_error, internal_error
from app.protocol.wire.exchange import Exchange
from app.protocol.wire.guards import Running, cancelled_by_client
from app.protocol.wire.sessions import ENDPOINT, LOG_LEVEL
from app.services.access.sessions import SESSION_ID, SessionService
from app.services.invoke.invoke import InvokeService
from app.services.invoke.outcomes import InvokeAnswer

_MESSAGE: Final = frozenset({"jsonrpc", "id", "method", "params"})
_PARAMS: Final = frozenset({"name", "arguments", "context", "_meta"})
_META: Final = frozenset({PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY})
_NEEDED_META: Final = _META - {CLIENT_INFO_META_KEY}
_VERSION: Final = b"mcp-protocol-version"
_METHOD: Final = b"mcp-method"
_NAME: Final = b"mcp-name"
_SESSION: Final = b"mcp-session-id"
_READ: Final = frozenset({b"host", b"origin", b"accept", b"content-type", _VERSION, _METHOD, _NAME, _SESSION})
_ID_KINDS: Final = frozenset({int, str})
_MODERN: Final = {version.encode(): version for version in MODERN_PROTOCOL_VERSIONS}
_HANDSHAKE: Final = {version.encode(): version for version in HANDSHAKE_PROTOCOL_VERSIONS}


@dataclass(slots=True)
class _Call:
    """One call, and how it is answered; ``session_id`` is what a handshake client sent, None in the other revision."""

    caller: Caller
    id: int | str
    version: str
    name: str
    arguments: dict[str, Any]
    context: list[Any]
    features: ClientFeatures = NO_FEATURES
    session_id: str | None = None


@dataclass(frozen=True, slots=True)
class OrdinaryInvoke:
    """Raw ASGI endpoint; what is no ordinary call goes to ``general``.

    ``hosts`` are names with and without ports, as the transport's own check has them. ``asked`` says whether servers
    may list more to a client that declared features. ``stamp`` is the JSON of what every result of the modern revision
    says of this server.
    """

    general: ASGIApp
    invoke: InvokeService
    sessions: SessionService
    running: Running
    hosts: frozenset[str]
    deadline_s: float
    stamp: bytes
    asked: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request to an MCP endpoint."""
        facts = facts_of(scope)
        call = self._call_of(scope, facts)
        if call is None or not await self._has_plain_session(call):
            await self.general(scope, receive, send)
            return
        info = facts.info(asyncio.get_running_loop().time() + self.deadline_s)
        if call.features:
            info = replace(info, features=call.features)
        failed: Exchange | None = None
        until = UntilDisconnect(receive)
        status, body = 200, b""
        if call.session_id is not None:
            self.running.begin(call.session_id, call.id, until)
        try:
            with until:
                answer = await self.invoke.invoke(call.caller, call.name, call.arguments, call.context, info)
                facts.middleware = call.name
                body = await self._result(call, answer, facts.bytes_in)
        except ServiceError as error:
            failed = self._exchange(call, info, facts)
            status, body = _failure(call, failed, error)
        finally:
            if call.session_id is not None:
                self.running.end(call.session_id, call.id, until)
        if until.cancelled and not body:
            cancelled = cancelled_by_client(self._exchange(call, info, facts))
            status, body = error_answer(cancelled, call.id, call.version)
        elif until.left and not body:
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if failed is not None:
            send = marked(send, failed)
        elif call.session_id is not None:
            headers.append((_SESSION, call.session_id.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _exchange(self, call: _Call, info: RequestInfo, facts: RequestFacts) -> Exchange:
        return Exchange(call.caller, info, self.sessions, facts, session_id=call.session_id)

    def _call_of(self, scope: Scope, facts: RequestFacts) -> _Call | None:
        """Return the call that an ordinary request asks for, None for every other request."""
        message, caller = facts.json, facts.caller
        if (
            caller is None
            or type(message) is not dict
            or message.keys() != _MESSAGE
            or message["method"] != INVOKE
            or message["jsonrpc"] != "2.0"
            or type(message["id"]) not in _ID_KINDS
            or facts.path != MCP_PATH
            or scope["method"] != "POST"
        ):
            return None
        call, headers = _named(caller, message), _headers(scope["headers"])
        if call is None or headers is None or not self._plain(headers, call.name):
            return None
        version, meta = headers.get(_VERSION, b""), message["params"].get("_meta")
        if version in _HANDSHAKE and meta is None and _SESSION in headers:
            call.version = _HANDSHAKE[version]
            call.session_id = headers[_SESSION].decode("latin-1")
            return call if SESSION_ID.fullmatch(call.session_id) else None
        if version in _MODERN and headers.get(_METHOD) == INVOKE.encode() and _is_plain_meta(meta):
            call.version = _MODERN[version]
            capabilities = meta[CLIENT_CAPABILITIES_META_KEY]
            if self.asked and isinstance(capabilities, Mapping) and capabilities:
                call.features = client_features(capabilities)
            return call if meta[PROTOCOL_VERSION_META_KEY] == call.version else None
        return None

    def _plain(self, headers: Mapping[bytes, bytes], name: str) -> bool:
        """Return whether nothing about the head needs a second look."""
        return (
            headers.get(b"content-type") == b"application/json"
            and b"origin" not in headers
            and self._serves(headers.get(b"host", b"").decode("latin-1"))
            and _takes_json(headers.get(b"accept", b""))
            and headers.get(_NAME, name.encode()) == name.encode()
        )

    def _serves(self, host: str) -> bool:
        return host in self.hosts or f"{host.rpartition(':')[0]}:*" in self.hosts

    async def _has_plain_session(self, call: _Call) -> bool:
        """Return whether a call needs no session, or has one of its caller that wants no more than the answer."""
        if call.session_id is None:
            return True
        try:
            session = await self.sessions.resume(call.caller, call.session_id)
        except ServiceError:
            return False
        # A handle is stored as a session of another revision.
        is_session = session.revision in HANDSHAKE_PROTOCOL_VERSIONS
        return is_session and session.preferences.keys().isdisjoint({LOG_LEVEL, ENDPOINT})

    async def _result(self, call: _Call, answer: InvokeAnswer, size: int) -> bytes:
        content = answer.encoded or await off_loop(size, dumps, answer.content)
        parts = [b'{"jsonrpc":"2.0","id":', dumps(call.id), b',"result":{']
        modern = call.session_id is None
        parts += [b'"resultType":"complete",' if modern else b"", b'"content":', content]
        if answer.metadata:
            parts += [b',"metadata":', await off_loop(size, dumps, answer.metadata)]
        parts += [b',"_meta":' + self.stamp if modern else b"", b"}}"]
        return b"".join(parts)


def _named(caller: Caller, message: Mapping[str, Any]) -> _Call | None:
    params = message["params"]
    if type(params) is not dict or not params.keys() <= _PARAMS:
        return None
    name, arguments, context = params.get("name"), params.get("arguments"), params.get("context")
    if type(name) is not str or type(context) is not list or name == TOOL_FILTER or not name.isascii():
        return None
    if arguments is not None and type(arguments) is not dict:
        return None
    return _Call(caller, message["id"], "", name, arguments or {}, context)


def _headers(fields: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes] | None:
    """Return the headers that matter here, None where one of them came twice."""
    headers = dict(fields)
    if len(headers) == len(fields):
        return headers
    headers = {}
    for name, value in fields:
        if name in _READ:
            if name in headers:
                return None
            headers[name] = value
    return headers


def _is_plain_meta(meta: Any) -> bool:
    return type(meta) is dict and _NEEDED_META <= meta.keys() <= _META


@lru_cache(256)
def _takes_json(accept: bytes) -> bool:
    return TAKES_JSON.search(accept.decode("latin-1").strip(" \t")) is not None


def _failure(call: _Call, exchange: Exchange, error: ServiceError) -> tuple[int, bytes]:
    """Return the status and the body of a failed call, as the general way has them."""
    request_id = exchange.info.request_id
    failure = error
    if isinstance(error, NotFoundError):
        failure = unknown_name(error)
    elif isinstance(error, InternalError):
        failure = internal_error(error, request_id)
    exchange.failure = failure
    exchange.facts.fail(failure)
    return error_answer(as_mcp_error(failure, request_id), call.id, call.version)
