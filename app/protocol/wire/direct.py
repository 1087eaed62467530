"""The short way for most methods: the SDK's kernel without its transports, answered as one JSON body.

Whatever is not plainly a good request is left to the SDK's own transport before anything was done, so the
answers are the same; a differential test holds the two side by side.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PARAM_HEADER_PREFIX,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundModernRoute,
    classify_inbound_request,
)
from mcp.shared.message import MessageMetadata, ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from app.core import strictjson
from app.core.offload import off_loop
from app.edge.departures import UntilDisconnect
from app.protocol.wire.exchange import SCOPE_KEY, Exchange, Fields

_USED_ONCE = frozenset({"accept", MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER})
TAKES_JSON = re.compile(r"(?:^|,)\s*application/json\s*(?:[;,]|$)")
_PARAM_PREFIX = MCP_PARAM_HEADER_PREFIX.lower()
_CALL = "tools/call"
_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


@dataclass(slots=True)
class _Dispatch:
    """The SDK's ``DispatchContext`` of one request that is answered with JSON: nothing else can be sent."""

    request_id: RequestId
    message_metadata: MessageMetadata
    transport: TransportContext = _TRANSPORT
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,  # noqa: ARG002 - the SDK's signature
        opts: CallOptions | None = None,  # noqa: ARG002 - as above
    ) -> dict[str, Any]:
        """Refuse: there is no way back to the client."""
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        """Drop a notification, as the SDK's JSON mode does."""

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Drop progress, as the SDK's JSON mode does."""


@dataclass(frozen=True, slots=True)
class Direct:
    """Serves ``methods`` of ``server``, which must be handlers that ask nothing of the client."""

    server: Server[Any]
    methods: frozenset[str]

    async def serve(
        self,
        scope: Scope,
        fields: Fields,
        message: dict[str, Any],
        size: int,
        receive: Receive,
        send: Send,
    ) -> bool:
        """Answer ``message`` of ``size`` bytes and return True, or return False with nothing done."""
        if message.get("method") not in self.methods or "id" not in message:
            return False
        version = _version(fields, message)
        if version is None or (
            message["method"] == _CALL and self._repeats_arguments(fields, message, version)
        ):
            return False
        with UntilDisconnect(receive):
            status, encoded = await self._answer(Request(scope), message, version, size)
            await send({"type": "http.response.start", "status": status, "headers": _json_headers(encoded)})
            await send({"type": "http.response.body", "body": encoded})
        return True

    def _repeats_arguments(self, fields: Fields, message: dict[str, Any], version: str) -> bool:
        """Return whether headers repeat a tool's arguments, or should: the SDK compares the two."""
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            return False
        name = (message.get("params") or {}).get("name")
        schema = self.server.get_tool_input_schema
        return any(field.startswith(_PARAM_PREFIX) for field in fields) or (
            schema is not None and isinstance(name, str) and schema(name) is not None
        )

    async def _answer(
        self, request: Request, message: dict[str, Any], version: str, size: int
    ) -> tuple[int, bytes]:
        dispatch = _Dispatch(message["id"], ServerMessageMetadata(request_context=request))
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            # Our handlers neither ask what the client can do nor leave anything to be closed behind them.
            connection = Connection(dispatch, protocol_version=version)
            connection.initialized.set()
            runner = ServerRunner(self.server, connection, {})
            answer["result"] = await runner.on_request(dispatch, message["method"], message.get("params"))
        except MCPError as error:
            return error_answer(error, message["id"], version)
        exchange: Exchange = request.scope[SCOPE_KEY]
        if exchange.encoded is not None:
            return 200, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (
                strictjson.dumps(message["id"]),
                exchange.encoded,
            )
        return 200, await off_loop(size, strictjson.dumps, answer)


def _json_headers(body: bytes) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer with this JSON."""
    return [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]


def error_answer(error: MCPError, message_id: RequestId, version: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error that a handler raised."""
    answer = {"jsonrpc": "2.0", "id": message_id, "error": error.error.model_dump(exclude_none=True)}
    modern = version not in HANDSHAKE_PROTOCOL_VERSIONS
    return (ERROR_CODE_HTTP_STATUS.get(error.code, 200) if modern else 200), strictjson.dumps(answer)


def _version(fields: Fields, message: dict[str, Any]) -> str | None:
    """Return the revision of a request that the SDK's transports would serve, None for every other."""
    if not _USED_ONCE.isdisjoint(fields.repeated) or not TAKES_JSON.search(fields.get("accept", "")):
        return None
    version = fields.get(MCP_PROTOCOL_VERSION_HEADER)
    if version in HANDSHAKE_PROTOCOL_VERSIONS:
        return version
    route = classify_inbound_request(message, headers=fields)
    return route.protocol_version if isinstance(route, InboundModernRoute) else None
