"""Find what a server lists only to clients that it can ask for sampling, elicitation or roots."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, Final, Protocol

from app.core.background import BackgroundTasks
from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.client_features import ALL_FEATURES, ROOTS, ClientFeatures, declared_capabilities
from app.core.upstream import Hooks
from app.upstream.offers import declared, listed
from app.upstream.session_connections import refuse_request
from app.upstream.transport.options import RequestSink, ServerLink

RETRY_S: Final = 30.0
"""Pause after such a listing failed: the server may accept only one connection."""

CALM_S: Final = 5.0
"""Shortest time between two listings of the same kind, so that constant announcements cost little."""

log = logging.getLogger("sluice.upstream")

_Name = tuple[PrimitiveKind, str]


class Dedicated(Protocol):
    """Opens a connection to the server beside the shared one."""

    def __call__(
        self,
        capabilities: Mapping[str, Any],
        *,
        on_notification: Callable[[str, Mapping[str, Any]], None],
        on_request: RequestSink | None = None,
    ) -> AbstractAsyncContextManager[ServerLink]:
        """Open one that declares these capabilities, while the body runs."""


def _ignore(_method: str, _params: Mapping[str, Any]) -> None:
    """Ignore a notification: the connection is closed after the listing."""


class AskableOffers:
    """Lists a server as clients with certain features do, over short connections, once a client has them.

    The first such listing declares all features; what it adds to the list for everyone is what approvals cover. Only
    if it adds anything, further listings find out which features each of the added offers needs.
    """

    def __init__(
        self,
        server: str,
        dedicated: Dedicated,
        *,
        roots: bool,
        timeout_s: float,
        most_bytes: int,
        on_listed: Callable[[], None],
    ) -> None:
        self._server = server
        self._dedicated = dedicated
        self._all = ALL_FEATURES if roots else ALL_FEATURES - {ROOTS}
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self._on_listed = on_listed
        self._everyone: Sequence[Offer] = ()
        self._listings: dict[ClientFeatures, tuple[Offer, ...]] = {}
        self._tried: dict[ClientFeatures, float] = {}
        self._stale: set[ClientFeatures] = set()
        self._running: dict[ClientFeatures, asyncio.Task[None]] = {}
        self._tasks = BackgroundTasks()

    @property
    def tried(self) -> bool:
        """Return whether the server was listed with all features, or could not be."""
        return self._all in self._tried

    async def find(self, features: ClientFeatures = ALL_FEATURES) -> None:
        """List the server as clients with these features, unless that was done; a failure is only logged.

        What became stale is listed again in the background.
        """
        features &= self._all
        if not features:
            return
        await self._once(self._all)
        if features != self._all and self._added(self._listings.get(self._all, ())):
            await self._once(features)

    def begin(self) -> None:
        """List the server with all features in the background, unless that was done."""
        if not self.tried and self._all not in self._running:
            self._start(self._all)

    def renew(self, everyone: Sequence[Offer]) -> None:
        """Take note of the list for everyone; list again what depends on it, as the server may have changed it."""
        self._everyone = everyone
        self._tried = {features: self._tried[features] for features in self._listings}
        self.suspect()

    def suspect(self) -> None:
        """Take note that the server announced a change to a client."""
        self._stale |= self._listings.keys()
        for features in list(self._stale):
            self._refresh(features)

    def offers(self) -> tuple[Offer, ...]:
        """Return what the server lists only with certain features, each offer with all sets that are known to do."""
        listed_to: dict[_Name, set[ClientFeatures]] = {}
        offers: dict[_Name, Offer] = {}
        for features in sorted(self._listings, key=self._all.__ne__):
            for offer in self._added(self._listings[features]):
                name = offer.kind, offer.own_name
                # A definition that depends on the client cannot be approved as one; the other form is left out.
                if offers.setdefault(name, offer).definition == offer.definition:
                    listed_to.setdefault(name, set()).update(self._spellings(features))
        return tuple(replace(offer, listed_to=frozenset(listed_to[name])) for name, offer in offers.items())

    async def close(self) -> None:
        """Cancel the listings under way."""
        await self._tasks.close()

    def _added(self, offers: Iterable[Offer]) -> list[Offer]:
        names = {(offer.kind, offer.own_name) for offer in self._everyone}
        return [offer for offer in offers if (offer.kind, offer.own_name) not in names]

    def _spellings(self, features: ClientFeatures) -> set[ClientFeatures]:
        """Return the features of clients that the server cannot tell apart: it may not know of their roots."""
        return {features} if ROOTS in self._all else {features, features | {ROOTS}}

    async def _once(self, features: ClientFeatures) -> None:
        if features in self._listings:
            if features in self._stale:
                self._refresh(features)
            return
        loop = asyncio.get_running_loop()
        failed = self._tried.get(features)
        if failed is not None and loop.time() - failed < RETRY_S and features not in self._running:
            return
        # In a task of its own: a client that leaves must not end the listing for the others.
        await asyncio.wait({self._running.get(features) or self._start(features)})

    def _refresh(self, features: ClientFeatures) -> None:
        if features not in self._running:
            calm = self._tried.get(features, 0.0) + CALM_S - asyncio.get_running_loop().time()
            self._start(features, max(0.0, calm))

    def _start(self, features: ClientFeatures, pause_s: float = 0.0) -> asyncio.Task[None]:
        task = self._tasks.start(self._list(features, pause_s), name=f"what {self._server} lists to clients")
        self._running[features] = task
        task.add_done_callback(lambda _: self._running.pop(features, None))
        return task

    async def _list(self, features: ClientFeatures, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        self._stale.discard(features)
        try:
            capabilities = declared_capabilities(features)
            async with (
                asyncio.timeout(self._timeout_s),
                self._dedicated(capabilities, on_notification=_ignore, on_request=refuse_request) as link,
            ):
                # A server of the modern revision takes them from each request.
                self._listings[features] = await self._listed(link, Hooks(capabilities=capabilities))
        except Exception as error:  # noqa: BLE001 - no fault of a server reaches who waits for its lists
            # The former listing stays: a server that is busy keeps what it offers.
            log.info(
                "server %s could not be listed as clients that can be asked do: %s",
                self._server,
                type(error).__name__,
            )
        finally:
            self._tried[features] = asyncio.get_running_loop().time()
        self._on_listed()

    async def _listed(self, link: ServerLink, hooks: Hooks) -> tuple[Offer, ...]:
        lists = [
            await listed(
                link, self._server, kind, timeout_s=self._timeout_s, most_bytes=self._most_bytes, hooks=hooks
            )
            for kind in declared(link.capabilities)
        ]
        return tuple(offer for offers in lists for offer in offers)
