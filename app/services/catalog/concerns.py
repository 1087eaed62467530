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
_REMEMBERED_TENANTS = 1000
_REMEMBERED_CALLERS = 10_000


class Preferences(NamedTuple):
    """What a caller prefers, and what was not taken as it was said."""

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
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_REMEMBERED_TENANTS)
    )
    preferred: ShortMemory[tuple[str, str], Mapping[str, Any]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_REMEMBERED_CALLERS)
    )

    async def table(self, tenant: str) -> ConcernTable:
        """Return the definitions and mappings that hold now, from memory where that is fresh."""
        found = self.tables.peek(tenant) or await self.tables.get(tenant, self._load)
        return found if found is not None else NO_CONCERNS

    async def effective(
        self, caller: Caller, remembered: Mapping[str, Any], request: Layer | None = None
    ) -> Effective:
        """Return what filters the lists of a caller whose session remembers ``remembered``.

        ``request`` is what the request itself brings; a value that its concern refuses is an error there.
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
        """Return the definitions of the caller's tenant by name, those behind ``after``."""
        async with self._reading(caller, "concerns.list", request) as tx:
            stored = await list_concerns(tx, caller.tenant, after=after, limit=limit)
        return [concern_info(each) for each in stored]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> ConcernInfo:
        """Return one definition, or raise NotFoundError."""
        return _found(await self._state(caller, "concerns.get", request), name)

    async def put(
        self,
        caller: Caller,
        definition: ConcernDefinition,
        request: RequestInfo | None = None,
        *,
        force: bool = False,
    ) -> tuple[ConcernInfo, bool]:
        """Declare a concern, or replace it; return it and whether it is new.

        A change that takes values away which mappings use is a ConflictError; ``force`` takes them out of the
        mappings too.
        """

        def change(held: ConcernState) -> ConcernState:
            before = held.concerns.get(definition.name)
            moment = self.now()
            info = ConcernInfo(definition, "api", before.created if before else moment, moment)
            return ConcernState({**held.concerns, definition.name: info}, held.mappings)

        held, after = await self._change(
            caller, "concerns.put", request, {"name": definition.name}, change, force=force
        )
        return after.concerns[definition.name], definition.name not in held.concerns

    async def delete(
        self, caller: Caller, name: str, request: RequestInfo | None = None, *, force: bool = False
    ) -> None:
        """Take a concern back; while mappings use it, only with ``force``, which takes it out of them."""

        def change(held: ConcernState) -> ConcernState:
            _found(held, name)
            kept = {other: one for other, one in held.concerns.items() if other != name}
            return ConcernState(kept, held.mappings)

        await self._change(caller, "concerns.delete", request, {"name": name}, change, force=force)

    async def mappings(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: tuple[str, str] | None = None,
        limit: int | None = None,
    ) -> Sequence[MappingInfo]:
        """Return the mappings of the caller's tenant by kind and name, those behind ``after``."""
        async with self._reading(caller, "concerns.mappings.list", request) as tx:
            stored = await list_mappings(tx, caller.tenant, after=after, limit=limit)
        return [mapping_info(each) for each in stored]

    async def get_mapping(
        self, caller: Caller, kind: PrimitiveKind, name: str, request: RequestInfo | None = None
    ) -> MappingInfo:
        """Return the mapping of exactly that kind and name, or raise NotFoundError."""
        state = await self._state(caller, "concerns.mappings.get", request)
        return _mapped(state, (kind, name))

    async def put_mapping(
        self, caller: Caller, mapping: ConcernMapping, request: RequestInfo | None = None
    ) -> tuple[MappingInfo, bool]:
        """Map the primitives of a kind and name, or replace that; return it and whether it is new."""
        key = (mapping.kind, mapping.name)

        def change(held: ConcernState) -> ConcernState:
            check_mapping(mapping, held.definitions)
            before, moment = held.mappings.get(key), self.now()
            info = MappingInfo(mapping, "api", before.created if before else moment, moment)
            return ConcernState(held.concerns, {**held.mappings, key: info})

        details = {"kind": mapping.kind.value, "name": mapping.name, "concerns": len(mapping.concerns)}
        held, after = await self._change(caller, "concerns.mappings.put", request, details, change)
        return after.mappings[key], key not in held.mappings

    async def delete_mapping(
        self, caller: Caller, kind: PrimitiveKind, name: str, request: RequestInfo | None = None
    ) -> None:
        """Remove a mapping, or raise NotFoundError."""

        def change(held: ConcernState) -> ConcernState:
            _mapped(held, (kind, name))
            kept = {key: one for key, one in held.mappings.items() if key != (kind, name)}
            return ConcernState(held.concerns, kept)

        details = {"kind": kind.value, "name": name}
        await self._change(caller, "concerns.mappings.delete", request, details, change)

    async def preferences(
        self, caller: Caller, key_id: str, request: RequestInfo | None = None
    ) -> Preferences:
        """Return what a key prefers: anybody their own, an operator every key of the tenant."""
        async with (
            self.audit.refusals(caller, "concerns.preferences.get", request),
            self.database.transaction(caller.tenant, write=False) as tx,
        ):
            await _check_key(tx, caller, key_id)
            stored = await find_preference(tx, caller.tenant, key_id) or {}
        table = await self.table(caller.tenant)
        held = effective([Layer(stored)], table.definitions)
        return Preferences(key_id, held.configuration, held.warnings)

    async def put_preferences(
        self, caller: Caller, key_id: str, raw: Any, request: RequestInfo | None = None
    ) -> Preferences:
        """Replace what a key prefers; an empty object removes it. Values are judged as in an update."""
        async with (
            self.audit.refusals(caller, "concerns.preferences.put", request),
            self.database.transaction(caller.tenant) as tx,
        ):
            await _check_key(tx, caller, key_id)
            await lock_concerns(tx, caller.tenant)
            definitions = (await read_state(tx, caller.tenant)).definitions
            held = effective([requested_layer(raw, "/concerns")], definitions)
            await put_preference(tx, caller.tenant, key_id, held.configuration, self.now())
            details: dict[str, Any] = {"key": key_id, "concerns": len(held.configuration)}
            await self.audit.record_with(
                tx,
                self.audit.new_event(
                    caller, "concerns.preferences.put", OUTCOME_OK, request, details=details
                ),
            )
            await announce(tx, Changed(PREFERENCES_CHANGED, caller.tenant, key_id))
        self.preferred.forget((caller.tenant, key_id))
        return Preferences(key_id, held.configuration, held.warnings)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has overtaken."""
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
        mappings = (one.mapping for one in state.mappings.values())
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
        """Return what held before and what holds now."""
        async with self.audit.refusals(caller, action, request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                await lock_concerns(tx, caller.tenant)
                held = await read_state(tx, caller.tenant)
                after = fitted(change(held), force=force)
                await write_state(tx, caller.tenant, held, after)
                event = self.audit.new_event(
                    caller, action, OUTCOME_OK, request, details={**details, "forced": force}
                )
                await self.audit.record_with(tx, event)
        self.tables.forget(caller.tenant)
        return held, after


def _found(state: ConcernState, name: str) -> ConcernInfo:
    if name not in state.concerns:
        raise NotFoundError("There is no such concern.")
    return state.concerns[name]


def _mapped(state: ConcernState, key: MappingKey) -> MappingInfo:
    if key not in state.mappings:
        raise NotFoundError("There is no such mapping.")
    return state.mappings[key]


async def _check_key(tx: ConcernTransaction, caller: Caller, key_id: str) -> None:
    """Let callers reach their own preferences, and operators those of the tenant's keys."""
    if key_id == caller.key_id:
        return
    caller.require(Role.OPERATOR)
    if await find_key(tx, key_id, tenant_name=caller.tenant) is None:
        raise NotFoundError("There is no such key.")
