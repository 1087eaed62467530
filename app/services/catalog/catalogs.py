"""The catalog of each tenant: what its servers offer, assembled once after each change, read by every request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from app.core.background import meanwhile
from app.core.catalog.concerns import ConcernTable
from app.core.catalog.groups import GroupDefinition, GroupTree
from app.core.catalog.naming import exposed
from app.core.catalog.primitives import (
    CONCERNS_CHANGED,
    DESCRIPTIONS_CHANGED,
    GROUPS_CHANGED,
    GROUPS_META,
    NAME_FIELD,
    SERVERS_CHANGED,
    Catalog,
    Offer,
    Primitive,
    PrimitiveKind,
)
from app.core.catalog.servers import SEPARATOR
from app.core.client_features import NO_FEATURES, ClientFeatures
from app.core.errors import ServiceError
from app.core.events import Changed
from app.core.tools.disclosure import ToolDescription, short_form
from app.core.tools.server_texts import cleaned_definition
from app.services.catalog.concerns import ConcernService
from app.services.catalog.descriptions import DescriptionService
from app.services.catalog.group_trees import GroupTrees
from app.services.servers.tenant_upstreams import Approved
from app.services.servers.upstreams import UpstreamService
from app.store.changes import EVERYTHING

LISTS: Final = frozenset({*(kind.value for kind in NAME_FIELD), "group"})
"""The lists announced to clients if it is unknown which of them changed."""

_KINDS = frozenset({SERVERS_CHANGED, GROUPS_CHANGED, CONCERNS_CHANGED, DESCRIPTIONS_CHANGED})
_OUR_PREFIX: Final = "dev.sluice/"
_BUILD_DELAY_S = 0.05
_RETRY_S = 1.0
_POLL_S = 1.0

log = logging.getLogger("sluice.catalogs")

Subscriber = Callable[[str, frozenset[str]], None]
"""Called with the tenant and the names of those ``Catalog.fingerprints`` that changed."""


@dataclass(frozen=True, slots=True)
class OperatorWords:
    """What operators configured for a tenant's primitives; equal if it has the same content."""

    tree: GroupTree = field(compare=False)
    groups: Mapping[str, GroupDefinition]
    concerns: ConcernTable
    descriptions: Mapping[str, ToolDescription]


