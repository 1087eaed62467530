"""Count the followers of a server's resources, and subscribe at the server once for all of them."""

import asyncio
from collections import Counter
from contextlib import suppress

from app.core.errors import ServiceError
from app.core.upstream import UpstreamError
from app.upstream.transport.options import ServerLink


class Subscriptions:
    """Counts followers by URI; the first one subscribes at the server and the last one ends that."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        """Keeps changes in order at the server: the modern revision replaces the whole set each time."""

    async def add(self, link: ServerLink, uri: str, *, timeout_s: float) -> None:
        """Follow a resource; where the server or the connection refuses, raises its error and counts nothing."""
        async with self._turn:
            if not self._counts[uri]:
                if link.modern:
                    await link.listen({*self._followed(), uri})
                else:
                    await link.request("resources/subscribe", {"uri": uri}, timeout_s=timeout_s)
            self._counts[uri] += 1

    async def remove(self, link: ServerLink | None, uri: str, *, timeout_s: float) -> None:
        """Stop following a resource; without a connection, only make sure that a new one does not subscribe again."""
        async with self._turn:
            if self._counts[uri] > 1:
                self._counts[uri] -= 1
                return
            count = self._counts.pop(uri, 0)
            if not count or link is None:
                return
            # A server that is gone or knows nothing of it does no harm: nobody waits for these updates any more.
            with suppress(ServiceError, UpstreamError):
                if link.modern:
                    await link.listen(self._followed())
                else:
                    await link.request("resources/unsubscribe", {"uri": uri}, timeout_s=timeout_s)

    async def renew(self, link: ServerLink, *, timeout_s: float) -> None:
        """Subscribe everything that is followed on a new connection; what the server refuses now stays counted."""
        async with self._turn:
            followed = self._followed()
            if link.modern:
                if followed:
                    await link.listen(followed)
                return
            for uri in followed:
                with suppress(UpstreamError):
                    await link.request("resources/subscribe", {"uri": uri}, timeout_s=timeout_s)

    def _followed(self) -> list[str]:
        return sorted(uri for uri, count in self._counts.items() if count)
