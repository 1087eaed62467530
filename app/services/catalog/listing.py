"""What one caller may see of its tenant's catalog, and the lists made from it; no server is contacted here."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from app.core.access import Caller, Role
from app.core.catalog.primitives import CONCERNS_META, NAME_FIELD, Catalog, Primitive, PrimitiveKind
from app.core.client_features import NO_FEATURES, ClientFeatures
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
    """The source of a tenant's catalog."""

    async def get(self, tenant: str, features: ClientFeatures = NO_FEATURES) -> Catalog:
        """Return what the tenant's servers offer now, also to clients with these features."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Leaves primitives out of a list; ``key`` identifies what ``keeps`` depends on, equal in every process."""

    key: str
    keeps: Callable[[Primitive], bool]


@dataclass(frozen=True, slots=True)
class Extra:
    """Definitions of our own, listed after those of the servers; ``key`` identifies what they depend on."""

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
    """A whole list in its stable order; ``fingerprint`` identifies it and its filters, for cursors."""

    entries: tuple[Entry, ...]
    fingerprint: bytes

    @cached_property
    def definitions(self) -> tuple[Mapping[str, Any], ...]:
        """Return the definitions of all entries, always as the same object."""
        return tuple(entry.definition for entry in self.entries)


class _Recent(Generic[V]):
    """Keeps the values that were used most recently."""

    __slots__ = ("_size", "_values")

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Hashable, value: V) -> V:
        self._values[key] = value
        while len(self._values) > self._size:
            self._values.popitem(last=False)
        return value


