"""A connection to a server that belongs to one client: what the server asks there is asked of that client."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from app.core.errors import DeadlineExceededError, ServiceError
from app.core.upstream import Hooks, UpstreamError
from app.upstream.connection import Connection
from app.upstream.transport.options import ServerLink

_TOLD: Final = frozenset(
    {"notifications/message", "notifications/progress", "notifications/elicitation/complete"}
)
_METHOD_NOT_FOUND: Final = -32601
_LONGEST_ASKING_S = 3600.0
"""What the time of a call may be extended by while its client is being asked."""

_CLOSING_S = 5.0
_GUARDS = 4
"""Of so many calls that a policy guards, what is said outside a request is still guarded when they are over."""

log = logging.getLogger("sluice.upstreams")

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
Tell = Callable[[str, Mapping[str, Any]], Awaitable[None]]


async def nobody(_method: str, _params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse: there is no client behind this."""
    raise UpstreamError(_METHOD_NOT_FOUND, "There is no client that could be asked this.")


async def unheard(_method: str, _params: Mapping[str, Any]) -> None:
    """Drop what belongs to no request: there is no stream for it."""


class _Call:
    """A request under way, whose time does not run while its client is being asked."""

    def __init__(self, hooks: Hooks, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._asking = 0
        self._left_s = 0.0
        self.ask: Ask | None = None
        if hooks.ask is not None:
            self.ask = self._pausing(hooks.ask)
        self.hooks = replace(hooks, ask=self.ask)

    def _pausing(self, ask: Ask) -> Ask:
        async def asked(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
            loop = asyncio.get_running_loop()
            if not self._asking:
                self._left_s = (self._limit.when() or loop.time()) - loop.time()
                self._limit.reschedule(None)
            self._asking += 1
            try:
                return await ask(method, params)
            finally:
                self._asking -= 1
                if not self._asking and not self._limit.expired():
                    self._limit.reschedule(loop.time() + self._left_s)

        return asked


class ClientConnection:
    """One connection of one client to one server; opened and closed by a task of its own.

    What the server says outside a request goes to the call that began last, as some transports do not say which
    one is meant, and where none runs to ``ask`` and ``tell``. It may be about an earlier call, so that it is held to
    what guards the last of those, too.
    """

    def __init__(self, server: str, ask: Ask, tell: Tell) -> None:
        self.server = server
        self._ask = ask
        self._tell = tell
        self._calls: list[_Call] = []
        self._guards: deque[Callable[[Hooks], Hooks]] = deque(maxlen=_GUARDS)
        self._stop = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()
        self._opened: asyncio.Future[ServerLink] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def start(self, connection: Connection, capabilities: Mapping[str, Any]) -> None:
        """Begin to connect."""
        self._task = asyncio.create_task(self._own(connection, capabilities), name=f"own link {self.server}")

    async def opened(self) -> ServerLink:
        """Return the connection once it is there, or raise why it is not."""
        return await asyncio.shield(self._opened)

    @property
    def ended(self) -> bool:
        """Return whether it can no longer be used."""
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
                call = _Call(hooks, limit)
                self._calls.append(call)
                try:
                    return await link.request(
                        method, params, hooks=call.hooks, timeout_s=timeout_s + _LONGEST_ASKING_S
                    )
                finally:
                    self._calls.remove(call)
        except TimeoutError:
            raise DeadlineExceededError(
                f"Server {self.server!r} did not answer within {timeout_s:g} seconds.",
                details={"server": self.server},
            ) from None

    async def close(self) -> None:
        """End it and wait until it has ended."""
        self._stop.set()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task], timeout=_CLOSING_S)
                self._task.cancel()

    async def _own(self, connection: Connection, capabilities: Mapping[str, Any]) -> None:
        try:
            async with connection.dedicated(
                capabilities, on_request=self._asked, on_notification=self._told
            ) as link:
                self._opened.set_result(link)
                ends = [asyncio.create_task(one) for one in (self._stop.wait(), link.wait_closed())]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for end in ends:
                        end.cancel()
        except Exception as error:  # noqa: BLE001 - goes to whoever waits for the link
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

    async def _asked(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        hooks = next((call.hooks for call in reversed(self._calls) if call.ask is not None), None)
        ask = self._guarded(hooks or Hooks(ask=self._ask)).ask
        return await (ask or nobody)(method, params)

    def _told(self, method: str, params: Mapping[str, Any]) -> None:
        if method not in _TOLD:
            return  # changes of lists and resources are heard on the connection that all share
        hooks = self._calls[-1].hooks if self._calls else Hooks()
        tell = self._guarded(replace(hooks, notify=hooks.notify or self._tell)).notify or unheard
        task = asyncio.create_task(self._quietly(tell(method, params)))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _guarded(self, hooks: Hooks) -> Hooks:
        """Return hooks that what guards any call under way, or one of the last, has looked at, too."""
        passed = [hooks.guard]
        for guard in (*self._guards, *(call.hooks.guard for call in self._calls)):
            if guard is not None and guard not in passed:
                hooks = guard(hooks)
                passed.append(guard)
        return hooks

    async def _quietly(self, telling: Awaitable[None]) -> None:
        with suppress(ServiceError, UpstreamError):
            await telling


async def together(links: Iterable[ClientConnection]) -> None:
    """Close ``links`` at once."""
    await asyncio.gather(*(link.close() for link in links))
