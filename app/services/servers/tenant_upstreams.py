"""One tenant's servers in this process: which are connected, and what of their offers may be served."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from app.core.access import Caller
from app.core.audit import OUTCOME_OK
from app.core.catalog.primitives import SERVERS_CHANGED, Disclosure, Offer, PrimitiveKind
from app.core.catalog.servers import ServerEntry
from app.core.catalog.tool_filter import ExposedTools
from app.core.errors import InternalError, StoreUnavailableError
from app.core.events import Changed
from app.services.audit.audit import AuditService
from app.services.servers.approval import choose, pinned
from app.services.servers.pins import PinName, PinState, Review, review, served
from app.services.servers.sealing import opened
from app.store.access.tenants import find_tenant
from app.store.changes import announce
from app.store.database import Database
from app.store.servers import (
    SERVER_APPROVED,
    Origin,
    StoredServer,
    add_pins,
    find_server,
    list_pin_digests,
    list_servers,
    remove_pins,
    update_server,
)
from app.upstream.aggregator import MCPAggregator
from app.upstream.connection import Connection
from app.upstream.dedicated import LinkBudget
from app.upstream.registry import ServerRegistry
from app.upstream.terms import AggregatorOptions

DECLARED: Final = "file"
"""The actor in the record where the first listing of a declared server is approved."""

_TOGETHER_S: Final = 0.02
_FIRST_RETRY_S: Final = 0.25
_LAST_RETRY_S: Final = 10.0

log = logging.getLogger("sluice.upstreams")


@dataclass(frozen=True, slots=True)
class UpstreamRules:
    """What the settings say of servers in this process.

    ``servers``: the only ones that it serves (empty: all); ``filters`` narrow tools by server, beside the servers'
    own filters. ``allowed_networks`` and ``stdio_over_rest`` bound servers that were added over REST.
    """

    connect_timeout_s: float = 10.0
    max_result_bytes: int = 8 * 1024 * 1024
    servers: frozenset[str] = frozenset()
    filters: Mapping[str, ExposedTools] = field(default_factory=dict)
    stdio_over_rest: bool = False
    allowed_networks: tuple[str, ...] = ()
    max_dedicated: int = 256

    def networks_for(self, origin: Origin) -> tuple[str, ...] | None:
        """Return where a server may lie beside public addresses; None: anywhere but cloud metadata."""
        return None if origin == "file" else self.allowed_networks

    def options(self, allowed_networks: Callable[[str], tuple[str, ...] | None]) -> AggregatorOptions:
        """Return the options of an aggregator under these rules."""
        return AggregatorOptions(
            connect_timeout_s=self.connect_timeout_s,
            max_result_bytes=self.max_result_bytes,
            allowed_networks=allowed_networks,
        )

    def refusal(self, entry: ServerEntry, origin: Origin) -> str | None:
        """Return why this process does not connect to a server, None where it does."""
        if entry.settings.type == "stdio" and origin != "file" and not self.stdio_over_rest:
            return "Commands that were added over REST are not run here (SLUICE_UPSTREAMS__STDIO_OVER_REST)."
        return None


@dataclass(frozen=True, slots=True)
class Approved:
    """What may be served of a tenant's servers, and what is held back; the mappings are by server.

    ``aliases`` map an exposed name to the server's own tool name. ``namespaced`` has the servers that are not served
    now, too: what begins with the name of one of them is its own.
    """

    offers: tuple[Offer, ...] = ()
    quarantined: tuple[Review, ...] = ()
    namespaced: Mapping[str, bool] = field(default_factory=dict)
    aliases: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    disclosure: Mapping[str, Disclosure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Row:
    stored: StoredServer
    entry: ServerEntry


@dataclass(frozen=True, slots=True)
class _Standing:
    """What one listing is worth under these pins; ``served`` holds the identities of the offers that may be served."""

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
    ) -> None:
        self.tenant = tenant
        self.aggregator: MCPAggregator | None = None
        self.faults: Mapping[str, str] = {}
        self.loaded = asyncio.Event()
        self._database, self._audit, self._rules, self._now = database, audit, rules, now
        self._on_change, self._on_notification = on_change, on_notification
        self._dedicated = dedicated
        self._names: Sequence[str] = ()
        self._rows: Mapping[str, _Row] = {}
        self._pins: Mapping[str, Mapping[PinName, str]] = {}
        self._read: tuple[Sequence[StoredServer], Mapping[tuple[str, str, str], str]] | None = None
        self._approved: Approved | None = None
        self._standings: dict[str, _Standing] = {}
        self._told: dict[str, frozenset[tuple[str, str, str | None]]] = {}
        self._untold = False
        self._stale, self._woken = True, asyncio.Event()
        self._woken.set()
        self._asked = self._followed = 0
        self._caught_up = asyncio.Event()

    def reload(self) -> None:
        """Read the rows again, soon."""
        self._stale = True
        self._asked += 1
        self._woken.set()

    async def caught_up(self) -> None:
        """Return once what was stored before this call is what is served."""
        wanted = self._asked
        while self._followed < wanted:
            await self._caught_up.wait()

    async def run(self) -> None:
        """Keep connections and rows in step until cancelled; a database that is away changes nothing here."""
        retry_s = _FIRST_RETRY_S
        options = replace(
            self._rules.options(self._networks_of),
            on_change=self._heard,
            on_notification=partial(self._on_notification, self.tenant),
            dedicated=self._dedicated,
        )
        async with MCPAggregator(ServerRegistry({}), options=options) as aggregator:
            self.aggregator = aggregator
            try:
                while True:
                    await self._woken.wait()
                    await asyncio.sleep(_TOGETHER_S)  # what comes in a burst is answered once
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
            await asyncio.gather(*(one.settled() for one in list(self.aggregator.connections.values())))

    def approved(self) -> Approved:
        """Return what may be served now; the same object until something changes."""
        if self._approved is None:
            self._approved = self._compared()
        return self._approved

    def connection(self, name: str) -> Connection | None:
        """Return the connection to a server that this process serves."""
        return self.aggregator.connections.get(name) if self.aggregator is not None else None

    def reviews(self, name: str) -> list[Review]:
        """Return the standing of everything that a connected server offers."""
        self.approved()
        standing = self._standings.get(name)
        return standing.reviews if standing is not None else []

    def _heard(self, _server: str) -> None:
        self._overtaken()
        self._woken.set()

    def _overtaken(self) -> None:
        """Compare again at the next question, and tell those who follow."""
        self._approved, self._untold = None, True

    def _networks_of(self, server: str) -> tuple[str, ...] | None:
        row = self._rows.get(server)
        return self._rules.networks_for(row.stored.origin if row is not None else "api")

    async def _follow(self, aggregator: MCPAggregator) -> None:
        self._tell()  # what a server changed holds at once, whether or not the database answers
        if self._stale:
            self._stale, asked = False, self._asked
            try:
                await self._load(aggregator)
            except BaseException:
                self._stale = True
                raise
            self.loaded.set()
            self._followed, told, self._caught_up = asked, self._caught_up, asyncio.Event()
            told.set()
        for name, row in self._rows.items():
            await self._pin_first(aggregator, name, row)
        self._tell()

    def _tell(self) -> None:
        if self._untold:
            self._untold = False
            self._report()
            self._on_change(self.tenant)

    async def _load(self, aggregator: MCPAggregator) -> None:
        """Bring the connections to what is stored, where that is other than before."""
        async with self._database.transaction(self.tenant, write=False) as tx:
            known = await find_tenant(tx, self.tenant)
            shut = known is None or known.disabled is not None
            stored = [] if shut else await list_servers(tx, self.tenant)
            digests = await list_pin_digests(tx, self.tenant)
        if (stored, digests) == self._read:
            return
        self._rows, self.faults = self._servable(stored)
        self._names = [one.name for one in stored]
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
            self._overtaken()
        self._read = (stored, digests)
        for name, connection in aggregator.connections.items():
            # Another process may have listed, for an approval, what this one was never told of.
            if before.get(name) != pins.get(name) and any(_differs(one) for one in self.reviews(name)):
                connection.refresh()

    def _servable(self, stored: Sequence[StoredServer]) -> tuple[dict[str, _Row], dict[str, str]]:
        """Return the rows to connect to, and why others that should be are not."""
        rows, faults = {}, {}
        for one in stored:
            if one.state != SERVER_APPROVED or (self._rules.servers and one.name not in self._rules.servers):
                continue
            try:
                entry = opened(self._audit.keys, one)
            except InternalError as error:
                faults[one.name] = error.message
                continue
            refusal = self._rules.refusal(entry, one.origin)
            if refusal is None:
                rows[one.name] = _Row(one, entry)
            else:
                faults[one.name] = refusal
        return rows, faults

    def _filter_of(self, entry: ServerEntry) -> list[str] | None:
        own = ExposedTools.parse(entry.tool_filter)
        return own.narrowed(self._rules.filters.get(entry.name, ExposedTools())).spelled()

    async def _pin_first(self, aggregator: MCPAggregator, name: str, row: _Row) -> None:
        """Approve the first complete listing of a declared server; of several replicas one does."""
        connection = aggregator.connections.get(name)
        if row.stored.origin != "file" or row.stored.pinned is not None or connection is None:
            return
        if connection.status.state != "ready" or connection.status.error is not None:
            return  # not connected, or one of its lists could not be read
        caller, moment = Caller(self.tenant, DECLARED, frozenset()), self._now()
        chosen = choose(review(connection.offers, {}), None)
        async with self._database.transaction(self.tenant) as tx:
            held = await find_server(tx, self.tenant, name, lock=True)
            if held is None or held.pinned is not None or held.updated != row.stored.updated:
                self.reload()
                return
            await remove_pins(tx, self.tenant, name)
            await add_pins(tx, pinned(chosen.offers, caller, name, moment))
            await update_server(tx, replace(held, pinned=moment))
            details = {
                "server": name,
                "approved": len(chosen.offers),
                "held_back": len(chosen.held_back),
            }
            event = self._audit.new_event(caller, "servers.approve", OUTCOME_OK, None, details=details)
            await self._audit.record_with(tx, event)
            await announce(tx, Changed(SERVERS_CHANGED, self.tenant, name))
        self.reload()

    def _compared(self) -> Approved:
        if self.aggregator is None:
            return Approved()
        before, self._standings = self._standings, {}
        for name, connection in self.aggregator.connections.items():
            last, pins = before.get(name), self._pins.get(name, {})
            same = last is not None and last.offers is connection.offers and last.pins == pins
            self._standings[name] = last if last is not None and same else _standing(connection.offers, pins)
        may = frozenset[int]().union(*(one.served for one in self._standings.values()))
        found = [one for standing in self._standings.values() for one in standing.reviews]
        entries = {name: row.entry for name, row in self._rows.items()}
        return Approved(
            offers=tuple(offer for offer in self.aggregator.offers() if id(offer) in may),
            quarantined=tuple(one for one in found if one.quarantined),
            namespaced=dict.fromkeys(self._names, True)
            | {name: entry.settings.namespace for name, entry in entries.items()},
            aliases={name: entry.aliases for name, entry in entries.items()},
            disclosure={name: entry.disclosure for name, entry in entries.items()},
        )

    def _report(self) -> None:
        """Log it when definitions begin to be held back: how many, never what they say."""
        held: dict[str, set[tuple[str, str, str | None]]] = {}
        for one in self.approved().quarantined:
            # What was never approved at all is about to be, or was not asked for yet.
            row = self._rows.get(one.offer.server) if one.offer is not None else None
            if one.offer is not None and row is not None and row.stored.pinned is not None:
                held.setdefault(one.offer.server, set()).add((one.kind, one.name, one.digest))
        for server, found in held.items():
            if found - self._told.get(server, frozenset()):
                log.warning(
                    "server %s of tenant %s: %d definitions are quarantined until an operator approves them",
                    server,
                    self.tenant,
                    len(found),
                )
        self._told = {server: frozenset(found) for server, found in held.items()}


def _standing(offers: tuple[Offer, ...], pins: Mapping[PinName, str]) -> _Standing:
    reviews = review(offers, pins)
    return _Standing(offers, pins, reviews, frozenset(id(offer) for offer in served(offers, reviews)))


def _differs(one: Review) -> bool:
    return one.state in {PinState.CHANGED, PinState.NEW, PinState.GONE}
