"""A connection to a server for one client alone: what the server requests there goes to that client."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from app.core.background import BackgroundTasks
from app.core.errors import DeadlineExceededError, ServiceError
from app.core.upstream import Authorization, Hooks, UpstreamError
from app.upstream.connection import Connection
from app.upstream.offers import CHANGES
from app.upstream.session_connections import refuse_request
from app.upstream.subscriptions import Subscriptions
from app.upstream.transport.options import ServerLink

_PASSED_ON: Final = frozenset(
    {"notifications/message", "notifications/progress", "notifications/elicitation/complete"}
)
_UPDATED: Final = "notifications/resources/updated"
_LONGEST_WAIT_FOR_CLIENT_S = 3600.0
"""How much longer a call may take while it waits for its client to answer the server's requests."""

_CLOSING_S = 5.0
_GUARDS = 4
"""How many ended calls still guard messages outside a request, which may be about an earlier call."""

log = logging.getLogger("sluice.upstreams")

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
Notify = Callable[[str, Mapping[str, Any]], Awaitable[None]]
Updated = Callable[[str, Mapping[str, Any]], None]
"""Called with the server and the params of ``notifications/resources/updated``."""


def drop_update(_server: str, _params: Mapping[str, Any]) -> None:
    """Drop an update: nobody follows resources on this connection."""


async def drop_notification(_method: str, _params: Mapping[str, Any]) -> None:
    """Drop a notification that belongs to no request: there is no stream for it."""


