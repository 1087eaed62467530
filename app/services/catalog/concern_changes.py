"""Changes of concerns and mappings: their effect on the others, and how they are stored."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

from app.core.catalog.concerns import MAX_CONCERNS, ConcernDefinition, ConcernMapping
from app.core.catalog.primitives import CONCERNS_CHANGED, PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError, TooLargeError
from app.core.events import Changed
from app.store.catalog.concerns import (
    ConcernTransaction,
    Origin,
    StoredConcern,
    StoredMapping,
    list_concerns,
    list_mappings,
    lock_concerns,
    put_concern,
    put_mapping,
    remove_concern,
    remove_mapping,
)
from app.store.changes import announce

MAX_MAPPINGS: Final = 5000
_MAX_NAMED: Final = 10
MappingKey = tuple[PrimitiveKind, str]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound="ConcernInfo | MappingInfo")


class ConcernInfo(NamedTuple):
    """A definition as operators see it."""

    definition: ConcernDefinition
    origin: Origin
    created: datetime
    updated: datetime


class MappingInfo(NamedTuple):
    """A mapping as operators see it."""

    mapping: ConcernMapping
    origin: Origin
    created: datetime
    updated: datetime


@dataclass(frozen=True, slots=True)
class ConcernState:
    """All definitions and mappings of a tenant, by name."""

    concerns: Mapping[str, ConcernInfo]
    mappings: Mapping[MappingKey, MappingInfo]

    @property
    def definitions(self) -> dict[str, ConcernDefinition]:
        """Return only the definitions, by name."""
        return {name: info.definition for name, info in self.concerns.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """The names of what a change stores; a mapping's is "kind name". ``unchanged`` are those of the same origin."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Return whether anything changes."""
        return bool(self.created or self.updated or self.removed)


class ConcernPlan(NamedTuple):
    """The changes of definitions and of mappings."""

    concerns: Difference
    mappings: Difference


async def read_state(tx: ConcernTransaction, tenant: str) -> ConcernState:
    """Return the current state."""
    concerns = {stored.name: concern_info(stored) for stored in await list_concerns(tx, tenant)}
    mappings = {
        (stored.kind, stored.name): mapping_info(stored) for stored in await list_mappings(tx, tenant)
    }
    return ConcernState(concerns, mappings)


def concern_info(stored: StoredConcern) -> ConcernInfo:
    """Return a stored definition as operators see it."""
    definition = ConcernDefinition.model_validate({"name": stored.name, **stored.document})
    return ConcernInfo(definition, stored.origin, stored.created, stored.updated)


def mapping_info(stored: StoredMapping) -> MappingInfo:
    """Return a stored mapping as operators see it."""
    mapping = ConcernMapping(kind=stored.kind, name=stored.name, concerns=dict(stored.document))
    return MappingInfo(mapping, stored.origin, stored.created, stored.updated)


async def store_concerns(
    tx: ConcernTransaction,
    tenant: str,
    definitions: Sequence[ConcernDefinition],
    mappings: Sequence[ConcernMapping],
    origin: Origin,
    moment: datetime,
    *,
    dry_run: bool = False,
    force: bool = False,
) -> ConcernPlan:
    """Replace all definitions and mappings of one origin in the given transaction, and announce it.

    Those of another origin stay; if a name belongs to one of them, the new one replaces it. Errors have pointers
    into ``{"concerns": [...], "concernMappings": [...]}``. Mappings that stay but no longer fit are a ConflictError;
    ``force`` removes what does not fit from them. ``dry_run`` only returns what would change.
    """
    _check_unique([definition.name for definition in definitions], "/concerns")
    _check_unique([(definition.kind, definition.name) for definition in mappings], "/concernMappings")
    if not dry_run:
        await lock_concerns(tx, tenant)
    before = await read_state(tx, tenant)
    new_concerns = {
        definition.name: ConcernInfo(definition, origin, moment, moment) for definition in definitions
    }
    new_mappings = {
        (definition.kind, definition.name): MappingInfo(definition, origin, moment, moment)
        for definition in mappings
    }
    after = ConcernState(
        {**_of_others(before.concerns, origin), **new_concerns},
        {**_of_others(before.mappings, origin), **new_mappings},
    )
    for number, mapping in enumerate(mappings):
        check_mapping(mapping, after.definitions, f"/concernMappings/{number}")
    after = fitted(after, force=force)
    plan = ConcernPlan(
        _difference(before.concerns, after.concerns, origin, str),
        _difference(before.mappings, after.mappings, origin, lambda key: f"{key[0]} {key[1]}"),
    )
    if not dry_run:
        await write_state(tx, tenant, before, after)
    return plan


