"""Which resources of a server somebody follows, told to the server once for all of them."""

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
        """Changes are told in the order in which they were made: the modern revision replaces the whole set."""

    async def add(self, link: ServerLink, uri: str, *, timeout_s: float) -> None:
        """Follow a resource; raises what the server or the connection says against it, and counts nothing then."""
        async with self._turn:
            if not self._counts[uri]:
                if link.modern:
                    await link.listen({*self._followed(), uri})
                else:
                    await link.request("resources/subscribe", {"uri": uri}, timeout_s=timeout_s)
            self._counts[uri] += 1

    async def remove(self, link: ServerLink | None, uri: str, *, timeout_s: float) -> None:
        """Follow a resource no longer; without a connection nothing is told, and a new one is not asked for it."""
        async with self._turn:
            if self._counts[uri] > 1:
                self._counts[uri] -= 1
                return
            known = self._counts.pop(uri, 0)
            if not known or link is None:
                return
            # The server may be gone or know nothing of it: nobody waits for its updates any more.
            with suppress(ServiceError, UpstreamError):
                if link.modern:
                    await link.listen(self._followed())
                else:
                    await link.request("resources/unsubscribe", {"uri": uri}, timeout_s=timeout_s)

    async def renew(self, link: ServerLink, *, timeout_s: float) -> None:
        """Tell a new connection everything that is followed; what the server refuses now stays counted."""
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
