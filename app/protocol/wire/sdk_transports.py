"""The three ways in which the SDK can serve a request."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.access import Caller
from app.edge.bodies import replayed

_PROCESS_SESSION: Final = re.compile(r"[0-9a-f]{32}")
_CALLBACKS: Final = frozenset({"sampling", "elicitation", "roots"})

CallsBack = Callable[[str], bool]
"""Whether anything that a tenant uses may send requests to its clients."""


class SdkTransports:
    """Stateless JSON for most requests, stateless SSE where progress or logs are wanted, process sessions.

    A process session is one of the SDK's own: it lives in this process, and its id (32 hexadecimal digits, unlike
    a virtual session's) is unknown to every other. It exists only where ``calls_back`` says that handlers
    send requests to the clients of a tenant; ``idle_s`` after its last request it ends.
    """

    def __init__(
        self, server: Server[Any], *, calls_back: CallsBack, max_body_bytes: int, idle_s: float
    ) -> None:
        self.server = server
        self._calls_back = calls_back
        self._json = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=max_body_bytes
        )
        self._stream = StreamableHTTPSessionManager(
            server, stateless=True, max_request_body_size=max_body_bytes
        )
        self._of_process = StreamableHTTPSessionManager(
            server, max_request_body_size=max_body_bytes, session_idle_timeout=idle_s
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Hold the SDK's task groups open; once per process."""
        async with AsyncExitStack() as stack:
            for manager in (self._json, self._stream, self._of_process):
                await stack.enter_async_context(manager.run())
            yield

    def opens_process_session(self, caller: Caller, capabilities: Any) -> bool:
        """Return whether a handshake client with these capabilities needs a process session."""
        asks = isinstance(capabilities, dict) and not _CALLBACKS.isdisjoint(capabilities)
        return asks and self._calls_back(caller.tenant)

    def is_process_session(self, session_id: str) -> bool:
        """Return whether ``session_id`` has the form of a process session."""
        return _PROCESS_SESSION.fullmatch(session_id) is not None

    async def serve_process_session(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of a process session; the SDK answers 404 where it is another caller's or gone."""
        token = AccessToken(token="", client_id=f"{caller.tenant}/{caller.key_id}", scopes=[])
        await self._of_process.asgi_app({**scope, "user": AuthenticatedUser(token)}, receive, send)

    async def end_process_session(self, caller: Caller, session_id: str) -> None:
        """End a process session from this side: with the request by which its client would."""
        headers = [(b"mcp-session-id", session_id.encode()), (b"accept", b"application/json")]
        scope = {"type": "http", "method": "DELETE", "path": "/", "query_string": b"", "headers": headers}

        async def nothing() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def unread(_message: Any) -> None:
            """Nobody waits for this answer."""

        await self.serve_process_session(caller, scope, nothing, unread)

    async def json(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve one request with one JSON answer; a client that leaves cancels the work."""
        await _until_disconnect(self._json.asgi_app, scope, body, receive, send)

    async def stream(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Serve one request with an event stream; the SDK watches for the client's leaving itself."""
        await self._stream.asgi_app(scope, replayed(body, receive), send)


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
            await app(scope, replayed(body, never), send)
        except Exception as error:  # noqa: BLE001 - raised again below, without the group around it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