@dataclass(eq=False, slots=True)
class CatalogService:
    """Keeps one catalog for each tenant that was requested; subscribe ``changed`` to announced changes.

    A stale catalog is built again at the next request, or soon after the change if none comes, so that open streams
    are notified.
    """

    upstreams: UpstreamService
    groups: GroupTrees
    concerns: ConcernService
    descriptions: DescriptionService
    middlewares: Sequence[str] = ()
    poll_s: float = _POLL_S
    _catalogs: dict[str, Catalog] = field(default_factory=dict)
    _operator_words: dict[str, OperatorWords] = field(default_factory=dict)
    _stale: set[str] = field(default_factory=set)
    _building: dict[str, "asyncio.Task[Catalog]"] = field(default_factory=dict)
    _soon: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    _subscribers: list[Subscriber] = field(default_factory=list)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call ``subscriber`` whenever a tenant's lists have changed."""
        self._subscribers.append(subscriber)

    async def get(self, tenant: str, features: ClientFeatures = NO_FEATURES) -> Catalog:
        """Return what the tenant's servers offer now, also to clients with these features."""
        if features and await self.upstreams.listed_for(tenant, features):
            self.mark_stale(tenant)
        running = self._building.get(tenant)
        if running is None:
            catalog = self._catalogs.get(tenant)
            if catalog is not None and tenant not in self._stale:
                return catalog
            # Not in the task: a change before the task's first step would count as one that the task has seen.
            self._stale.discard(tenant)
            running = self._building[tenant] = asyncio.create_task(self._rebuild(tenant))
            running.add_done_callback(lambda task: self._ended(tenant, task))
        # A reader that is cancelled must not cancel the build for the others.
        return await asyncio.shield(running)

    def changed(self, changed: Changed) -> None:
        """Take note of an announced change."""
        if changed.kind == EVERYTHING:
            tenants: Iterable[str] = list(self._catalogs)
        elif changed.kind in _KINDS:
            tenants = list(self._catalogs) if changed.tenant is None else [changed.tenant]
        else:
            return
        for tenant in tenants:
            self.mark_stale(tenant)

    def mark_stale(self, tenant: str) -> None:
        """Build the tenant's catalog again, because its servers or their configuration changed."""
        if tenant not in self._catalogs:
            # The catalog before is unknown, but its streams must be notified. A first build under way is not kept.
            self._building.pop(tenant, None)
            self._notify(tenant, LISTS)
            return
        self._stale.add(tenant)
        self._building.pop(tenant, None)
        soon = self._soon.get(tenant)
        if soon is None or soon.done():
            self._soon[tenant] = asyncio.create_task(self._build_soon(tenant))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Poll for changes that are not announced: on SQLite, those made by commands on the host."""
        async with meanwhile(self._watch(), name="catalogs"):
            yield

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.poll_s)
            for tenant, before in list(self._operator_words.items()):
                try:
                    now = await self._read(tenant)
                except Exception as error:  # noqa: BLE001 - one failed poll must not end the watch
                    log.warning("a change could not be looked for: %s", type(error).__name__)
                    continue
                if now != before and self._operator_words.get(tenant) is before:
                    self.mark_stale(tenant)

    async def _build_soon(self, tenant: str) -> None:
        await asyncio.sleep(_BUILD_DELAY_S)
        while tenant in self._stale:
            try:
                await self.get(tenant)
            except ServiceError as error:
                log.warning("a catalog could not be built: %s", error.code)
                await asyncio.sleep(_RETRY_S)

    async def _rebuild(self, tenant: str) -> Catalog:
        this_task = asyncio.current_task()
        try:
            operator_words = await self._read(tenant)
            catalog = assembled(
                self.upstreams.approved(tenant),
                operator_words.tree,
                operator_words.concerns,
                operator_words.descriptions,
                self.middlewares,
            )
        except BaseException:
            self._stale.add(tenant)
            raise
        before = self._catalogs.get(tenant)
        if self._building.get(tenant) is not this_task:
            return catalog  # stale before it was ready: returned to those who waited, but not kept
        self._catalogs[tenant], self._operator_words[tenant] = catalog, operator_words
        if before is not None:
            changed = frozenset(
                name for name, digest in catalog.fingerprints.items() if before.fingerprints[name] != digest
            )
            if changed:
                self._notify(tenant, changed)
        return catalog

    def _ended(self, tenant: str, task: "asyncio.Task[Catalog]") -> None:
        if self._building.get(tenant) is task:
            del self._building[tenant]
        if not task.cancelled():
            task.exception()  # its readers got it; without readers it must not be reported as unhandled

    def _notify(self, tenant: str, changed: frozenset[str]) -> None:
        for subscriber in self._subscribers:
            subscriber(tenant, changed)

    async def _read(self, tenant: str) -> OperatorWords:
        tree = await self.groups.tree(tenant)
        table = await self.concerns.table(tenant)
        return OperatorWords(tree, tree.groups, table, await self.descriptions.descriptions(tenant))


def assembled(
    approved: Approved,
    tree: GroupTree,
    table: ConcernTable,
    described: Mapping[str, ToolDescription],
    middlewares: Sequence[str] = (),
) -> Catalog:
    """Return the catalog of the approved offers of a tenant's servers."""
    naming = exposed(
        approved.offers, namespaced=approved.namespaced, aliases=approved.aliases, separator=SEPARATOR
    )
    primitives: dict[PrimitiveKind, dict[str, Primitive]] = {kind: {} for kind in NAME_FIELD}
    for offer, name in naming.names:
        staged = approved.disclosure.get(offer.server) == "staged"
        primitives[offer.kind][name] = _primitive(offer, name, staged, tree, table, described.get(name))
    return Catalog(
        primitives=primitives,
        groups=tree.wire(),
        group_parents={name: tree.upward({name}) for name in tree.wire()},
        middleware_groups={
            name: direct
            for name in middlewares
            if (direct := tree.direct(PrimitiveKind.MIDDLEWARE, name, None))
        },
        shadowed=tuple(naming.shadowed),
    )


def _primitive(
    offer: Offer,
    name: str,
    staged: bool,
    tree: GroupTree,
    table: ConcernTable,
    described: ToolDescription | None,
) -> Primitive:
    groups = tree.direct(offer.kind, name, offer.server)
    definition = {**cleaned_definition(offer.definition), NAME_FIELD[offer.kind]: name}
    server_meta = definition.pop("_meta", None)
    meta: dict[str, Any] = dict(server_meta) if isinstance(server_meta, Mapping) else {}
    # Only we set groups: a server that could name groups would place its tools where access is granted. The same
    # applies to members with our own prefix.
    meta = {
        key: value for key, value in meta.items() if key != GROUPS_META and not key.startswith(_OUR_PREFIX)
    }
    if groups:
        meta[GROUPS_META] = list(groups)
    if meta:
        definition["_meta"] = meta
    tool = offer.kind is PrimitiveKind.TOOL
    return Primitive(
        kind=offer.kind,
        server=offer.server,
        own_name=offer.own_name,
        name=name,
        definition=definition,
        digest=offer.digest,
        groups=groups,
        within=tree.upward(groups),
        concerns=table.mapping_of(offer.kind, name, meta),
        short=short_form(definition, described) if tool else None,
        staged=staged and tool,
        listed_to=offer.listed_to,
    )
