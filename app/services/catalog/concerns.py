"""Concerns: read on every list, changed by operators and by the declarative file, preferred by callers."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.concern_configuration import (
    NOTHING_CONFIGURED,
    Effective,
    Layer,
    effective,
    replaced,
    requested_layer,
    session_layers,
)
from app.core.catalog.concerns import NO_CONCERNS, ConcernDefinition, ConcernMapping, ConcernTable
from app.core.catalog.primitives import CONCERNS_CHANGED, PrimitiveKind
from app.core.errors import NotFoundError
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.access.policies import PolicyService
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.services.catalog.concern_changes import (
    ConcernInfo,
    ConcernState,
    MappingInfo,
    MappingKey,
    check_mapping,
    concern_info,
    fitted,
    mapping_info,
    read_state,
    write_state,
)
from app.store.access.access import find_key
from app.store.catalog.concerns import (
    ConcernTransaction,
    find_preference,
    list_concerns,
    list_mappings,
    lock_concerns,
    put_preference,
)
from app.store.changes import EVERYTHING, announce
from app.store.database import Database

PREFERENCES_CHANGED = "concern preferences"
_STALE_S = 5.0
_CACHED_TENANTS = 1000
_CACHED_CALLERS = 10_000


class Preferences(NamedTuple):
    """A caller's preferences, and warnings about values that were not accepted as sent."""

    key_id: str
    concerns: Mapping[str, Any]
    warnings: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ConcernService:
    """Reads and changes concerns; subscribe ``changed`` to the announcements of other processes."""

    database: Database
    audit: AuditService
    policies: PolicyService
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    tables: ShortMemory[str, ConcernTable] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )
    preferred: ShortMemory[tuple[str, str], Mapping[str, Any]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_CALLERS)
    )

    async def table(self, tenant: str) -> ConcernTable:
        """Return the current definitions and mappings, from the cache while it is fresh."""
        table = self.tables.peek(tenant) or await self.tables.get(tenant, self._load)
        return table if table is not None else NO_CONCERNS

    async def effective(
        self, caller: Caller, remembered: Mapping[str, Any], request: Layer | None = None
    ) -> Effective:
        """Return what filters the lists of a caller whose session remembers ``remembered``.

        ``request`` is the layer of the request itself; there, a value that its concern does not allow is an error.
        """
        table = await self.table(caller.tenant)
        if not table.definitions and request is None:
            return NOTHING_CONFIGURED
        layers = [*([request] if request is not None else []), *session_layers(remembered)]
        if not replaced(remembered):
            layers.append(Layer(await self._preferred(caller.tenant, caller.key_id)))
        _, policy = await self.policies.get(caller.tenant)
        return effective(layers, table.definitions, apply_defaults=policy.concerns.apply_defaults)

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[ConcernInfo]:
        """Return the definitions of the caller's tenant ordered by name, those after ``after``."""
        async with self._reading(caller, "concerns.list", request) as tx:
            stored = await list_concerns(tx, caller.tenant, after=after, limit=limit)
        return [concern_info(stored_item) for stored_item in stored]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ConcernInfo:
        """Return one definition, or raise NotFoundError."""
        return _definition(await self._state(caller, "concerns.get", request), name)

    async def put(
        self,
        caller: Caller,
        definition: ConcernDefinition,
        request: RequestInfo | None = None,
        *,
        force: bool = False,
    ) -> tuple[ConcernInfo, bool]:
        """Declare a concern, or replace it; return it and whether it is new.

        Removing values that mappings use is a ConflictError; ``force`` removes them from the mappings too.
        """

        def change(before_state: ConcernState) -> ConcernState:
            before = before_state.concerns.get(definition.name)
            moment = self.now()
            info = ConcernInfo(definition, "api", before.created if before else moment, moment)
            return ConcernState({**before_state.concerns, definition.name: info}, before_state.mappings)

        before_state, after = await self._change(
            caller, "concerns.put", request, {"name": definition.name}, change, force=force
        )
        return after.concerns[definition.name], definition.name not in before_state.concerns

    async def delete(
        self, caller: Caller, name: str, request: RequestInfo | None = None, *, force: bool = False
    ) -> None:
        """Remove a concern; while mappings use it, this needs ``force``, which removes it from them."""

        def change(before_state: ConcernState) -> ConcernState:
            _definition(before_state, name)
            kept = {other: info for other, info in before_state.concerns.items() if other != name}
            return ConcernState(kept, before_state.mappings)

        await self._change(caller, "concerns.delete", request, {"name": name}, change, force=force)

    async def mappings(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> Sequence[MappingInfo]:
        """Return the mappings of the caller's tenant ordered by kind and name, those after ``after``."""
        async with self._reading(caller, "concerns.mappings.list", request) as tx:
            stored = await list_mappings(tx, caller.tenant, after=after, limit=limit)
        return [mapping_info(stored_item) for stored_item in stored]

    async def get_mapping(
        self, caller: Caller, kind: PrimitiveKind, name: str, request: RequestInfo | None = None
    ) -> MappingInfo:
        """Return the mapping of exactly that kind and name, or raise NotFoundError."""
        state = await self._state(caller, "concerns.mappings.get", request)
        return _mapping(state, (kind, name))

    async def put_mapping(
        self, caller: Caller, mapping: ConcernMapping, request: RequestInfo | None = None
    ) -> tuple[MappingInfo, bool]:
        """Map the primitives of a kind and name, or replace that; return it and whether it is new."""
        key = (mapping.kind, mapping.name)

        def change(before_state: ConcernState) -> ConcernState:
            check_mapping(mapping, before_state.definitions)
            before, moment = before_state.mappings.get(key), self.now()
            info = MappingInfo(mapping, "api", before.created if before else moment, moment)
            return ConcernState(before_state.concerns, {**before_state.mappings, key: info})

        details = {"kind": mapping.kind.value, "name": mapping.name, "concerns": len(mapping.concerns)}
        before_state, after = await self._change(caller, "concerns.mappings.put", request, details, change)
        return after.mappings[key], key not in before_state.mappings

    async def delete_mapping(
        self, caller: Caller, kind: PrimitiveKind, name: str, request: RequestInfo | None = None
    ) -> None:
        """Remove a mapping, or raise NotFoundError."""

        def change(before_state: ConcernState) -> ConcernState:
            _mapping(before_state, (kind, name))
            kept = {key: info for key, info in before_state.mappings.items() if key != (kind, name)}
            return ConcernState(before_state.concerns, kept)

        details = {"kind": kind.value, "name": name}
        await self._change(caller, "concerns.mappings.delete", request, details, change)

    async def preferences(
        self, caller: Caller, key_id: str, request: RequestInfo | None = None
    ) -> Preferences:
        """Return the preferences of a key: callers may read their own, operators those of every key of the tenant."""
        async with (
            self.audit.refusals(caller, "concerns.preferences.get", request),
            self.database.transaction(caller.tenant, write=False) as tx,
        ):
            await _check_key(tx, caller, key_id)
            stored = await find_preference(tx, caller.tenant, key_id) or {}
        table = await self.table(caller.tenant)
        return _preferences(key_id, Layer(stored), table.definitions)

    async def put_preferences(
        self, caller: Caller, key_id: str, raw: Any, request: RequestInfo | None = None
    ) -> Preferences:
        """Replace the preferences of a key; an empty object removes them. Values are checked as in an update."""
        async with (
            self.audit.refusals(caller, "concerns.preferences.put", request),
            self.database.transaction(caller.tenant) as tx,
        ):
            await _check_key(tx, caller, key_id)
            await lock_concerns(tx, caller.tenant)
            definitions = (await read_state(tx, caller.tenant)).definitions
            preferences = _preferences(key_id, requested_layer(raw, "/concerns"), definitions)
            await put_preference(tx, caller.tenant, key_id, preferences.concerns, self.now())
            details: dict[str, Any] = {"key": key_id, "concerns": len(preferences.concerns)}
            await self.audit.record_with(
                tx,
                self.audit.new_event(
                    caller, "concerns.preferences.put", OUTCOME_OK, request, details=details
                ),
            )
            await announce(tx, Changed(PREFERENCES_CHANGED, caller.tenant, key_id))
        self.preferred.forget((caller.tenant, key_id))
        return preferences

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == CONCERNS_CHANGED and changed.tenant is None):
            self.tables.forget_where(lambda _table: True)
        elif changed.kind == CONCERNS_CHANGED and changed.tenant is not None:
            self.tables.forget(changed.tenant)
        if changed.kind == EVERYTHING:
            self.preferred.forget_where(lambda _preferences: True)
        elif changed.kind == PREFERENCES_CHANGED and changed.tenant and changed.name:
            self.preferred.forget((changed.tenant, changed.name))

    async def _load(self, tenant: str) -> ConcernTable:
        async with self.database.transaction(tenant, write=False) as tx:
            state = await read_state(tx, tenant)
        mappings = (info.mapping for info in state.mappings.values())
        return ConcernTable.build(state.definitions.values(), mappings)

    async def _preferred(self, tenant: str, key_id: str) -> Mapping[str, Any]:
        async def load(name: tuple[str, str]) -> Mapping[str, Any]:
            async with self.database.transaction(name[0], write=False) as tx:
                return await find_preference(tx, *name) or {}

        return await self.preferred.get((tenant, key_id), load) or {}

    async def _state(self, caller: Caller, action: str, request: RequestInfo | None) -> ConcernState:
        async with self._reading(caller, action, request) as tx:
            return await read_state(tx, caller.tenant)

    @asynccontextmanager
    async def _reading(
        self, caller: Caller, action: str, request: RequestInfo | None
    ) -> AsyncIterator[ConcernTransaction]:
        async with self.audit.refusals(caller, action, request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            yield tx

    async def _change(
        self,
        caller: Caller,
        action: str,
        request: RequestInfo | None,
        details: Mapping[str, Any],
        change: Callable[[ConcernState], ConcernState],
        *,
        force: bool = False,
    ) -> tuple[ConcernState, ConcernState]:
        """Return the state before and after the change."""
        async with self.audit.refusals(caller, action, request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                await lock_concerns(tx, caller.tenant)
                before = await read_state(tx, caller.tenant)
                after = fitted(change(before), force=force)
                await write_state(tx, caller.tenant, before, after)
                event = self.audit.new_event(
                    caller, action, OUTCOME_OK, request, details={**details, "forced": force}
                )
                await self.audit.record_with(tx, event)
        self.tables.forget(caller.tenant)
        return before, after


def _preferences(key_id: str, layer: Layer, definitions: Mapping[str, ConcernDefinition]) -> Preferences:
    """Return what is stored of ``layer``: values that its concerns accept, and nulls, which stop a concern."""
    accepted = effective([layer], definitions)
    stopped = {name: None for name, value in layer.values.items() if value is None and name in definitions}
    return Preferences(key_id, {**stopped, **accepted.configuration}, accepted.warnings)


def _definition(state: ConcernState, name: str) -> ConcernInfo:
    if name not in state.concerns:
        raise NotFoundError("There is no such concern.")
    return state.concerns[name]


def _mapping(state: ConcernState, key: MappingKey) -> MappingInfo:
    if key not in state.mappings:
        raise NotFoundError("There is no such mapping.")
    return state.mappings[key]


async def _check_key(tx: ConcernTransaction, caller: Caller, key_id: str) -> None:
    """Allow callers their own preferences, and operators those of the tenant's keys; refuse all others."""
    if key_id == caller.key_id:
        return
    caller.require(Role.OPERATOR)
    if await find_key(tx, key_id, tenant_name=caller.tenant) is None:
        raise NotFoundError("There is no such key.")
