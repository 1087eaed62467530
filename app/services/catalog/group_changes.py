"""Changes of groups, checked as a whole, so that no group refers to a missing group or to itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.core.catalog.groups import MAX_GROUPS, MAX_MEMBERS, MAX_MEMBERS_IN_ALL, GroupDefinition, find_cycle
from app.core.catalog.primitives import GROUPS_CHANGED, PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError, TooLargeError
from app.core.events import Changed
from app.store.catalog.groups import (
    GroupTransaction,
    Origin,
    StoredGroup,
    add_group,
    list_groups,
    list_server_names,
    lock_groups,
    remove_group,
    update_group,
)
from app.store.changes import announce


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What storing a set of groups changes: names in alphabetical order."""

    created: list[str]
    updated: list[str]
    removed: list[str]
    unchanged: list[str]
    warnings: list[str] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Return whether anything changes."""
        return bool(self.created or self.updated or self.removed)


async def replace_groups(
    tx: GroupTransaction,
    tenant: str,
    definitions: Sequence[GroupDefinition],
    origin: Origin,
    moment: datetime,
    *,
    dry_run: bool = False,
) -> GroupPlan:
    """Make the groups of ``origin`` exactly ``definitions``; those of the other origin stay unless named.

    For the declarative file, in its own transaction, after its servers were stored there. Raises
    InvalidArgumentsError and ConflictError with pointers below ``/groups``; announces what it changed.
    """
    return await store_groups(
        tx, tenant, definitions, origin, moment, remove=lambda group: group.origin == origin, dry_run=dry_run
    )


async def store_groups(
    tx: GroupTransaction,
    tenant: str,
    definitions: Sequence[GroupDefinition],
    origin: Origin,
    moment: datetime,
    *,
    remove: Callable[[StoredGroup], bool] = lambda _group: False,
    dry_run: bool = False,
    pointer: Callable[[int], str] = lambda number: f"/groups/{number}",
    member: Callable[[int], str] = lambda number: f"/members/{number}",
) -> GroupPlan:
    """Create and replace groups in ``tx`` and announce it; ``remove`` chooses among the groups that are not named.

    ``pointer`` and ``member`` say where in the request the definition, and a member in it, of a number stands.
    """
    if not dry_run:
        await lock_groups(tx, tenant)
    stored = {stored_group.name: stored_group for stored_group in await list_groups(tx, tenant)}
    wanted = _by_name(definitions, pointer)
    gone = sorted(
        name for name, stored_group in stored.items() if name not in wanted and remove(stored_group)
    )
    kept = {name: definition_of(stored_group) for name, stored_group in stored.items() if name not in gone}
    check = _Check(kept, wanted, await list_server_names(tx, tenant), pointer, member)
    check.all(definitions)
    new = sorted(wanted.keys() - stored.keys())
    other = sorted(
        name for name in wanted if name in kept and wanted[name].declared() != kept[name].declared()
    )
    plan = GroupPlan(new, other, gone, sorted(wanted.keys() - {*new, *other}))
    if dry_run:
        return plan
    for name in gone:
        await remove_group(tx, tenant, name)
    for name in new:
        await add_group(tx, tenant, _stored(wanted[name], origin, moment, moment))
    for name in [*other, *(name for name in plan.unchanged if origin == "file" != stored[name].origin)]:
        await update_group(tx, tenant, _stored(wanted[name], origin, stored[name].created, moment))
    if plan.changes:
        await announce(tx, Changed(GROUPS_CHANGED, tenant))
    return plan


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks whether ``wanted`` can be stored beside the kept groups."""

    kept: Mapping[str, GroupDefinition]
    wanted: Mapping[str, GroupDefinition]
    servers: frozenset[str]
    pointer: Callable[[int], str]
    member: Callable[[int], str]

    def all(self, definitions: Sequence[GroupDefinition]) -> None:
        after = {**self.kept, **self.wanted}
        if len(after) > MAX_GROUPS:
            raise TooLargeError(
                f"There are at most {MAX_GROUPS} groups.", details={"limit": "groups", "maximum": MAX_GROUPS}
            )
        if sum(len(group.members) for group in after.values()) > MAX_MEMBERS_IN_ALL:
            raise TooLargeError(
                f"All groups together have at most {MAX_MEMBERS_IN_ALL} members; a pattern (`*`) names many at once.",
                details={"limit": "members in all groups", "maximum": MAX_MEMBERS_IN_ALL},
            )
        for number, definition in enumerate(definitions):
            self._members(self.pointer(number), definition, after)
        cycle = find_cycle({name: group.subgroups for name, group in after.items()})
        if cycle:
            number = next(at for at, definition in enumerate(definitions) if definition.name in cycle)
            alone = len(set(cycle)) == 1
            raise ConflictError(
                f"The group {cycle[0]} cannot be a member of itself."
                if alone
                else f"The groups would contain each other: {' > '.join(cycle)}.",
                details={"pointer": f"{self.pointer(number)}/members", "cycle": list(cycle)},
            )

    def _members(self, at: str, definition: GroupDefinition, after: Mapping[str, GroupDefinition]) -> None:
        if len(definition.members) > MAX_MEMBERS:
            raise TooLargeError(
                f"A group has at most {MAX_MEMBERS} members.",
                details={"limit": "members", "maximum": MAX_MEMBERS},
            )
        before = self.kept.get(definition.name)
        stored_members = set(before.members) if before is not None else set()
        for number, member in enumerate(definition.members):
            if member.kind is PrimitiveKind.GROUP and member.name not in after:
                raise InvalidArgumentsError(
                    "There is no group of that name.", details={"pointer": f"{at}{self.member(number)}/name"}
                )
            # A stored member may outlive its server, so that an export can always be imported again.
            if (
                member.server is not None
                and member.server not in self.servers
                and member not in stored_members
            ):
                raise InvalidArgumentsError(
                    "There is no server of that name.",
                    details={"pointer": f"{at}{self.member(number)}/server"},
                )


def _by_name(
    definitions: Sequence[GroupDefinition], pointer: Callable[[int], str]
) -> dict[str, GroupDefinition]:
    named: dict[str, GroupDefinition] = {}
    for number, definition in enumerate(definitions):
        if definition.name in named:
            raise InvalidArgumentsError(
                "Another group already has this name.", details={"pointer": f"{pointer(number)}/name"}
            )
        named[definition.name] = definition
    return named


def definition_of(stored: StoredGroup) -> GroupDefinition:
    """Return a stored group in the form in which operators write it."""
    return GroupDefinition.model_validate(
        {**stored.document, "name": stored.name, "members": list(stored.members)}
    )


def _stored(definition: GroupDefinition, origin: Origin, created: datetime, updated: datetime) -> StoredGroup:
    return StoredGroup(definition.name, definition.document(), definition.distinct, origin, created, updated)
