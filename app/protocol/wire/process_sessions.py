"""The sessions that are bound to this process: they begin, pass notifications on and end."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio

from app.core.access import Caller
from app.core.errors import NotFoundError, OverloadedError, ServiceError
from app.core.upstream import UpstreamError
from app.protocol.wire.exchange import Context, exchange_of
from app.protocol.wire.process_session import EndSession, ProcessSession
from app.protocol.wire.sessions import VirtualSessions, no_session
from app.protocol.wire.stream_views import session_view
from app.services.forward.client_connections import ClientConnections

_PER_TENANT = 512

log = logging.getLogger("sluice.sessions")


class ProcessSessions:
    """The process sessions by the SDK's id."""

    def __init__(
        self, virtual: VirtualSessions, dedicated: ClientConnections | None = None, *, check_s: float
    ) -> None:
        self._virtual = virtual
        self._check_s = check_s
        self._dedicated = dedicated
        self._by_id: dict[str, ProcessSession] = {}
        self._relays: dict[str, asyncio.Task[None]] = {}

    def find(self, caller: Caller, sdk_id: str) -> ProcessSession:
        """Return the caller's session or refuse: unknown, ended and another caller's look the same."""
        session = self._by_id.get(sdk_id)
        if session is None or _owner(session.caller) != _owner(caller):
            raise no_session()
        return session

    @property
    def carries_questions(self) -> bool:
        """Return whether servers of the handshake revision can ask clients of this process at all."""
        return self._dedicated is not None

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self._by_id)

    async def begin(
        self, context: Context, revision: str, remembered: Mapping[str, Any], end_of_sdk: EndSession
    ) -> None:
        """Give the SDK's session that ``initialize`` just began its companion; it ends with it."""
        exchange = exchange_of(context)
        caller = exchange.caller
        if sum(session.caller.tenant == caller.tenant for session in self._by_id.values()) >= _PER_TENANT:
            raise OverloadedError("This process serves no more sessions of this kind now.", retry_after_s=5.0)
        # The SDK offers its connection, which knows the session's id and its end, to nobody but itself.
        connection = context.session._connection  # noqa: SLF001
        session = await self._virtual.begin(caller, revision, remembered)
        params = context.params or {}
        process_session = ProcessSession(
            id=str(connection.session_id),
            caller=caller,
            session_id=session.id,
            session=context.session,
            capabilities=params.get("capabilities") or {},
            group=exchange.group,
            end_of_sdk=end_of_sdk,
            dedicated=self._dedicated,
        )
        self._by_id[process_session.id] = process_session
        exchange.session_id, exchange.session, exchange.process_session = session.id, session, process_session
        connection.exit_stack.push_async_callback(self._ended, process_session)
        relay = asyncio.create_task(self._relay(process_session), name="process session")
        self._relays[process_session.id] = relay

    async def end(self, process_session: ProcessSession) -> None:
        """End the session from this side, the SDK's too; the rest follows from that."""
        await process_session.end_of_sdk(process_session.caller, process_session.id)
        if process_session.id in self._by_id:
            await self._ended(process_session)

    async def _relay(self, process_session: ProcessSession) -> None:
        """Pass notifications on to the session's stream, and end the session once its row is gone."""
        try:
            async with session_view(
                self._virtual.subscriptions,
                process_session.caller,
                process_session.session_id,
                process_session.group,
                process_session.links,
            ) as view:
                with self._virtual.notifications.listen(
                    process_session.caller.tenant, name=process_session.session_id, view=view, counted=False
                ) as events:
                    await self._pass_on(process_session, events)
        except ServiceError as error:
            log.info("a session bound to this process ends: %s", error.code)
        self._relays.pop(process_session.id, None)
        await self.end(process_session)

    async def _pass_on(self, process_session: ProcessSession, events: Any) -> None:
        while True:
            with anyio.move_on_after(self._check_s) as timer:
                try:
                    event = await events.receive()
                except anyio.EndOfStream:
                    return
                await process_session.tell(event.method, event.params)
            idle = timer.cancelled_caught and process_session.streams > 0
            if idle and not await self._virtual.alive(process_session.caller, process_session.session_id):
                return

    async def _ended(self, process_session: ProcessSession) -> None:
        if self._by_id.pop(process_session.id, None) is None:
            return
        relay = self._relays.pop(process_session.id, None)
        if relay is not None:
            relay.cancel()
        if process_session.links is not None:
            await process_session.links.close()
        with suppress(NotFoundError, ServiceError):
            await self._virtual.service.end(process_session.caller, process_session.session_id)


def _owner(caller: Caller) -> tuple[str, str, str | None]:
    return caller.tenant, caller.key_id, caller.end_user


async def roots_changed(context: Context, _params: Any) -> None:
    """Pass the client's ``notifications/roots/list_changed`` on to the servers it talks to."""
    process_session = exchange_of(context).process_session
    if process_session is not None and process_session.links is not None:
        with suppress(ServiceError, UpstreamError):
            await process_session.links.notify("notifications/roots/list_changed", {})
