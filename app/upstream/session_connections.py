"""Connections that belong to one client session, so that a server's questions reach that client."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, Final

from app.core.background import ended
from app.core.errors import OverloadedError
from app.core.upstream import UpstreamError
from app.upstream.transport.options import ServerLink

_METHOD_NOT_FOUND: Final = -32601

log = logging.getLogger("sluice.upstream")


async def refuse_request(_method: str, _params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse a server's request: no client is behind this connection."""
    raise UpstreamError(_METHOD_NOT_FOUND, "There is no client that could answer this request.")


class LinkBudget:
    """Limits how many such connections a process keeps open, for all servers and tenants together."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.taken = 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one connection; raises OverloadedError where the budget is used up."""
        if self.taken >= self.maximum:
            raise OverloadedError(
                "Too many clients have connections of their own to servers; try again later.",
                details={"limit": "max_dedicated", "maximum": self.maximum},
                retry_after_s=1,
            )
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1


class OwnedLink:
    """A connection that its own task enters and leaves, so that its users may run in any task."""

    def __init__(self, opener: Callable[[], AbstractAsyncContextManager[ServerLink]]) -> None:
        self._opener = opener
        self._leave = asyncio.Event()
        self._link: asyncio.Future[ServerLink] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own())

    async def opened(self) -> ServerLink:
        """Return the connection, or raise the error that prevented it."""
        return await asyncio.shield(self._link)

    def leave(self) -> None:
        """Ask the owner task to close the connection."""
        self._leave.set()

    async def closed(self, *, timeout_s: float) -> None:
        """Close the connection, by force where it does not close in time."""
        self.leave()
        if not self._link.done():
            self._owner.cancel()
        await asyncio.wait({self._owner}, timeout=timeout_s)
        await ended(self._owner)

    async def _own(self) -> None:
        try:
            async with self._opener() as link:
                self._link.set_result(link)
                await self._leave.wait()
        except Exception as error:  # noqa: BLE001 - it is passed on to those who wait for the connection
            if self._link.done():
                log.info("a connection of one client ended with %s", type(error).__name__)
            else:
                self._link.set_exception(error)
                self._link.exception()  # mark it as retrieved: it is no fault that nobody waits
        finally:
            self._link.cancel()
