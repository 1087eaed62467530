"""What one caller may see of its tenant's catalog, and the lists made of that; nothing here asks a server."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from app.core.access import Caller, Role
from app.core.catalog.primitives import CONCERNS_META, NAME_FIELD, Catalog, Primitive, PrimitiveKind
from app.core.contracts.policy import Grant, Policy
from app.core.request import RequestInfo
from app.core.strictjson import dumps
from app.core.tools.disclosure import staged_for
from app.services.access.policies import PolicyService
from app.services.access.traffic import Traffic
from app.services.audit.audit import AuditService

USERS: Final = (Role.INVOKER, Role.RESTORER)
"""Who may list and use primitives."""

_TENANTS = 1024
_VIEWS_PER_TENANT = 256
_LISTS_PER_VIEW = 128
_NARROWED_PER_VIEW = 64

T = TypeVar("T")
V = TypeVar("V")


class Catalogs(Protocol):
    """Where the catalog of a tenant comes from."""

    async def get(self, tenant: str) -> Catalog:
        """Return what the tenant's servers offer now."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Leaves primitives out of a list; ``key`` spells what ``keeps`` depends on, the same in every process."""

    key: str
    keeps: Callable[[Primitive], bool]


@dataclass(frozen=True, slots=True)
class Extra:
    """Definitions of our own behind those of the servers; ``key`` spells what they depend on."""

    key: str
    definitions: Sequence[Mapping[str, Any]]


NO_EXTRA: Final = Extra("", ())


@dataclass(frozen=True, slots=True)
class Entry:
    """One element of a list: the definition and its JSON."""

    definition: Mapping[str, Any]
    encoded: bytes


@dataclass(frozen=True, eq=False)
class Listed:
    """A whole list in its stable order; ``fingerprint`` names it and what it was narrowed by, for cursors."""

    entries: tuple[Entry, ...]
    fingerprint: bytes

    @cached_property
    def definitions(self) -> tuple[Mapping[str, Any], ...]:
        """Return the definitions of all entries, always as the same object."""
        return tuple(entry.definition for entry in self.entries)


class _Recent(Generic[V]):
    """Remembers the values that were used last."""

    __slots__ = ("_size", "_values")

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        found = self._values.get(key)
        if found is not None:
            self._values.move_to_end(key)
        return found

    def put(self, key: Hashable, value: V) -> V:
        self._values[key] = value
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        return value


@dataclass(frozen=True, eq=False)
class CallerView:
    """What one caller may see and use: the same for lists, calls and reads.

    ``restricted`` says that grants decide; where they do not, all callers of a tenant share one view.
    """

    catalog: Catalog
    policy: Policy
    policy_version: int
    primitives: Mapping[PrimitiveKind, Mapping[str, Primitive]]
    restricted: bool
    lists: _Recent[Listed] = field(default_factory=lambda: _Recent(_LISTS_PER_VIEW), repr=False)
    narrowed: "_Recent[CallerView]" = field(default_factory=lambda: _Recent(_NARROWED_PER_VIEW), repr=False)
    facts: dict[str, Any] = field(default_factory=dict, repr=False)

    def of(self, kind: PrimitiveKind) -> Mapping[str, Primitive]:
        """Return the visible primitives of a kind by exposed name."""
        return self.primitives.get(kind, {})

    def find(self, kind: PrimitiveKind, name: str) -> Primitive | None:
        """Return the primitive of that exposed name if the caller may use it."""
        return self.of(kind).get(name)

    @cached_property
    def all(self) -> tuple[Primitive, ...]:
        """Return every visible primitive."""
        return tuple(one for found in self.primitives.values() for one in found.values())

    def within(self, group: str) -> "CallerView":
        """Return the view of the endpoint of a group: only what is in it, or in one below it, exists there."""
        return self.narrowed.get(group) or self.narrowed.put(group, _narrowed(self, group))

    def remembered(self, name: str, make: Callable[["CallerView"], T]) -> T:
        """Return what ``make`` says of this view, asked once."""
        if name not in self.facts:
            self.facts[name] = make(self)
        found: T = self.facts[name]
        return found

    @cached_property
    def servers(self) -> frozenset[str]:
        """Return the servers of which the caller may use anything."""
        return frozenset(one.server for one in self.all)


@dataclass(slots=True)
class _Tenant:
    """The views that were made of one catalog under one version of the policy."""

    catalog: Catalog
    version: int
    views: _Recent[CallerView] = field(default_factory=lambda: _Recent(_VIEWS_PER_TENANT))


