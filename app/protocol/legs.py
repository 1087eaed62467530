"""The three ways in which the SDK can serve a request, and which one a request needs."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import LOG_LEVEL_META_KEY
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.access import Caller
from app.protocol.exchange import replay

_BOUND_SESSION: Final = re.compile(r"[0-9a-f]{32}")
_CALLBACKS: Final = frozenset({"sampling", "elicitation", "roots"})


class Legs:
    """Stateless JSON for most requests, stateless SSE where progress or logs are wanted, bound sessions.

    A bound session is one of the SDK's own: it lives in this process, and its id (32 hexadecimal digits, unlike
    a virtual session's) is unknown to every other. It exists only where ``calls_back`` says that handlers
    send requests to clients.
    """

    def __init__(self, server: Server[Any], *, calls_back: bool, max_body_bytes: int) -> None:
        self.server = server
        self._calls_back = calls_back
        self._json = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=max_body_bytes
        )
        self._stream = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=max_body_bytes
        )
        self._bound = StreamableHTTPSessionManager(server, max_request_body_size=max_body_bytes)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Hold the SDK's task groups open; once per process."""
        async with AsyncExitStack() as stack:
            for manager in (self._json, self._stream, self._bound):
                await stack.enter_async_context(manager.run())
            yield

    def opens_bound(self, capabilities: Any) -> bool:
        """Return whether a handshake client with these capabilities needs a session bound to this process."""
        return self._calls_back and isinstance(capabilities, dict) and not _CALLBACKS.isdisjoint(capabilities)

    def is_bound(self, session_id: str) -> bool:
        """Return whether ``session_id`` has the form of a bound session."""
        return self._calls_back and _BOUND_SESSION.fullmatch(session_id) is not None

    async def bound(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of a bound session; the SDK answers 404 where it is another caller's or gone."""
        token = AccessToken(token="", client_id=f"{caller.tenant}/{caller.key_id}", scopes=[])
        await self._bound.asgi_app({**scope, "user": AuthenticatedUser(token)}, receive, send)

    async def json(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve one request with one JSON answer; a client that leaves cancels the work."""
        await _until_disconnect(self._json.asgi_app, scope, body, receive, send)

    async def stream(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve one request with an event stream; the SDK watches for the client's leaving itself."""
        await self._stream.asgi_app(scope, replay(body, receive), send)


def wants_stream(params: Any, *, logs: bool) -> bool:
    """Return whether a request asks for notifications: progress, or logs (``logs``: its session does)."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, Mapping):
        return logs
    return logs or "progressToken" in meta or LOG_LEVEL_META_KEY in meta


async def _until_disconnect(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
    failure: Exception | None = None

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        group.cancel_scope.cancel()

    async def never() -> Any:
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        try:
            await app(scope, replay(body, never), send)
        except Exception as error:  # noqa: BLE001 - raised again below, without the group around it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
