"""Keep the connection to one server: open it, list the server, and reconnect after a loss."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from app.core.background import ended
from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.catalog.servers import MCPServerSettings
from app.core.client_features import ClientFeatures
from app.core.errors import DeadlineExceededError, UpstreamUnavailableError
from app.core.upstream import NO_HOOKS, Authorization, Hooks, UpstreamError
from app.upstream.askable_offers import AskableOffers
from app.upstream.connection_options import AggregatorOptions, tell
from app.upstream.offers import CHANGES, Inventory, advice, declared
from app.upstream.session_connections import OwnedLink
from app.upstream.status import STABLE_S, ServerStatus, State, delay_s, explained
from app.upstream.subscriptions import Subscriptions
from app.upstream.transport.options import LinkOptions, RequestSink, ServerLink

__all__ = ["AggregatorOptions", "Connection", "ServerStatus"]

DEBOUNCE_S: Final = 0.05
CALM_S: Final = 1.0
"""Shortest time between two listings that announcements cause, so that constant announcements cost little."""

PROBE_S: Final = 30.0
CLOSE_S: Final = 10.0
_GRACE_S: Final = 2.0

log = logging.getLogger("sluice.upstream")


class Connection:
    """The shared connection to one server; ``start`` and ``stop`` it once.

    Its own task opens it, lists the server, follows announced changes, and reconnects after a loss with growing
    pauses. Callers use the current connection and signal that task; their cancellation never reaches it. ``offers`` is
    the last complete listing and stays while the server is down, so that lists do not flap: ``status`` shows that it
    is down, and calls raise UpstreamUnavailableError. What the server lists only to clients that it can ask follows
    there, once ``find_for`` was called for such a client.
    """

    def __init__(self, name: str, settings: MCPServerSettings, options: AggregatorOptions) -> None:
        self.name = name
        self.settings = settings
        self.status = ServerStatus()
        self.offers: tuple[Offer, ...] = ()
        self._options = options
        self._inventory = Inventory(
            name, timeout_s=options.connect_timeout_s, most_bytes=options.max_result_bytes
        )
        self._link: ServerLink | None = None
        self._owner: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._kick = asyncio.Event()
        self._decided = asyncio.Event()
        self._settled = asyncio.Event()
        self._dirty: set[PrimitiveKind] = set()
        self._suspect = False
        self._in_flight = self._failures = 0
        self._ready_at: float | None = None
        self._retry_at = 0.0
        self._subscriptions = Subscriptions()
        self._own_links: set[OwnedLink] = set()
        self.askable = AskableOffers(
            name,
            self.dedicated,
            roots=settings.roots,
            timeout_s=options.connect_timeout_s,
            most_bytes=options.max_result_bytes,
            on_listed=self._merged,
        )

    def start(self) -> None:
        """Start connecting; ``settled`` returns once it is clear whether that worked."""
        self._become("connecting")
        self._owner = asyncio.create_task(self._own(), name=f"connection to {self.name}")

    async def stop(self) -> None:
        """Close the shared connection and those of single clients, by force where they do not close in time."""
        self._stopping.set()
        await self.askable.close()
        for own in self._own_links:
            own.leave()
        if self._owner is not None:
            if self._link is None:
                self._owner.cancel()
            await asyncio.wait({self._owner}, timeout=CLOSE_S)
            await ended(self._owner)
        self._become("stopped")

    @property
    def modern(self) -> bool:
        """Whether the server speaks the revision without sessions; while it is down, whether it last did."""
        version = self.status.protocol_version
        return version is not None and version in MODERN_PROTOCOL_VERSIONS

    async def settled(self) -> None:
        """Return once the server was first listed, failed or ran out of time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.connect_timeout_s + _GRACE_S):
                await self._settled.wait()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        hooks: Hooks = NO_HOOKS,
        timeout_s: float | None = None,
    ) -> dict[str, Any]:
        """Return the server's raw result; see ``ServerLink.request`` for what is raised. Nothing is ever sent twice.

        Waits for a connection that is being made, for at most ``connect_timeout_s``; while the server is down the
        call fails at once. Without ``timeout_s``, the time limit in the server's settings applies.
        """
        link = await self._usable()
        self._in_flight += 1
        try:
            limit = self.settings.timeout_s if timeout_s is None else timeout_s
            return await link.request(method, params, hooks=hooks, timeout_s=limit)
        except UpstreamUnavailableError as error:
            error.details.setdefault("server", self.name)
            self._suspect = True
            self._kick.set()
            raise
        finally:
            self._in_flight -= 1

    @asynccontextmanager
    async def dedicated(
        self,
        capabilities: Mapping[str, Any],
        *,
        on_notification: Callable[[str, Mapping[str, Any]], None],
        on_request: RequestSink | None = None,
        authorization: Authorization | None = None,
    ) -> AsyncIterator[ServerLink]:
        """Open a second connection for one client: it declares that client's capabilities and questions only it.

        It speaks the handshake revision wherever the server does, which must be up. Raises OverloadedError where the
        budget is used up. Entering and leaving may happen in different tasks. With ``authorization`` it is a user's.
        """
        shared = await self._usable()
        options = replace(
            self._link_options(),
            capabilities=capabilities,
            on_notification=on_notification,
            on_request=on_request,
            revision="handshake",
        )
        if authorization is not None:
            options = replace(options, authorization=authorization, listing_only=False)
            options = replace(options, revision="auto") if shared.modern else options
        with self._options.dedicated.one():
            own = self._own_link(options)
            try:
                try:
                    link = await own.opened()
                except (UpstreamError, UpstreamUnavailableError):
                    if not shared.modern:
                        raise
                    self._own_links.discard(own)
                    own = self._own_link(replace(options, revision="auto"))
                    link = await own.opened()
                yield link
            finally:
                self._own_links.discard(own)
                await own.closed(timeout_s=CLOSE_S)

    async def find_for(self, features: ClientFeatures) -> bool:
        """Find what the server lists only to clients with these features; return whether that changed ``offers``.

        Does nothing while the server is down.
        """
        if self._link is None:
            return False
        before = self.offers
        await self.askable.find(features)
        return self.offers is not before

    def refresh(self) -> None:
        """List the server again soon, although it announced no change."""
        self._dirty |= set(declared(self.status.capabilities))
        self._kick.set()

    async def subscribe(self, uri: str) -> None:
        """Follow updates of a resource (the server's own URI); each call needs an ``unsubscribe`` of its own."""
        link = await self._usable()
        await self._subscriptions.add(link, uri, timeout_s=self.settings.timeout_s)

    async def unsubscribe(self, uri: str) -> None:
        """Remove one subscription; removing the last one ends it at the server, too."""
        await self._subscriptions.remove(self._link, uri, timeout_s=self.settings.timeout_s)

    def unavailable(self) -> UpstreamUnavailableError:
        """Return the error that callers get while the server is down."""
        retry_after_s = None
        if self.status.state == "failed":
            retry_after_s = max(0.1, round(self._retry_at - asyncio.get_running_loop().time(), 1))
        return UpstreamUnavailableError(
            self.status.error or f"Server {self.name!r} does not answer.",
            details={"server": self.name},
            retry_after_s=retry_after_s,
        )

    async def _usable(self) -> ServerLink:
        if self._link is None and self.status.state == "connecting":
            with suppress(TimeoutError):
                async with asyncio.timeout(self._options.connect_timeout_s):
                    await self._decided.wait()
        if self._link is None:
            raise self.unavailable()
        return self._link

    def _own_link(self, options: LinkOptions) -> OwnedLink:
        own = OwnedLink(lambda: self._options.opener(self.name, self.settings, options))
        self._own_links.add(own)
        return own

    def _link_options(self) -> LinkOptions:
        return LinkOptions(
            connect_timeout_s=self._options.connect_timeout_s,
            max_result_bytes=self._options.max_result_bytes,
            on_notification=self._on_notification,
            schema_of=self._inventory.schema_of,
            allowed_networks=self._options.allowed_networks(self.name),
            roots=self.settings.roots,
            authorization=self._options.authorize(self.name, self.settings),
            listing_only=self.settings.of_users,
        )

    def _on_notification(self, method: str, params: Mapping[str, Any]) -> None:
        kinds = CHANGES.get(method)
        if kinds is None:
            tell(self._options.on_notification, self.name, method, params)
        else:
            self._dirty |= kinds
            self._kick.set()

    async def _own(self) -> None:
        """Keep a connection open until ``stop``; nothing that a server does ends this task."""
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            if self._failures <= 1:
                self._become("connecting")  # later attempts show as failed until one works
            error = await self._connect_and_serve()
            if self._stopping.is_set():
                return
            stable = self._ready_at is not None and loop.time() - self._ready_at >= STABLE_S
            self._failures = 1 if stable else self._failures + 1
            pause = delay_s(self._failures)
            self._retry_at = loop.time() + pause
            self._become("failed", explained(self.name, error))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()

    async def _connect_and_serve(self) -> BaseException:
        """Connect and keep the connection; return the error that ended it."""
        self._ready_at = None
        task = asyncio.current_task()
        try:
            limit_s = self._options.connect_timeout_s + _GRACE_S
            async with (
                asyncio.timeout(limit_s) as limit,
                self._options.opener(self.name, self.settings, self._link_options()) as link,
            ):
                limit.reschedule(None)
                try:
                    await self._serve_until_closed(link)
                finally:
                    self._link = None
        except asyncio.CancelledError as error:
            # A transport's broken cancel scope may cancel the task that entered it: count that as a lost connection.
            if self._stopping.is_set() or (task is not None and task.cancelling()):
                raise
            return error
        except Exception as error:  # noqa: BLE001 - no fault of a server ends the owner task
            return error
        return UpstreamUnavailableError(f"Server {self.name!r} closed the connection.")

    async def _serve_until_closed(self, link: ServerLink) -> None:
        """Return when the link is closed or no longer wanted; raise the error that makes it unusable."""
        tasks = {
            asyncio.create_task(link.wait_closed()),
            asyncio.create_task(self._stopping.wait()),
            asyncio.create_task(self._follow(link)),
        }
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            await ended(*tasks)

    async def _follow(self, link: ServerLink) -> None:
        """List the server, let callers use the connection, and list again what the server announces as changed."""
        self._dirty, self._suspect = set(), False
        fault = await self._inventory.read(link, declared(link.capabilities))
        if fault is not None:
            raise fault
        self._publish(link)
        await self._subscriptions.renew(link, timeout_s=self._options.connect_timeout_s)
        pause = DEBOUNCE_S
        while True:
            idle = False
            try:
                async with asyncio.timeout(PROBE_S):
                    await self._kick.wait()
            except TimeoutError:
                idle = True
            await asyncio.sleep(pause)
            self._kick.clear()
            changed, self._dirty = self._dirty | (self._inventory.missing if idle else set()), set()
            suspect, self._suspect = self._suspect, False
            pause = DEBOUNCE_S
            if changed:
                # A server that cannot be listed may only be busy: the probe decides whether it still works.
                suspect = await self._inventory.read(link, changed) is not None or suspect
                self._relisted()
                pause = CALM_S
            if suspect or (idle and not self._in_flight):
                await self._probe(link)

    def _publish(self, link: ServerLink) -> None:
        """Let callers use the link, and publish the listing as what the server offers now."""
        self._link = link
        self._ready_at = asyncio.get_running_loop().time()
        self.status = replace(
            self.status,
            protocol_version=link.protocol_version,
            server_info=dict(link.server_info),
            capabilities=dict(link.capabilities),
            instructions=link.instructions,
            offered=self._inventory.counts(),
            generation=self.status.generation + 1,
        )
        everyone = self._everyone()
        self.askable.renew(everyone)
        self.offers = (*everyone, *self.askable.offers())
        self._become("ready", self._inventory.fault())

    def _everyone(self) -> tuple[Offer, ...]:
        """Return what the server offers everyone, with its instructions where they are passed on."""
        text = self.status.instructions if self.settings.instructions else None
        return (*self._inventory.offers(), *advice(self.name, text))

    def _merged(self) -> None:
        """Publish what the server lists only to clients that it can ask, after a listing of that or its failure."""
        offers = (*self._everyone(), *self.askable.offers())
        if offers != self.offers:
            self.offers = offers
        tell(self._options.on_change, self.name)

    def _relisted(self) -> None:
        before, everyone = self.offers, self._everyone()
        self.askable.renew(everyone)
        self.offers = (*everyone, *self.askable.offers())
        status = replace(self.status, offered=self._inventory.counts(), error=self._inventory.fault())
        if self.offers != before or status != self.status:
            self.status = status
            tell(self._options.on_change, self.name)

    async def _probe(self, link: ServerLink) -> None:
        """Raise where the server does not answer at all; do not raise for a timeout while it works on other calls."""
        try:
            method = "server/discover" if link.modern else "ping"
            await link.request(method, None, timeout_s=self._options.connect_timeout_s)
        except UpstreamError:
            return
        except DeadlineExceededError:
            if not self._in_flight:
                raise

    def _become(self, state: State, error: str | None = None) -> None:
        before = self.status
        since = before.since if before.state == state else datetime.now(UTC)
        self.status = replace(before, state=state, since=since, error=error)
        if state == "connecting":
            self._decided.clear()
        else:
            self._decided.set()
            self._settled.set()
        if state == "ready":
            log.info("server %s is ready: %d offers", self.name, len(self.offers))
        elif state == "failed" and (before.state, before.error) != (state, error):
            log.warning("server %s: %s", self.name, error)
        if self.status != before:
            tell(self._options.on_change, self.name)