@dataclass(frozen=True, eq=False)
class CallerView:
    """What one caller may see and use: the same for lists, calls and reads.

    ``restricted``: grants decide what is visible; without grants, all callers of a tenant share one view.
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
        return tuple(primitive for by_name in self.primitives.values() for primitive in by_name.values())

    def within(self, group: str) -> "CallerView":
        """Return the view at the endpoint of a group: only what is in the group, or in one below it."""
        return self.narrowed.get(group) or self.narrowed.put(group, _narrowed_to(self, group))

    def remembered(self, name: str, make: Callable[["CallerView"], T]) -> T:
        """Return the result of ``make`` for this view, computed once."""
        if name not in self.facts:
            self.facts[name] = make(self)
        fact: T = self.facts[name]
        return fact

    @cached_property
    def servers(self) -> frozenset[str]:
        """Return the servers of which the caller may use anything."""
        return frozenset(primitive.server for primitive in self.all)


@dataclass(slots=True)
class _Tenant:
    """The views of one catalog under one version of the policy."""

    catalog: Catalog
    version: int
    views: _Recent[CallerView] = field(default_factory=lambda: _Recent(_VIEWS_PER_TENANT))


@dataclass(frozen=True, slots=True)
class ListingService:
    """Makes views and lists, and keeps them until the catalog or the policy changes."""

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
        features: ClientFeatures = NO_FEATURES,
    ) -> CallerView:
        """Return what the caller may see now, at the endpoint of ``group``; it needs one of the roles in ``USERS``.

        ``features`` of its client count where there is no request.
        """
        if caller.roles.isdisjoint(USERS):
            async with self.audit.refusals(caller, action, request):
                caller.require(*USERS)
        features = request.features if request is not None else features
        version, policy = await self.policies.get(caller.tenant)
        catalog = await self.catalogs.get(caller.tenant, features)
        if not catalog.differs_by_client:
            features = NO_FEATURES
        tenant = self.tenants.get(caller.tenant)
        if tenant is None or tenant.catalog is not catalog or tenant.version != version:
            tenant = self.tenants.put(caller.tenant, _Tenant(catalog, version))
        key = features, None if policy.grants is None else _rights(caller)
        view = tenant.views.get(key) or tenant.views.put(
            key, _make_view(catalog, version, policy, caller, features)
        )
        return view if group is None else view.within(group)

    async def admitted(
        self, caller: Caller, request: RequestInfo | None = None, group: str | None = None
    ) -> CallerView:
        """Return the view for a request that counts towards the tenant's rate limit."""
        view = await self.view(caller, request, group)
        self.traffic.spend(caller.tenant, view.policy.limits)
        return view

    async def visible_tools(
        self, caller: Caller, request: RequestInfo | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Return the definitions of the tools that ``caller`` sees; staged tools in short form."""
        view = await self.view(caller, request)
        stage = view.policy.disclosure.keys.get(caller.key_id) or view.policy.disclosure.default
        return view.remembered(
            f"tool definitions {stage}", lambda narrowed_view: _tool_definitions(narrowed_view, caller)
        )

    def listed(
        self,
        view: CallerView,
        kind: PrimitiveKind,
        filters: Sequence[Filter] = (),
        *,
        short: Filter | None = None,
        extra: Extra = NO_EXTRA,
    ) -> Listed:
        """Return a list of the view, narrowed by ``filters``; primitives that ``short`` keeps are in short form."""
        config = (
            kind.value,
            *(list_filter.key for list_filter in filters),
            short.key if short else "",
            extra.key,
        )
        return view.lists.get(config) or view.lists.put(
            config, self._make_list(view, kind, filters, short, extra, config)
        )

    def _make_list(
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
            self._entry(primitive, short=short is not None and short.keeps(primitive), expose=expose)
            for primitive in view.of(kind).values()
            if all(list_filter.keeps(primitive) for list_filter in filters)
        ]
        entries += [Entry(definition, dumps(definition)) for definition in extra.definitions]
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
    """Return the definition as clients see it; its concerns, as mapped here, only if ``expose``."""
    definition = primitive.short if short and primitive.short is not None else primitive.definition
    meta_of_server = definition.get("_meta") or {}
    concerns = dict(primitive.concerns) if expose else {}
    if not concerns and CONCERNS_META not in meta_of_server:
        return definition
    meta = {key: value for key, value in meta_of_server.items() if key != CONCERNS_META}
    if concerns:
        meta[CONCERNS_META] = concerns
    rest = {key: value for key, value in definition.items() if key != "_meta"}
    return {**rest, "_meta": meta} if meta else rest


def _tool_definitions(view: CallerView, caller: Caller) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        shown_definition(
            tool, short=staged_for(view.policy, caller, tool), expose=view.policy.concerns.expose
        )
        for tool in view.of(PrimitiveKind.TOOL).values()
    )


def _make_view(
    catalog: Catalog, version: int, policy: Policy, caller: Caller, features: ClientFeatures
) -> CallerView:
    listed = _listed_to(catalog, features)
    if policy.grants is None:
        return CallerView(catalog, policy, version, listed, restricted=False)
    # A service sees for an end user what both of them are granted, each by whichever grant it is.
    views = [[grant for grant in policy.grants if _applies_to(grant, caller)]]
    if caller.user_grants is not None:
        views.append([grant for grant in policy.grants if _applies_to_user(grant, caller)])
    primitives = {
        kind: {
            name: primitive
            for name, primitive in by_name.items()
            if all(any(_grants(grant, primitive) for grant in grants) for grants in views)
        }
        for kind, by_name in listed.items()
    }
    return CallerView(catalog, policy, version, primitives, restricted=True)


def _listed_to(catalog: Catalog, features: ClientFeatures) -> Mapping[PrimitiveKind, Mapping[str, Primitive]]:
    """Return the primitives that servers list to a client with these features."""
    if not catalog.differs_by_client:
        return catalog.primitives
    return {
        kind: {
            name: primitive
            for name, primitive in by_name.items()
            if primitive.listed_to is None or features in primitive.listed_to
        }
        for kind, by_name in catalog.primitives.items()
    }


def _narrowed_to(view: CallerView, group: str) -> CallerView:
    primitives = {
        kind: {name: primitive for name, primitive in by_name.items() if group in primitive.within}
        for kind, by_name in view.primitives.items()
    }
    return CallerView(view.catalog, view.policy, view.policy_version, primitives, restricted=True)


def _applies_to(grant: Grant, caller: Caller) -> bool:
    return caller.is_listed_itself(grant.keys) and _has_role(grant, caller)


def _applies_to_user(grant: Grant, caller: Caller) -> bool:
    return caller.is_user_listed(grant.keys) and _has_role(grant, caller)


def _has_role(grant: Grant, caller: Caller) -> bool:
    return grant.roles is None or not caller.roles.isdisjoint(grant.roles)


def _rights(caller: Caller) -> tuple[Any, ...]:
    """Return all of a caller on which its view hangs."""
    return caller.key_id, caller.roles, caller.grants, caller.user_grants


def _grants(grant: Grant, primitive: Primitive) -> bool:
    return not primitive.within.isdisjoint(grant.groups) or any(
        member.matches(primitive.kind, primitive.name, primitive.server) for member in grant.members
    )
