"""One tenant's servers in this process: which are connected, and what of their offers may be served."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from app.core.catalog.primitives import Disclosure, Offer, PrimitiveKind
from app.core.catalog.servers import ServerEntry
from app.core.catalog.tool_filter import ExposedTools
from app.core.errors import InternalError, StoreUnavailableError
from app.services.audit.audit import AuditService
from app.services.servers.first_listing import pin_askable, pin_first
from app.services.servers.pins import PinName, PinState, Review, review, served
from app.services.servers.sealing import opened
from app.services.servers.trust import Neighbours, pin_trusted
from app.services.servers.upstream_tokens import UpstreamTokens
from app.store.access.tenants import find_tenant
from app.store.database import Database
from app.store.servers import SERVER_APPROVED, SERVERS, Origin, StoredServer, list_pin_digests
from app.upstream.aggregator import MCPAggregator
from app.upstream.connection import Connection
from app.upstream.connection_options import AggregatorOptions
from app.upstream.registry import ServerRegistry
from app.upstream.session_connections import LinkBudget

_DIFFERENT: Final = frozenset({PinState.CHANGED, PinState.NEW, PinState.GONE})
_BATCH_S: Final = 0.02
_FIRST_RETRY_S: Final = 0.25
_LAST_RETRY_S: Final = 10.0

log = logging.getLogger("sluice.upstreams")


@dataclass(frozen=True, slots=True)
class UpstreamRules:
    """The rules of the settings for servers in this process.

    ``servers``: the only ones that it serves (empty: all); ``filters`` narrow tools by server, beside the servers'
    own filters. ``allowed_networks`` and ``stdio_over_rest`` restrict servers that were added over REST.
    """

    connect_timeout_s: float = 10.0
    max_result_bytes: int = 8 * 1024 * 1024
    servers: frozenset[str] = frozenset()
    filters: Mapping[str, ExposedTools] = field(default_factory=dict)
    stdio_over_rest: bool = False
    allowed_networks: tuple[str, ...] = ()
    max_dedicated: int = 256

    def networks_for(self, origin: Origin) -> tuple[str, ...] | None:
        """Return the networks allowed beside public addresses; None: every address except cloud metadata."""
        return None if origin == "file" else self.allowed_networks

    def options(self, allowed_networks: Callable[[str], tuple[str, ...] | None]) -> AggregatorOptions:
        """Return the options of an aggregator under these rules."""
        return AggregatorOptions(
            connect_timeout_s=self.connect_timeout_s,
            max_result_bytes=self.max_result_bytes,
            allowed_networks=allowed_networks,
        )

    def refusal(self, entry: ServerEntry, origin: Origin) -> str | None:
        """Return why this process does not connect to a server, None if it does."""
        if entry.settings.type == "stdio" and origin != "file" and not self.stdio_over_rest:
            return "Commands that were added over REST are not run here (SLUICE_UPSTREAMS__STDIO_OVER_REST)."
        return None


@dataclass(frozen=True, slots=True)
class Approved:
    """What may be served of a tenant's servers, and what is quarantined; the mappings are by server.

    ``aliases`` map an exposed name to the server's own tool name. ``namespaced`` also has the servers that are not
    served now: names that begin with the name of one of them belong to it.
    """

    offers: tuple[Offer, ...] = ()
    quarantined: tuple[Review, ...] = ()
    namespaced: Mapping[str, bool] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    disclosure: Mapping[str, Disclosure] = field(default_factory=dict)
    instructions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    stored: StoredServer
    entry: ServerEntry


@dataclass(frozen=True, slots=True)
class _Standing:
    """One listing compared with these pins; ``served`` has the ids (``id()``) of the offers that may be served."""

    offers: tuple[Offer, ...]
    pins: Mapping[PinName, str]
    reviews: list[Review]
    served: frozenset[int]


class TenantUpstreams:
    """Follows one tenant's rows; ``run`` is the one task that starts, changes and stops its connections."""

    def __init__(
        self,
        tenant: str,
        database: Database,
        audit: AuditService,
        rules: UpstreamRules,
        *,
        now: Callable[[], datetime],
        on_change: Callable[[str], None],
        on_notification: Callable[[str, str, str, Mapping[str, Any]], None],
        dedicated: LinkBudget,
        tokens: UpstreamTokens | None = None,
    ) -> None:
        self.tenant = tenant
        self.aggregator: MCPAggregator | None = None
        self.faults: Mapping[str, str] = {}
        self.loaded = asyncio.Event()
        self._database, self._audit, self._rules, self._now = database, audit, rules, now
        self._on_change, self._on_notification = on_change, on_notification
        self._dedicated, self._tokens = dedicated, tokens
        self._names: Sequence[str] = ()
        self._rows: Mapping[str, _Row] = {}
        self._pins: Mapping[str, Mapping[PinName, str]] = {}
        self._read: tuple[Sequence[StoredServer], Mapping[tuple[str, str, str], str]] | None = None
        self._approved: Approved | None = None
        self._standings: dict[str, _Standing] = {}
        self._weighed: dict[str, tuple[object, ...]] = {}
        self._first_pinned: dict[str, datetime] = {}
        self._logged: dict[str, frozenset[tuple[str, str, str | None]]] = {}
        self._unnotified = False
        self._stale, self._woken = True, asyncio.Event()
        self._woken.set()
        self._requested = self._followed = 0
        self._caught_up = asyncio.Event()

    def reload(self) -> None:
        """Read the rows again soon."""
        self._stale = True
        self._requested += 1
        self._woken.set()

    async def caught_up(self) -> None:
        """Return once everything stored before this call is served."""
        wanted = self._requested
        while self._followed < wanted:
            await self._caught_up.wait()

    async def run(self) -> None:
        """Keep connections and rows in sync until cancelled; while the database is unavailable, nothing changes."""
        retry_s = _FIRST_RETRY_S
        options = replace(
            with_tokens(self._rules.options(self._networks_of), self.tenant, self._tokens),
            on_change=self._on_offers_changed,
            on_notification=partial(self._on_notification, self.tenant),
            dedicated=self._dedicated,
        )
        async with MCPAggregator(ServerRegistry({}), options=options) as aggregator:
            self.aggregator = aggregator
            try:
                while True:
                    await self._woken.wait()
                    await asyncio.sleep(_BATCH_S)  # a burst of changes is handled once
                    self._woken.clear()
                    try:
                        await self._follow(aggregator)
                        retry_s = _FIRST_RETRY_S
                    except StoreUnavailableError:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(retry_s):
                                await self._woken.wait()
                        retry_s = min(2 * retry_s, _LAST_RETRY_S)
                        self._woken.set()
            finally:
                self.aggregator = None

    async def settled(self) -> None:
        """Return once every server was listed, or failed, for the first time."""
        await self.loaded.wait()
        if self.aggregator is not None:
            await asyncio.gather(
                *(connection.settled() for connection in list(self.aggregator.connections.values()))
            )

    def approved(self) -> Approved:
        """Return what may be served now; the same object until something changes."""
        if self._approved is None:
            self._approved = self._compare()
        return self._approved

    def connection(self, name: str) -> Connection | None:
        """Return the connection to a server that this process serves."""
        return self.aggregator.connections.get(name) if self.aggregator is not None else None

    def reviews(self, name: str) -> list[Review]:
        """Return the state of every definition that a connected server offers."""
        self.approved()
        standing = self._standings.get(name)
        return standing.reviews if standing is not None else []

    def _on_offers_changed(self, _server: str) -> None:
        self._invalidate()
        self._woken.set()

    def _invalidate(self) -> None:
        """Compare again at the next request, and notify subscribers."""
        self._approved, self._unnotified = None, True

    def _networks_of(self, server: str) -> tuple[str, ...] | None:
        row = self._rows.get(server)
        return self._rules.networks_for(row.stored.origin if row is not None else "api")

    async def _follow(self, aggregator: MCPAggregator) -> None:
        self._notify()  # a server's own change applies at once, whether or not the database answers
        if self._stale:
            self._stale, requested = False, self._requested
            try:
                await self._load(aggregator)
            except BaseException:
                self._stale = True
                raise
            self.loaded.set()
            self._followed, previous, self._caught_up = requested, self._caught_up, asyncio.Event()
            previous.set()
        for name, row in self._rows.items():
            await self._pin_first(aggregator, name, row)
            await self._pin_trusted(aggregator, name, row)
        self._notify()

    def _notify(self) -> None:
        if self._unnotified:
            self._unnotified = False
            self._report()
            self._on_change(self.tenant)

    async def _load(self, aggregator: MCPAggregator) -> None:
        """Update the connections if the stored rows changed."""
        async with self._database.transaction(self.tenant, write=False) as tx:
            tenant_row = await find_tenant(tx, self.tenant)
            is_closed = tenant_row is None or tenant_row.disabled is not None
            stored = [] if is_closed else await SERVERS.list(tx, self.tenant)
            digests = await list_pin_digests(tx, self.tenant)
        if (stored, digests) == self._read:
            return
        self._rows, self.faults = self._servable(stored)
        self._names = [server.name for server in stored]
        pins: dict[str, dict[PinName, str]] = {}
        for (server, kind, name), digest in digests.items():
            pins.setdefault(server, {})[PinName(PrimitiveKind(kind), name)] = digest
        before, self._pins = self._pins, pins
        try:
            await aggregator.update(
                ServerRegistry({name: row.entry.settings for name, row in self._rows.items()}),
                {name: self._filter_of(row.entry) for name, row in self._rows.items()},
                {name: dict(row.entry.aliases) for name, row in self._rows.items()},
            )
        finally:
            self._invalidate()
        self._read = (stored, digests)
        for name, connection in aggregator.connections.items():
            # Another process may have approved a listing that this process has not seen yet.
            if before.get(name) != pins.get(name) and any(
                entry.state in _DIFFERENT for entry in self.reviews(name)
            ):
                connection.refresh()

    def _servable(self, stored: Sequence[StoredServer]) -> tuple[dict[str, _Row], dict[str, str]]:
        """Return the rows to connect to, and the reasons why other approved servers are not connected."""
        rows, faults = {}, {}
        for server in stored:
            if server.state != SERVER_APPROVED or (
                self._rules.servers and server.name not in self._rules.servers
            ):
                continue
            try:
                entry = opened(self._audit.keys, server)
            except InternalError as error:
                faults[server.name] = error.message
                continue
            refusal = self._rules.refusal(entry, server.origin)
            if refusal is None:
                rows[server.name] = _Row(server, entry)
            else:
                faults[server.name] = refusal
        return rows, faults

    def _filter_of(self, entry: ServerEntry) -> list[str] | None:
        own = ExposedTools.parse(entry.tool_filter)
        return own.narrowed(self._rules.filters.get(entry.name, ExposedTools())).spelled()

    async def _pin_first(self, aggregator: MCPAggregator, name: str, row: _Row) -> None:
        """Approve the first complete listing of a declared server."""
        connection, stored = aggregator.connections.get(name), row.stored
        if connection is None or connection.status.state != "ready" or connection.status.error is not None:
            return  # not connected, or one of its lists could not be read
        if stored.origin == "file" and stored.pinned is None:
            if await pin_first(self._database, self._audit, stored, connection.offers, self._now()):
                self._first_pinned[name] = stored.updated
                connection.askable.begin()
            self.reload()
        elif self._first_pinned.get(name) == stored.updated and connection.askable.tried:
            await pin_askable(self._database, self._audit, stored, connection.offers, self._now())
            del self._first_pinned[name]
            self.reload()
        elif any(entry.state is PinState.GONE for entry in self.reviews(name)):
            connection.askable.begin()  # the server may list it only to clients that it can ask

    async def _pin_trusted(self, aggregator: MCPAggregator, name: str, row: _Row) -> None:
        """Approve what a trusted server changed, once for each state of its listing and of the tenant's pins."""
        connection = aggregator.connections.get(name)
        if row.entry.settings.definitions != "trusted" or row.stored.pinned is None or connection is None:
            return
        state = (connection.offers, self._pins, row)
        weighed = self._weighed.get(name)
        if weighed is not None and all(now is then for now, then in zip(state, weighed, strict=True)):
            return
        if any(entry.state in {PinState.CHANGED, PinState.NEW} for entry in self.reviews(name)):
            approved = self.approved()
            neighbours = Neighbours(self._pins, approved.namespaced, approved.aliases)
            await pin_trusted(
                self._database, self._audit, row.stored, connection.offers, neighbours, self._now()
            )
            self.reload()
        self._weighed[name] = state

    def _compare(self) -> Approved:
        if self.aggregator is None:
            return Approved()
        before, self._standings = self._standings, {}
        for name, connection in self.aggregator.connections.items():
            last, pins = before.get(name), self._pins.get(name, {})
            same = last is not None and last.offers is connection.offers and last.pins == pins
            self._standings[name] = last if last is not None and same else _standing(connection.offers, pins)
        served_ids = frozenset[int]().union(*(standing.served for standing in self._standings.values()))
        reviews = [entry for standing in self._standings.values() for entry in standing.reviews]
        entries = {name: row.entry for name, row in self._rows.items()}
        served_offers = [offer for offer in self.aggregator.offers() if id(offer) in served_ids]
        return Approved(
            offers=tuple(offer for offer in served_offers if offer.kind is not PrimitiveKind.INSTRUCTIONS),
            instructions={
                offer.server: offer.definition["text"]
                for offer in served_offers
                if offer.kind is PrimitiveKind.INSTRUCTIONS
            },
            quarantined=tuple(entry for entry in reviews if entry.quarantined),
            namespaced=dict.fromkeys(self._names, True)
            | {name: entry.settings.namespace for name, entry in entries.items()},
            aliases={name: entry.aliases for name, entry in entries.items()},
            disclosure={name: entry.disclosure for name, entry in entries.items()},
        )

    def _report(self) -> None:
        """Log newly quarantined definitions: how many, never their content."""
        quarantined: dict[str, set[tuple[str, str, str | None]]] = {}
        for entry in self.approved().quarantined:
            # A server that was never approved is about to be, or approval was not requested yet.
            row = self._rows.get(entry.offer.server) if entry.offer is not None else None
            if entry.offer is not None and row is not None and row.stored.pinned is not None:
                quarantined.setdefault(entry.offer.server, set()).add((entry.kind, entry.name, entry.digest))
        for server, definitions in quarantined.items():
            if definitions - self._logged.get(server, frozenset()):
                log.warning(
                    "server %s of tenant %s: %d definitions are quarantined until an operator approves them",
                    server,
                    self.tenant,
                    len(definitions),
                )
        self._logged = {server: frozenset(definitions) for server, definitions in quarantined.items()}


def with_tokens(options: AggregatorOptions, tenant: str, tokens: UpstreamTokens | None) -> AggregatorOptions:
    """Return options whose connections have the tokens of this service itself."""
    return options if tokens is None else replace(options, authorize=partial(tokens.own, tenant))


def _standing(offers: tuple[Offer, ...], pins: Mapping[PinName, str]) -> _Standing:
    reviews = review(offers, pins)
    return _Standing(offers, pins, reviews, frozenset(id(offer) for offer in served(offers, reviews)))
