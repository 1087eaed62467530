"""Which session is this? Virtual sessions of handshake clients: a row in the database, so any replica serves them."""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from app.core import strictjson
from app.core.access import Caller
from app.core.errors import NotFoundError, ServiceError
from app.protocol.wire.answers import answer_empty
from app.protocol.wire.errors import RefusedError
from app.protocol.wire.exchange import Exchange
from app.protocol.wire.notifications import Notifications, StreamNotification
from app.protocol.wire.stream_views import session_view
from app.services.access.sessions import Session, SessionService
from app.services.forward.subscriptions import SubscriptionService

SESSION_HEADER: Final = "mcp-session-id"
LOG_LEVEL: Final = "logLevel"
ENDPOINT: Final = "endpoint"
"""Under which a session remembers the group at whose endpoint it began."""

_STREAM_HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
]
_CHECK_EVERY = 4


@dataclass(frozen=True, slots=True)
class VirtualSessions:
    """Begins, finds and ends sessions, and serves their notification stream."""

    service: SessionService
    notifications: Notifications
    ping_s: float
    subscriptions: SubscriptionService | None = None

    async def begin(self, caller: Caller, revision: str, remembered: Mapping[str, Any]) -> Session:
        """Return a new session that remembers ``remembered``."""
        return await self.service.start(caller, revision, remembered)

    async def find(self, caller: Caller, session_id: str | None) -> Session:
        """Return the caller's session or refuse: 400 where none is named, 404 where it is not (any more) theirs."""
        if session_id is None:
            raise RefusedError("The header Mcp-Session-Id is missing; begin with initialize.")
        try:
            session = await self.service.resume(caller, session_id)
        except NotFoundError:
            raise no_session() from None
        if session.revision not in HANDSHAKE_PROTOCOL_VERSIONS:  # a handle, which is no session by itself
            raise no_session()
        return session

    async def set_log_level(self, caller: Caller, session_id: str, level: Any) -> None:
        """Remember which logs the client wants, for the requests that other replicas serve."""
        await self.service.remember(caller, session_id, {LOG_LEVEL: level})

    async def end(self, exchange: Exchange, session_id: str | None, send: Send) -> None:
        """Answer DELETE."""
        session = at_endpoint(await self.find(exchange.caller, session_id), exchange)
        await self.service.end(exchange.caller, session.id)
        self.notifications.end(name=session.id)
        await answer_empty(send, HTTPStatus.NO_CONTENT)

    async def stream(self, exchange: Exchange, session_id: str | None, receive: Receive, send: Send) -> None:
        """Answer GET: server-sent events until the client leaves, the session ends or the process stops."""
        session = at_endpoint(await self.find(exchange.caller, session_id), exchange)
        tenant = exchange.caller.tenant
        async with session_view(self.subscriptions, exchange.caller, session.id, exchange.group) as view:
            with self.notifications.listen(tenant, owner=exchange, name=session.id, view=view) as events:
                await self._write_all(exchange.caller, session, events, receive, send)

    async def _write_all(
        self,
        caller: Caller,
        session: Session,
        events: MemoryObjectReceiveStream[StreamNotification],
        receive: Receive,
        send: Send,
    ) -> None:
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": _STREAM_HEADERS})
        await _write(send, b": open\r\n\r\n")
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_on_disconnect, receive, group.cancel_scope)
            silent = 0
            while silent < _CHECK_EVERY or await self.alive(caller, session.id):
                silent = silent % _CHECK_EVERY + 1
                with anyio.move_on_after(self.ping_s) as timer:
                    try:
                        event = await events.receive()
                    except anyio.EndOfStream:
                        break
                await _write(
                    send, b": ping\r\n\r\n" if timer.cancelled_caught else _event(event.method, event.params)
                )
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    async def alive(self, caller: Caller, session_id: str) -> bool:
        """Return whether the session still is, and note that it is in use."""
        try:
            await self.service.resume(caller, session_id)
        except NotFoundError:
            return False
        except ServiceError:
            return True  # the database is away: whether the session ended will be known when it is back
        return True


def at_endpoint(session: Session, exchange: Exchange) -> Session:
    """Return ``session``, or refuse it where it began at another endpoint than the request came to."""
    if session.preferences.get(ENDPOINT) != exchange.group:
        raise no_session()
    return session


def no_session() -> RefusedError:
    """Say that a session is unknown, expired or another caller's; the three look the same."""
    return RefusedError(
        "There is no such session; begin again with initialize.",
        status=HTTPStatus.NOT_FOUND,
        name=NotFoundError.code,
    )


def accepts_stream(scope: Scope) -> bool:
    """Return whether the client takes server-sent events."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept").lower()
    return any(kind in accepted for kind in (b"text/event-stream", b"text/*", b"*/*"))


def _event(method: str, params: Mapping[str, Any]) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params:
        message["params"] = dict(params)
    return b"event: message\r\ndata: " + strictjson.dumps(message) + b"\r\n\r\n"


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
