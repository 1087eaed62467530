"""A pool of connections for single calls: each serves one call at a time, then idles for its owner's next call.

Many clients may share one key. So a connection over which a server asked its client anything ends with that call.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from app.core.background import BackgroundTasks
from app.core.errors import OverloadedError
from app.core.strictjson import dumps
from app.core.upstream import UpstreamError
from app.services.forward.client_connection import (
    ClientConnection,
    close_all,
    drop_notification,
    refuse_request,
)
from app.upstream.connection import Connection

_MAX_OPEN = 256
_MAX_OPEN_PER_OWNER = 32
_IDLE_S = 60.0
_RETRY_AFTER_S = 5.0

Owner = tuple[str, str]
"""Tenant and key."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Which calls a connection can serve; ``capabilities`` is the digest of the capabilities it declared."""

    owner: Owner
    server: str
    capabilities: str


@dataclass(eq=False, slots=True)
class ConnectionPool:
    """A pool with a limit in all and one for each owner; at a limit, the longest idle connection is closed."""

    idle_s: float = _IDLE_S
    most: int = _MAX_OPEN
    most_of_one: int = _MAX_OPEN_PER_OWNER
    _open: dict[ClientConnection, _Kind] = field(default_factory=dict)
    _idle: dict[ClientConnection, asyncio.TimerHandle] = field(default_factory=dict)
    _closing: BackgroundTasks = field(default_factory=BackgroundTasks)

    @asynccontextmanager
    async def taken(
        self, owner: Owner, connection: Connection, capabilities: Mapping[str, Any]
    ) -> AsyncIterator[ClientConnection]:
        """Lend a connection to this call alone while the body runs."""
        digest = hashlib.sha256(dumps(capabilities)).hexdigest()
        kind = _Kind(owner, connection.name, digest)
        link = self._take_idle(kind)
        if link is None:
            self._make_room(owner)
            link = ClientConnection(connection.name, refuse_request, drop_notification)
            link.start(connection, capabilities)
            self._open[link] = kind
        try:
            yield link
        except UpstreamError:
            self._release(link)  # the server answered, so it is done with the call
            raise
        except BaseException:
            # The server may still work on an abandoned call; its messages must not reach another call.
            self._drop(link)
            raise
        self._release(link)

    async def close(self) -> None:
        """Close all connections."""
        for timer in self._idle.values():
            timer.cancel()
        links = list(self._open)
        self._open.clear()
        self._idle.clear()
        await close_all(links)
        await self._closing.wait()

    def _take_idle(self, kind: _Kind) -> ClientConnection | None:
        for link in [idle for idle in self._idle if self._open[idle] == kind]:
            self._idle.pop(link).cancel()
            if not link.ended:
                return link
            self._drop(link)
        return None

    def _make_room(self, owner: Owner) -> None:
        mine = [link for link, kind in self._open.items() if kind.owner == owner]
        if len(mine) >= self.most_of_one:
            self._evict([link for link in self._idle if link in mine])
        elif len(self._open) >= self.most:
            self._evict(list(self._idle))

    def _evict(self, idle: list[ClientConnection]) -> None:
        if not idle:
            raise OverloadedError(
                "No more connections to servers can be opened now.", retry_after_s=_RETRY_AFTER_S
            )
        self._drop(idle[0])

    def _release(self, link: ClientConnection) -> None:
        if link not in self._open or link.ended or link.has_asked:
            # The server may remember an answer of this call's client, and the next call may be another client's.
            self._drop(link)
            return
        loop = asyncio.get_running_loop()
        self._idle[link] = loop.call_later(self.idle_s, self._drop, link)

    def _drop(self, link: ClientConnection) -> None:
        timer = self._idle.pop(link, None)
        if timer is not None:
            timer.cancel()
        self._open.pop(link, None)
        self._closing.start(link.close())