class _Call:
    """A request under way; its clock stops while its client answers the server."""

    def __init__(self, hooks: Hooks, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._waiting_requests = 0
        self._left_s = 0.0
        self.ask: Ask | None = None
        if hooks.ask is not None:
            self.ask = self._pausing(hooks.ask)
        self.hooks = replace(hooks, ask=self.ask)

    def _pausing(self, ask: Ask) -> Ask:
        async def ask_and_pause(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            loop = asyncio.get_running_loop()
            if not self._waiting_requests:
                self._left_s = (self._limit.when() or loop.time()) - loop.time()
                self._limit.reschedule(None)
            self._waiting_requests += 1
            try:
                return await ask(method, params)
            finally:
                self._waiting_requests -= 1
                if not self._waiting_requests and not self._limit.expired():
                    self._limit.reschedule(loop.time() + self._left_s)

        return ask_and_pause


class ClientConnection:
    """One connection of one client to one server; opened and closed by a task of its own.

    A message that the server sends outside a request goes to the call that began last, because some transports do
    not say which call it belongs to; where no call runs, it goes to ``ask`` and ``notify``. It may be about an earlier
    call, so the guards of the last few calls apply to it too.
    """

    def __init__(
        self,
        server: str,
        ask: Ask,
        notify: Notify,
        updated: Updated = drop_update,
    ) -> None:
        self.server = server
        self.lost: Callable[[], None] = _nothing
        """Called when the connection ends without having been closed."""

        self._updated = updated
        self._subscriptions = Subscriptions()
        self._changed: Callable[[], None] = _nothing
        self.has_asked = False
        """Whether a request of the server went to the client: the server may remember the answer."""

        self._ask_client = self._noting(ask)
        self._notify_client = notify
        self._calls: list[_Call] = []
        self._guards: deque[Callable[[Hooks], Hooks]] = deque(maxlen=_GUARDS)
        self._stop = asyncio.Event()
        self._notifying = BackgroundTasks()
        self._opened: asyncio.Future[ServerLink] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def start(
        self,
        connection: Connection,
        capabilities: Mapping[str, Any],
        authorization: Authorization | None = None,
    ) -> None:
        """Start to connect in the background, with the tokens of a user where the server takes those."""
        self._changed = connection.askable.suspect
        self._task = asyncio.create_task(
            self._own(connection, capabilities, authorization), name=f"client connection {self.server}"
        )

    async def opened(self) -> ServerLink:
        """Return the connection once it is open, or raise the error that kept it from opening."""
        return await asyncio.shield(self._opened)

    @property
    def ended(self) -> bool:
        """Return whether the connection can no longer be used."""
        return self._task is None or self._task.done() or self._stop.is_set()

    async def request(
        self, method: str, params: Mapping[str, Any] | None, hooks: Hooks, timeout_s: float
    ) -> dict[str, Any]:
        """Return the server's raw result."""
        link = await self.opened()
        if hooks.guard is not None:
            self._guards.append(hooks.guard)
        try:
            async with asyncio.timeout(timeout_s) as limit:
                ask = self._noting(hooks.ask) if hooks.ask is not None else None
                call = _Call(replace(hooks, ask=ask), limit)
                self._calls.append(call)
                try:
                    return await link.request(
                        method, params, hooks=call.hooks, timeout_s=timeout_s + _LONGEST_WAIT_FOR_CLIENT_S
                    )
                finally:
                    self._calls.remove(call)
        except TimeoutError:
            raise DeadlineExceededError(
                f"Server {self.server!r} did not answer within {timeout_s:g} seconds.",
                details={"server": self.server},
            ) from None

    async def follow(self, uri: str, timeout_s: float) -> None:
        """Follow updates of a resource by the server's own URI; raises the server's error where it refuses."""
        await self._subscriptions.add(await self.opened(), uri, timeout_s=timeout_s)

    async def unfollow(self, uri: str, timeout_s: float) -> None:
        """End one subscription."""
        link = self._opened.result() if self._is_open() else None
        await self._subscriptions.remove(link, uri, timeout_s=timeout_s)

    async def close(self) -> None:
        """Close the connection and wait until it is closed."""
        self.lost = _nothing
        self._stop.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=_CLOSING_S)
                self._task.cancel()
        await self._notifying.close()

    async def _own(
        self, connection: Connection, capabilities: Mapping[str, Any], authorization: Authorization | None
    ) -> None:
        try:
            async with connection.dedicated(
                capabilities,
                on_request=self._on_request,
                on_notification=self._on_notification,
                authorization=authorization,
            ) as link:
                self._opened.set_result(link)
                ends = [asyncio.create_task(end) for end in (self._stop.wait(), link.wait_closed())]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for end in ends:
                        end.cancel()
        except Exception as error:  # noqa: BLE001 - raised to whoever waits for the connection
            if not self._opened.done():
                self._opened.set_exception(error)
                self._opened.exception()  # nobody may be waiting any more
            else:
                log.info(
                    "a client's own connection to server %s ended: %s", self.server, type(error).__name__
                )
        finally:
            self._stop.set()
            if not self._opened.done():
                self._opened.cancel()
            self.lost()

    def _is_open(self) -> bool:
        opened = self._opened
        return not self.ended and opened.done() and not opened.cancelled() and opened.exception() is None

    async def _on_request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        hooks = next((call.hooks for call in reversed(self._calls) if call.ask is not None), None)
        ask = self._guarded(hooks or Hooks(ask=self._ask_client)).ask
        return await (ask or refuse_request)(method, params)

    def _noting(self, ask: Ask) -> Ask:
        async def ask_and_note(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            self.has_asked = True
            return await ask(method, params)

        return ask_and_note

    def _on_notification(self, method: str, params: Mapping[str, Any]) -> None:
        if method == _UPDATED:
            self._updated(self.server, params)
        elif method in CHANGES:
            self._changed()  # what all clients see is announced on the connection that they share
        if method not in _PASSED_ON:
            return
        hooks = self._calls[-1].hooks if self._calls else Hooks()
        send = (
            self._guarded(replace(hooks, notify=hooks.notify or self._notify_client)).notify
            or drop_notification
        )
        self._notifying.start(self._quietly(send(method, params)))

    def _guarded(self, hooks: Hooks) -> Hooks:
        """Return ``hooks`` behind the guards of all calls under way and of the last few."""
        passed = [hooks.guard]
        for guard in (*self._guards, *(call.hooks.guard for call in self._calls)):
            if guard is not None and guard not in passed:
                hooks = guard(hooks)
                passed.append(guard)
        return hooks

    async def _quietly(self, notification: Awaitable[None]) -> None:
        with suppress(ServiceError, UpstreamError):
            await notification


def _nothing() -> None:
    """Do nothing: nobody wants to know."""


async def close_all(links: Iterable[ClientConnection]) -> None:
    """Close all ``links`` concurrently."""
    await asyncio.gather(*(link.close() for link in links))