@dataclass(frozen=True, slots=True)
class ListingService:
    """Makes views and lists and remembers them until the catalog or the policy is another."""

    catalogs: Catalogs
    policies: PolicyService
    audit: AuditService
    traffic: Traffic
    tenants: _Recent[_Tenant] = field(default_factory=lambda: _Recent(_TENANTS))
    shown: WeakKeyDictionary[Primitive, dict[tuple[bool, bool], Entry]] = field(
        default_factory=WeakKeyDictionary
    )

    async def view(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        group: str | None = None,
        action: str = "primitives.list",
    ) -> CallerView:
        """Return what the caller may see now, at the endpoint of ``group``; it needs one of the roles in ``USERS``."""
        if caller.roles.isdisjoint(USERS):
            async with self.audit.refusals(caller, action, request):
                caller.require(*USERS)
        version, policy = await self.policies.get(caller.tenant)
        catalog = await self.catalogs.get(caller.tenant)
        known = self.tenants.get(caller.tenant)
        if known is None or known.catalog is not catalog or known.version != version:
            known = self.tenants.put(caller.tenant, _Tenant(catalog, version))
        key = None if policy.grants is None else (caller.key_id, caller.roles)
        view = known.views.get(key) or known.views.put(key, _view(catalog, version, policy, caller))
        return view if group is None else view.within(group)

    async def admitted(
        self, caller: Caller, request: RequestInfo | None = None, group: str | None = None
    ) -> CallerView:
        """Return the view for a request that counts against the tenant's rate."""
        view = await self.view(caller, request, group)
        self.traffic.spend(caller.tenant, view.policy.limits)
        return view

    async def visible_tools(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Return the definitions of the tools that ``caller`` sees, those described in two stages in the first."""
        view = await self.view(caller)
        said = view.policy.disclosure.keys.get(caller.key_id) or view.policy.disclosure.default
        return view.remembered(f"tool definitions {said}", lambda one: _tool_definitions(one, caller))

    def listed(
        self,
        view: CallerView,
        kind: PrimitiveKind,
        filters: Sequence[Filter] = (),
        *,
        short: Filter | None = None,
        extra: Extra = NO_EXTRA,
    ) -> Listed:
        """Return a list of the view, narrowed by ``filters``; those that ``short`` keeps in their short form."""
        config = (kind.value, *(one.key for one in filters), short.key if short else "", extra.key)
        return view.lists.get(config) or view.lists.put(
            config, self._made(view, kind, filters, short, extra, config)
        )

    def _made(
        self,
        view: CallerView,
        kind: PrimitiveKind,
        filters: Sequence[Filter],
        short: Filter | None,
        extra: Extra,
        config: tuple[str, ...],
    ) -> Listed:
        expose = view.policy.concerns.expose
        entries = [
            self._entry(one, short=short is not None and short.keeps(one), expose=expose)
            for one in view.of(kind).values()
            if all(wanted.keeps(one) for wanted in filters)
        ]
        entries += [Entry(one, dumps(one)) for one in extra.definitions]
        name = NAME_FIELD[kind]
        named = dumps([*config, *(entry.definition[name] for entry in entries)])
        return Listed(tuple(entries), hashlib.sha256(named).digest())

    def _entry(self, primitive: Primitive, *, short: bool, expose: bool) -> Entry:
        forms = self.shown.setdefault(primitive, {})
        short = short and primitive.short is not None
        entry = forms.get((short, expose))
        if entry is None:
            definition = shown_definition(primitive, short=short, expose=expose)
            entry = forms[short, expose] = Entry(definition, dumps(definition))
        return entry


def shown_definition(primitive: Primitive, *, short: bool, expose: bool) -> Mapping[str, Any]:
    """Return the definition as clients see it; its concerns only where ``expose``, and as they are mapped here."""
    definition = primitive.short if short and primitive.short is not None else primitive.definition
    given = definition.get("_meta") or {}
    concerns = dict(primitive.concerns) if expose else {}
    if not concerns and CONCERNS_META not in given:
        return definition
    meta = {key: value for key, value in given.items() if key != CONCERNS_META}
    if concerns:
        meta[CONCERNS_META] = concerns
    rest = {key: value for key, value in definition.items() if key != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def _tool_definitions(view: CallerView, caller: Caller) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        shown_definition(one, short=staged_for(view.policy, caller, one), expose=view.policy.concerns.expose)
        for one in view.of(PrimitiveKind.TOOL).values()
    )


def _view(catalog: Catalog, version: int, policy: Policy, caller: Caller) -> CallerView:
    if policy.grants is None:
        return CallerView(catalog, policy, version, catalog.primitives, restricted=False)
    mine = [one for one in policy.grants if _is_for(one, caller)]
    primitives = {
        kind: {name: one for name, one in found.items() if any(_grants(grant, one) for grant in mine)}
        for kind, found in catalog.primitives.items()
    }
    return CallerView(catalog, policy, version, primitives, restricted=True)


def _narrowed(view: CallerView, group: str) -> CallerView:
    primitives = {
        kind: {name: one for name, one in found.items() if group in one.within}
        for kind, found in view.primitives.items()
    }
    return CallerView(view.catalog, view.policy, view.policy_version, primitives, restricted=True)


def _is_for(grant: Grant, caller: Caller) -> bool:
    keyed = grant.keys is None or caller.key_id in grant.keys
    return keyed and (grant.roles is None or not caller.roles.isdisjoint(grant.roles))


def _grants(grant: Grant, primitive: Primitive) -> bool:
    return not primitive.within.isdisjoint(grant.groups) or any(
        member.matches(primitive.kind, primitive.name, primitive.server) for member in grant.members
    )
