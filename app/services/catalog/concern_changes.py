"""What a change of concerns or of mappings does to the rest, and how it is stored."""

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
_NAMED: Final = 10
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
        """Return the definitions alone."""
        return {name: one.definition for name, one in self.concerns.items()}


@dataclass(frozen=True, slots=True)
class Difference:
    """What storing changes, by name; a mapping's is "kind name". ``unchanged`` are those of the same origin."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Return whether anything is other than before."""
        return bool(self.created or self.updated or self.removed)


class ConcernPlan(NamedTuple):
    """What storing changes of the definitions and of the mappings."""

    concerns: Difference
    mappings: Difference


async def read_state(tx: ConcernTransaction, tenant: str) -> ConcernState:
    """Return what holds now."""
    concerns = {each.name: concern_info(each) for each in await list_concerns(tx, tenant)}
    mappings = {(each.kind, each.name): mapping_info(each) for each in await list_mappings(tx, tenant)}
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
    """Replace all definitions and mappings of one origin, in a transaction of the caller's, and announce it.

    What another origin holds stays; where a name is taken by it, the new one takes over. Faults have pointers
    into ``{"concerns": [...], "concernMappings": [...]}``. Mappings that stay and fit no more are a
    ConflictError; ``force`` takes what does not fit out of them. ``dry_run`` only says what would change.
    """
    _check_unique([one.name for one in definitions], "/concerns")
    _check_unique([(one.kind, one.name) for one in mappings], "/concernMappings")
    if not dry_run:
        await lock_concerns(tx, tenant)
    held = await read_state(tx, tenant)
    new_concerns = {one.name: ConcernInfo(one, origin, moment, moment) for one in definitions}
    new_mappings = {(one.kind, one.name): MappingInfo(one, origin, moment, moment) for one in mappings}
    after = ConcernState(
        {**_of_others(held.concerns, origin), **new_concerns},
        {**_of_others(held.mappings, origin), **new_mappings},
    )
    for number, mapping in enumerate(mappings):
        check_mapping(mapping, after.definitions, f"/concernMappings/{number}")
    after = fitted(after, force=force)
    plan = ConcernPlan(
        _difference(held.concerns, after.concerns, origin, str),
        _difference(held.mappings, after.mappings, origin, lambda key: f"{key[0]} {key[1]}"),
    )
    if not dry_run:
        await write_state(tx, tenant, held, after)
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
                "This is none of the values that the concern declares.",
                details={"pointer": f"{pointer}/concerns/{name}{misfit}"},
            )


def fitted(after: ConcernState, *, force: bool) -> ConcernState:
    """Return the state so that every mapping fits the definitions, or refuse one that does not.

    With ``force`` what does not fit is taken out: such a primitive is filtered less than before, never hidden.
    """
    if len(after.concerns) > MAX_CONCERNS or len(after.mappings) > MAX_MAPPINGS:
        raise TooLargeError(
            f"A tenant has at most {MAX_CONCERNS} concerns and {MAX_MAPPINGS} mappings.",
            details={"concerns": MAX_CONCERNS, "mappings": MAX_MAPPINGS},
        )
    definitions = after.definitions
    changed: dict[MappingKey, MappingInfo] = {}
    for key, one in after.mappings.items():
        kept = {
            name: fit
            for name, mapped in one.mapping.concerns.items()
            if (fit := _fit(definitions.get(name), mapped)) is not None
        }
        if kept != one.mapping.concerns:
            changed[key] = one._replace(mapping=one.mapping.model_copy(update={"concerns": kept}))
    if changed and not force:
        named = [f"{kind} {name}" for kind, name in list(changed)[:_NAMED]]
        raise ConflictError(
            "Mappings use what this change takes away; change them first, or force it, which takes it out of them.",
            details={"mappings": len(changed), "named": named},
        )
    return ConcernState(after.concerns, {**after.mappings, **changed})


async def write_state(tx: ConcernTransaction, tenant: str, held: ConcernState, after: ConcernState) -> None:
    """Store what ``after`` has otherwise than ``held``, and announce it where that is anything."""
    gone = held.concerns.keys() - after.concerns.keys()
    unmapped = held.mappings.keys() - after.mappings.keys()
    changes = bool(gone or unmapped)
    for name in gone:
        await remove_concern(tx, tenant, name)
    for kind, name in unmapped:
        await remove_mapping(tx, tenant, kind, name)
    for name, one in after.concerns.items():
        if not _alike(held.concerns.get(name), one):
            changes = True
            document = one.definition.model_dump(mode="json", exclude={"name"})
            await put_concern(tx, tenant, StoredConcern(name, document, *one[1:]))
    for (kind, name), found in after.mappings.items():
        if not _alike(held.mappings.get((kind, name)), found):
            changes = True
            document = dict(found.mapping.concerns)
            await put_mapping(tx, tenant, StoredMapping(kind, name, document, *found[1:]))
    if changes:
        await announce(tx, Changed(CONCERNS_CHANGED, tenant))


def _alike(one: ConcernInfo | MappingInfo | None, other: ConcernInfo | MappingInfo) -> bool:
    """Return whether two say the same and belong to the same origin, whenever they were stored."""
    if one is None or one.origin != other.origin:
        return False
    return one[0].model_dump_json() == other[0].model_dump_json()  # where true is not 1, as it is in Python


def _of_others(held: Mapping[K, V], origin: Origin) -> dict[K, V]:
    return {key: one for key, one in held.items() if one.origin != origin}


def _difference(
    held: Mapping[Any, V], after: Mapping[Any, V], origin: Origin, spelled: Callable[[Any], str]
) -> Difference:
    found = Difference(removed=sorted(spelled(key) for key in held.keys() - after.keys()))
    for key in sorted(after):
        if key not in held:
            found.created.append(spelled(key))
        elif not _alike(held[key], after[key]):
            found.updated.append(spelled(key))
        elif after[key].origin == origin:
            found.unchanged.append(spelled(key))
    return found


def _fit(definition: ConcernDefinition | None, mapped: Any) -> Any:
    """Return what of a mapped value the definition declares, None where that is nothing."""
    if definition is None:
        return None
    if isinstance(mapped, list):
        return [one for one in mapped if definition.holds(one)] or None
    return mapped if definition.misfit(mapped) is None else None


def _check_unique(names: Sequence[Hashable], pointer: str) -> None:
    seen: set[Hashable] = set()
    for number, name in enumerate(names):
        if name in seen:
            raise InvalidArgumentsError(
                "This name was given before.", details={"pointer": f"{pointer}/{number}/name"}
            )
        seen.add(name)
