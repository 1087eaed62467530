"""The servers that this process serves: one aggregator per tenant, kept in sync with the database."""

import asyncio
import logging
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from app.core.background import ended
from app.core.catalog.primitives import SERVERS_CHANGED, Offer
from app.core.catalog.servers import ServerEntry
from app.core.client_features import ClientFeatures
from app.core.errors import ForbiddenError, NotFoundError, StoreUnavailableError
from app.core.events import Changed
from app.services.access.credentials import TENANT_CHANGED
from app.services.audit.audit import AuditService
from app.services.servers.inspection import Inspection, inspect
from app.services.servers.pins import Review
from app.services.servers.tenant_upstreams import Approved, TenantUpstreams, UpstreamRules, with_tokens
from app.services.servers.upstream_tokens import UpstreamTokens
from app.store.changes import EVERYTHING
from app.store.database import Database
from app.store.servers import Origin, list_server_names
from app.upstream.aggregator import MCPAggregator
from app.upstream.connection import Connection
from app.upstream.session_connections import LinkBudget
from app.upstream.status import ServerStatus

_RETRY_S: Final = 1.0
_POLL_S: Final = 3.0
_CATCH_UP_S = 2.0
_LISTING_S = 5.0

log = logging.getLogger("sluice.upstreams")


ChangeListener = Callable[[str], None]
"""Called with a tenant's name after its servers, their offers, their state or their approvals changed."""

NotificationListener = Callable[[str, str, str, Mapping[str, Any]], None]
"""Called with (tenant, server, method, params) of a server's notification outside a request."""


