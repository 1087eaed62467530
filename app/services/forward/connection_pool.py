"""A pool of connections for single calls: each serves one call at a time, then idles for its owner's next call.

Many clients may share one key. So a connection over which a server asked its client anything ends with that call.
A connection on which streams of its owner follow resources stays open for them, and is the first to carry calls: a
server with sessions reports there what those calls change.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.core.background import BackgroundTasks
from app.core.errors import OverloadedError, ServiceError
from app.core.strictjson import dumps
from app.core.upstream import Authorization, UpstreamError
from app.services.forward.client_connection import (
    ClientConnection,
    Updated,
    close_all,
    drop_notification,
    drop_update,
)
from app.upstream.connection import Connection
from app.upstream.session_connections import refuse_request

_MAX_OPEN = 256
_MAX_OPEN_PER_OWNER = 32
_IDLE_S = 60.0
_RETRY_AFTER_S = 5.0
_REOPEN_S = 1.0

Owner = tuple[str, str]
"""Tenant and key."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Which calls a connection can serve; ``capabilities`` is the digest of the capabilities it declared.

    ``identity`` is that of the user's tokens that it sends, None where it sends none.
    """

    owner: Owner
    server: str
    capabilities: str
    identity: Hashable = None


@dataclass(eq=False, slots=True)
class _Followed:
    """What streams follow over the connections of one kind; ``carrier`` is the connection that is subscribed."""

    connection: Connection
    capabilities: Mapping[str, Any]
    updated: Updated
    carrier: ClientConnection | None = None
    uris: Counter[str] = field(default_factory=Counter)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(eq=False, slots=True)
class ConnectionPool:
    """A pool with a limit in all and one for each owner; at a limit, the longest idle connection is closed."""

    idle_s: float = _IDLE_S
    most: int = _MAX_OPEN
    most_of_one: int = _MAX_OPEN_PER_OWNER
    reopen_s: float = _REOPEN_S
    _open: dict[ClientConnection, _Kind] = field(default_factory=dict)
    _idle: dict[ClientConnection, asyncio.TimerHandle | None] = field(default_factory=dict)
    _followed: dict[_Kind, _Followed] = field(default_factory=dict)
    _closing: BackgroundTasks = field(default_factory=BackgroundTasks)
    _reopening: BackgroundTasks = field(default_factory=BackgroundTasks)

    @asynccontextmanager
    async def taken(
        self,
        owner: Owner,
        connection: Connection,
        capabilities: Mapping[str, Any],
        authorization: Authorization | None = None,
    ) -> AsyncIterator[ClientConnection]:
        """Lend a connection to this call alone while the body runs; one with a user's tokens to that user alone."""
        identity = authorization.identity if authorization is not None else None
        kind = _Kind(owner, connection.name, digest_of(capabilities), identity)
        link = self._take_idle(kind) or self._opened(
            kind, connection, capabilities, authorization=authorization
        )
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

    async def follow(
        self,
        owner: Owner,
        connection: Connection,
        capabilities: Mapping[str, Any],
        uri: str,
        updated: Updated,
    ) -> None:
        """Follow a resource for a stream of this owner; raises the server's error where it refuses."""
        kind = _Kind(owner, connection.name, digest_of(capabilities))
        followed = self._followed.setdefault(kind, _Followed(connection, capabilities, updated))
        followed.uris[uri] += 1
        try:
            async with followed.turn:
                if followed.carrier is None:
                    await self._carry(kind, followed)
                elif followed.uris[uri] == 1:
                    await followed.carrier.follow(uri, connection.settings.timeout_s)
        except BaseException:
            self._uncount(kind, followed, uri)
            raise

    async def unfollow(self, owner: Owner, server: str, capabilities: Mapping[str, Any], uri: str) -> None:
        """End what one ``follow`` began."""
        kind = _Kind(owner, server, digest_of(capabilities))
        followed = self._followed.get(kind)
        if followed is None:
            return
        self._uncount(kind, followed, uri)
        async with followed.turn:
            if followed.carrier is not None and uri not in followed.uris:
                await followed.carrier.unfollow(uri, followed.connection.settings.timeout_s)

    async def close(self) -> None:
        """Close all connections."""
        self._followed.clear()
        await self._reopening.close()
        for timer in self._idle.values():
            if timer is not None:
                timer.cancel()
        links = list(self._open)
        self._open.clear()
        self._idle.clear()
        await close_all(links)
        await self._closing.wait()

    async def _carry(self, kind: _Kind, followed: _Followed) -> None:
        """Open the connection of a kind that is subscribed to all that its streams follow."""
        link = self._opened(kind, followed.connection, followed.capabilities, followed.updated)
        try:
            for uri in list(followed.uris):
                await link.follow(uri, followed.connection.settings.timeout_s)
        except BaseException:
            self._drop(link)
            raise
        followed.carrier = link
        self._release(link)

    async def _carry_again(self, kind: _Kind, followed: _Followed) -> None:
        while self._followed.get(kind) is followed and followed.carrier is None:
            await asyncio.sleep(self.reopen_s)
            with suppress(ServiceError, UpstreamError):
                async with followed.turn:
                    if followed.carrier is None and followed.uris:
                        await self._carry(kind, followed)

    def _uncount(self, kind: _Kind, followed: _Followed, uri: str) -> None:
        followed.uris[uri] -= 1
        if not followed.uris[uri]:
            del followed.uris[uri]
        if followed.uris or self._followed.get(kind) is not followed:
            return
        del self._followed[kind]
        carrier = followed.carrier
        if carrier in self._idle:
            del self._idle[carrier]
            self._release(carrier)  # it idles from now on like any other

    def _opened(
        self,
        kind: _Kind,
        connection: Connection,
        capabilities: Mapping[str, Any],
        updated: Updated = drop_update,
        authorization: Authorization | None = None,
    ) -> ClientConnection:
        self._make_room(kind.owner)
        link = ClientConnection(connection.name, refuse_request, drop_notification, updated)
        link.lost = partial(self._drop, link)
        link.start(connection, capabilities, authorization)
        self._open[link] = kind
        return link

    def _take_idle(self, kind: _Kind) -> ClientConnection | None:
        idle = [link for link in self._idle if self._open[link] == kind]
        for link in sorted(idle, key=lambda link: not self._carries(link)):
            timer = self._idle.pop(link)
            if timer is not None:
                timer.cancel()
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
        spare = [link for link in idle if not self._carries(link)]
        if not spare:
            raise OverloadedError(
                "No more connections to servers can be opened now.", retry_after_s=_RETRY_AFTER_S
            )
        self._drop(spare[0])

    def _carries(self, link: ClientConnection) -> bool:
        followed = self._followed.get(self._open[link])
        return followed is not None and followed.carrier is link

    def _release(self, link: ClientConnection) -> None:
        if link not in self._open or link.ended or link.has_asked:
            # The server may remember an answer of this call's client, and the next call may be another client's.
            self._drop(link)
        elif self._carries(link):
            self._idle[link] = None
        else:
            self._idle[link] = asyncio.get_running_loop().call_later(self.idle_s, self._drop, link)

    def _drop(self, link: ClientConnection) -> None:
        timer = self._idle.pop(link, None)
        if timer is not None:
            timer.cancel()
        kind = self._open.pop(link, None)
        followed = self._followed.get(kind) if kind is not None else None
        if kind is not None and followed is not None and followed.carrier is link:
            followed.carrier = None
            self._reopening.start(self._carry_again(kind, followed))
        self._closing.start(link.close())


def digest_of(capabilities: Mapping[str, Any]) -> str:
    """Return what identifies equal capabilities."""
    return hashlib.sha256(dumps(capabilities)).hexdigest()