def check_mapping(
    mapping: ConcernMapping, definitions: Mapping[str, ConcernDefinition], pointer: str = ""
) -> None:
    """Refuse a mapping that names a concern or a value that is not declared."""
    for name, mapped in mapping.concerns.items():
        definition = definitions.get(name)
        if definition is None:
            raise InvalidArgumentsError(
                "No concern of this name is declared; declare it first.",
                details={"pointer": f"{pointer}/concerns/{name}"},
            )
        misfit = definition.misfit(mapped)
        if misfit is not None:
            raise InvalidArgumentsError(
                "This is not one of the values that the concern declares.",
                details={"pointer": f"{pointer}/concerns/{name}{misfit}"},
            )


def fitted(after: ConcernState, *, force: bool) -> ConcernState:
    """Return the state with every mapping fitting the definitions, or refuse a mapping that does not.

    With ``force`` what does not fit is removed: such a primitive is filtered less than before, never hidden.
    """
    if len(after.concerns) > MAX_CONCERNS or len(after.mappings) > MAX_MAPPINGS:
        raise TooLargeError(
            f"A tenant has at most {MAX_CONCERNS} concerns and {MAX_MAPPINGS} mappings.",
            details={"concerns": MAX_CONCERNS, "mappings": MAX_MAPPINGS},
        )
    definitions = after.definitions
    changed: dict[MappingKey, MappingInfo] = {}
    for key, info in after.mappings.items():
        kept = {
            name: fit
            for name, mapped in info.mapping.concerns.items()
            if (fit := _fit(definitions.get(name), mapped)) is not None
        }
        if kept != info.mapping.concerns:
            changed[key] = info._replace(mapping=info.mapping.model_copy(update={"concerns": kept}))
    if changed and not force:
        named = [f"{kind} {name}" for kind, name in list(changed)[:_MAX_NAMED]]
        raise ConflictError(
            "Mappings use what this change removes; change them first, or use force, which removes it from them.",
            details={"mappings": len(changed), "named": named},
        )
    return ConcernState(after.concerns, {**after.mappings, **changed})


async def write_state(tx: ConcernTransaction, tenant: str, before: ConcernState, after: ConcernState) -> None:
    """Store the differences between ``before`` and ``after``, and announce them if there are any."""
    gone = before.concerns.keys() - after.concerns.keys()
    unmapped = before.mappings.keys() - after.mappings.keys()
    changes = bool(gone or unmapped)
    for name in gone:
        await remove_concern(tx, tenant, name)
    for kind, name in unmapped:
        await remove_mapping(tx, tenant, kind, name)
    for name, info in after.concerns.items():
        if not _alike(before.concerns.get(name), info):
            changes = True
            document = info.definition.model_dump(mode="json", exclude={"name"})
            await put_concern(tx, tenant, StoredConcern(name, document, *info[1:]))
    for (kind, name), mapping_info in after.mappings.items():
        if not _alike(before.mappings.get((kind, name)), mapping_info):
            changes = True
            document = dict(mapping_info.mapping.concerns)
            await put_mapping(tx, tenant, StoredMapping(kind, name, document, *mapping_info[1:]))
    if changes:
        await announce(tx, Changed(CONCERNS_CHANGED, tenant))


def _alike(info: ConcernInfo | MappingInfo | None, other: ConcernInfo | MappingInfo) -> bool:
    """Return whether two have the same content and origin, whenever they were stored."""
    if info is None or info.origin != other.origin:
        return False
    return (
        info[0].model_dump_json() == other[0].model_dump_json()
    )  # in JSON true differs from 1, in Python it does not


def _of_others(infos: Mapping[K, V], origin: Origin) -> dict[K, V]:
    return {key: info for key, info in infos.items() if info.origin != origin}


def _difference(
    before: Mapping[Any, V], after: Mapping[Any, V], origin: Origin, spelled: Callable[[Any], str]
) -> Difference:
    difference = Difference(removed=sorted(spelled(key) for key in before.keys() - after.keys()))
    for key in sorted(after):
        if key not in before:
            difference.created.append(spelled(key))
        elif not _alike(before[key], after[key]):
            difference.updated.append(spelled(key))
        elif after[key].origin == origin:
            difference.unchanged.append(spelled(key))
    return difference


def _fit(definition: ConcernDefinition | None, mapped: Any) -> Any:
    """Return the part of a mapped value that the definition declares, None if there is none."""
    if definition is None:
        return None
    if isinstance(mapped, list):
        return [value for value in mapped if definition.includes(value)] or None
    return mapped if definition.misfit(mapped) is None else None


def _check_unique(names: Sequence[Hashable], pointer: str) -> None:
    seen: set[Hashable] = set()
    for number, name in enumerate(names):
        if name in seen:
            raise InvalidArgumentsError(
                "This name is used twice.", details={"pointer": f"{pointer}/{number}/name"}
            )
        seen.add(name)