class UpstreamService:
    """Connects to every approved server of every tenant while ``running``, and follows changes.

    Without ``running`` nothing is connected: commands on the host only read the database.
    """

    def __init__(
        self,
        database: Database,
        audit: AuditService,
        rules: UpstreamRules | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        tokens: UpstreamTokens | None = None,
    ) -> None:
        self.rules = rules or UpstreamRules()
        self.tokens = tokens
        self._change_listeners: list[ChangeListener] = []
        self._notification_listeners: list[NotificationListener] = []
        self._database, self._audit, self._now = database, audit, now
        self._tenants: dict[str, TenantUpstreams] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._dedicated = LinkBudget(self.rules.max_dedicated)
        self._running = False
        self._missed = asyncio.Event()
        self._settled = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connect, and stay connected while the body runs; servers are listed in the background (``settled``).

        Raises NotFoundError if the settings name servers that no tenant has.
        """
        stored_names = await self._names()
        wanted = self.rules.servers | self.rules.filters.keys()
        unknown = sorted(wanted - {name for _, name in stored_names})
        if unknown:
            raise NotFoundError(f"Servers not found: {', '.join(unknown)}", details={"servers": unknown})
        self._running = True
        for tenant in sorted({tenant for tenant, _ in stored_names}):
            self._start(tenant)
        # After the start it is known which servers there are; whether they answer shows a little later.
        await asyncio.gather(*(servers.loaded.wait() for servers in self._tenants.values()))
        watching = [
            asyncio.create_task(self._settle(), name="upstreams settle"),
            asyncio.create_task(self._catch_up(), name="upstreams catch up"),
        ]
        try:
            yield
        finally:
            self._running = False
            await ended(*watching, *self._tasks.values())
            self._tasks.clear()
            self._tenants.clear()

    def changed(self, changed: Changed) -> None:
        """Follow an announced change."""
        if not self._running or changed.kind not in {EVERYTHING, SERVERS_CHANGED, TENANT_CHANGED}:
            return
        if changed.kind == EVERYTHING or changed.tenant is None:
            self._missed.set()
        elif changed.tenant in self._tenants:
            self._tenants[changed.tenant].reload()
        elif changed.kind == SERVERS_CHANGED:
            self._start(changed.tenant)

    async def caught_up(self, tenant: str) -> None:
        """Return once this process serves a tenant's servers as stored now, or after a short time limit."""
        servers = self._tenants.get(tenant)
        if servers is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CATCH_UP_S):
                    await servers.caught_up()

    async def settled(self) -> None:
        """Return once each server was listed, or failed, within its time limit after the start."""
        await self._settled.wait()

    @property
    def ready(self) -> bool:
        """Return whether all servers have settled; a server that is down does not make the process unready."""
        return self._settled.is_set()

    def aggregator(self, tenant: str) -> MCPAggregator | None:
        """Return a tenant's aggregator, None if it has no server in this process."""
        servers = self._tenants.get(tenant)
        return servers.aggregator if servers is not None else None

    def approved(self, tenant: str) -> Approved:
        """Return what may be served of a tenant's servers; the same object until something changes."""
        servers = self._tenants.get(tenant)
        return servers.approved() if servers is not None else Approved()

    async def listed_for(self, tenant: str, features: ClientFeatures) -> bool:
        """Find what the servers list only to clients with these features; return whether that changed anything.

        What a slow server adds after a short time limit is announced as a change.
        """
        aggregator = self.aggregator(tenant)
        if aggregator is None:
            return False
        changed = False

        async def find(connection: Connection) -> None:
            nonlocal changed
            changed |= await connection.find_for(features)

        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTING_S):
                await asyncio.gather(*map(find, list(aggregator.connections.values())))
        return changed

    def names(self) -> list[str]:
        """Return the names of the servers that this process connects to, in order."""
        connections_of_tenants = (
            servers.aggregator.connections
            for servers in self._tenants.values()
            if servers.aggregator is not None
        )
        return sorted({name for connections in connections_of_tenants for name in connections})

    def status(self, tenant: str, name: str) -> ServerStatus | None:
        """Return the state of the connection to a server, None if this process has none."""
        servers = self._tenants.get(tenant)
        connection = servers.connection(name) if servers is not None else None
        return connection.status if connection is not None else None

    def fault(self, tenant: str, name: str) -> str | None:
        """Return why an approved server is not connected at all."""
        servers = self._tenants.get(tenant)
        return servers.faults.get(name) if servers is not None else None

    def listing(self, tenant: str, name: str) -> Sequence[Offer] | None:
        """Return the last complete listing of a server, None if this process has none."""
        servers = self._tenants.get(tenant)
        connection = servers.connection(name) if servers is not None else None
        if connection is None or not connection.status.generation:
            return None
        return connection.offers

    def reviews(self, tenant: str, name: str) -> Sequence[Review]:
        """Return the state of every definition that a connected server offers."""
        servers = self._tenants.get(tenant)
        return servers.reviews(name) if servers is not None else []

    def served(self) -> list[tuple[str, ServerStatus]]:
        """Return the name and state of every server that this process serves, of all tenants."""
        served = [
            (name, connection.status)
            for servers in self._tenants.values()
            if servers.aggregator is not None
            for name, connection in servers.aggregator.connections.items()
        ]
        return sorted(served, key=lambda server: server[0])

    def counts(self) -> Mapping[str, int]:
        """Return how many servers there are in each state of connection."""
        counts: Counter[str] = Counter()
        for servers in self._tenants.values():
            if servers.aggregator is not None:
                counts.update(
                    connection.status.state for connection in servers.aggregator.connections.values()
                )
            counts["failed"] += len(servers.faults)
        return counts

    async def inspect(self, tenant: str, entry: ServerEntry, origin: Origin) -> Inspection:
        """Connect to a tenant's server once, under the rules of its origin, and list it."""
        refusal = self.rules.refusal(entry, origin)
        if refusal is not None:
            raise ForbiddenError(refusal)
        networks = self.rules.networks_for(origin)
        options = with_tokens(self.rules.options(lambda _server: networks), tenant, self.tokens)
        return await inspect(entry, options)

    async def _names(self) -> Sequence[tuple[str, str]]:
        async with self._database.system_transaction(write=False) as tx:
            return await list_server_names(tx)

    def _start(self, tenant: str) -> None:
        servers = TenantUpstreams(
            tenant,
            self._database,
            self._audit,
            self.rules,
            now=self._now,
            on_change=self._notify_change,
            on_notification=self._notify_message,
            dedicated=self._dedicated,
            tokens=self.tokens,
        )
        self._tenants[tenant] = servers
        self._tasks[tenant] = asyncio.create_task(self._keep(servers), name=f"servers of {tenant}")

    async def _keep(self, servers: TenantUpstreams) -> None:
        """Run a tenant's servers; a bug in one tenant's is logged without content and does not stop the others."""
        while True:
            try:
                await servers.run()
            except Exception as error:  # noqa: BLE001 - see above
                place = traceback.extract_tb(error.__traceback__)[-1]
                log.error(  # noqa: TRY400 - a traceback prints the message
                    "servers of tenant %s failed: %s in %s, line %s",
                    servers.tenant,
                    type(error).__name__,
                    place.name,
                    place.lineno,
                )
                servers.loaded.set()
            await asyncio.sleep(_RETRY_S)
            servers.reload()

    async def _settle(self) -> None:
        for servers in list(self._tenants.values()):
            await servers.settled()
        self._settled.set()

    async def _catch_up(self) -> None:
        """Reload every tenant after a lost connection to the database, because announcements may be lost too.

        On SQLite, where changes by commands on the host are not announced, reload periodically.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S if self._database.embedded else None):
                    await self._missed.wait()
            self._missed.clear()
            try:
                named = {tenant for tenant, _ in await self._names()}
            except StoreUnavailableError:
                await asyncio.sleep(_RETRY_S)
                self._missed.set()
                continue
            for tenant in named - self._tasks.keys():
                self._start(tenant)
            for servers in self._tenants.values():
                servers.reload()

    def subscribe(self, listener: ChangeListener) -> None:
        """Call ``listener`` after each change of a tenant's servers or their offers."""
        self._change_listeners.append(listener)

    def subscribe_notifications(self, listener: NotificationListener) -> None:
        """Call ``listener`` with each notification of a server that belongs to no request."""
        self._notification_listeners.append(listener)

    def connection(self, tenant: str, server: str) -> Connection | None:
        """Return the connection to a tenant's server, or None if it has none of that name."""
        aggregator = self.aggregator(tenant)
        return aggregator.connections.get(server) if aggregator is not None else None

    def _notify_change(self, tenant: str) -> None:
        for callback in list(self._change_listeners):
            callback(tenant)

    def _notify_message(self, tenant: str, server: str, method: str, params: Mapping[str, Any]) -> None:
        for callback in list(self._notification_listeners):
            callback(tenant, server, method, params)
