"""Groups of primitives: read on every list, changed by operators and by the declarative file."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.core.access import Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.catalog.groups import MAX_GROUPS, GroupDefinition, GroupTree
from app.core.catalog.primitives import GROUPS_CHANGED, NAME_FIELD, Catalog, Member, PrimitiveKind
from app.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    ServiceError,
)
from app.core.events import Changed
from app.core.request import RequestInfo
from app.services.audit.audit import AuditService
from app.services.catalog.group_changes import GroupPlan, definition_of, store_groups
from app.services.catalog.group_trees import GroupTrees
from app.services.data_files import DocumentFormat, read_document
from app.store.catalog.groups import (
    GroupTransaction,
    Origin,
    StoredGroup,
    list_group_parents,
    list_groups,
    lock_groups,
    remove_group,
)
from app.store.changes import announce
from app.store.database import Database

_MAX_WARNINGS: Final = 100

Warnings = list[str]


class GroupInfo(NamedTuple):
    """A group as operators see it; ``parents`` are the groups that it is a member of."""

    definition: GroupDefinition
    parents: tuple[str, ...]
    origin: Origin
    created: datetime
    updated: datetime


class SavedGroup(NamedTuple):
    """A stored group, whether it is new, and warnings for the operator."""

    group: GroupInfo
    created: bool
    warnings: list[str]


class GroupsDocument(BaseModel):
    """The document of an export or import, with the form of ``groups`` in the declarative file."""

    model_config = ConfigDict(extra="forbid")

    groups: list[GroupDefinition] = Field(max_length=MAX_GROUPS)


@dataclass(eq=False, slots=True)
class GroupService:
    """Reads and changes groups.

    ``catalog`` returns the present primitives, only for warnings: groups may name primitives that do not exist yet.
    """

    database: Database
    audit: AuditService
    trees: GroupTrees
    middlewares: Collection[str] = ()
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    catalog: Callable[[str], Awaitable[Catalog]] | None = None

    async def tree(self, tenant: str) -> GroupTree:
        """Return the current groups, from the cache while it is fresh."""
        return await self.trees.tree(tenant)

    async def list(
        self,
        caller: Caller,
        request: RequestInfo | None = None,
        *,
        after: str | None = None,
        limit: int | None = None,
    ) -> Sequence[GroupInfo]:
        """Return the groups of the caller's tenant ordered by name, those after ``after``."""
        async with self.audit.refusals(caller, "groups.list", request):
            caller.require(Role.OPERATOR)
        async with self.database.transaction(caller.tenant, write=False) as tx:
            stored = await list_groups(tx, caller.tenant, after=after, limit=limit)
            parents = await list_group_parents(
                tx, caller.tenant, [stored_group.name for stored_group in stored]
            )
        return [
            GroupInfo(
                definition_of(stored_group),
                parents[stored_group.name],
                stored_group.origin,
                stored_group.created,
                stored_group.updated,
            )
            for stored_group in stored
        ]

    async def get(self, caller: Caller, name: str, request: RequestInfo | None = None) -> GroupInfo:
        """Return one group, or raise NotFoundError."""
        return _named(await self.list(caller, request), name)

    async def put(
        self, caller: Caller, definition: GroupDefinition, request: RequestInfo | None = None
    ) -> SavedGroup:
        """Create a group, or replace it completely."""
        async with self.audit.refusals(caller, "groups.put", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                plan = await self._store(tx, caller.tenant, [definition], pointer=lambda _number: "")
                details = {"name": definition.name, "members": len(definition.distinct)}
                await self._record_change(tx, caller, "groups.put", request, details)
                saved = _named(_infos(await list_groups(tx, caller.tenant)), definition.name)
        self.trees.forget(caller.tenant)
        warnings = await self.warnings(caller.tenant, [definition])
        return SavedGroup(saved, created=bool(plan.created), warnings=warnings)

    async def change_members(
        self,
        caller: Caller,
        name: str,
        add: Sequence[Member],
        remove: Sequence[Member],
        request: RequestInfo | None = None,
    ) -> SavedGroup:
        """Add and remove members; adding a member again, or removing a non-member, changes nothing."""
        async with self.audit.refusals(caller, "groups.members", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                await lock_groups(tx, caller.tenant)
                before = _named(_infos(await list_groups(tx, caller.tenant)), name).definition
                kept = [member for member in before.members if member not in set(remove)]
                changed = _with_members(before, [*kept, *add])
                # New members follow the kept ones, so a fault can be mapped to its place in the request.
                pointer = _added_pointer(len(kept))
                await self._store(tx, caller.tenant, [changed], pointer=lambda _number: "", member=pointer)
                details = {"name": name, "added": len(add), "removed": len(remove)}
                await self._record_change(tx, caller, "groups.members", request, details)
                saved = _named(_infos(await list_groups(tx, caller.tenant)), name)
        self.trees.forget(caller.tenant)
        missing = [member for member in remove if member not in set(before.members)]
        warnings = [
            f"The {member.kind} {member.name} was not a member." for member in missing[:_MAX_WARNINGS]
        ]
        warnings += await self.warnings(caller.tenant, [_with_members(before, list(add))])
        return SavedGroup(saved, created=False, warnings=warnings[:_MAX_WARNINGS])

    async def delete(self, caller: Caller, name: str, request: RequestInfo | None = None) -> None:
        """Remove a group and its membership in others; its members continue to exist outside it."""
        async with self.audit.refusals(caller, "groups.delete", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant) as tx:
                await lock_groups(tx, caller.tenant)
                group = _named(_infos(await list_groups(tx, caller.tenant)), name)
                await remove_group(tx, caller.tenant, name)
                details = {"name": name, "parents": len(group.parents)}
                await self._record_change(tx, caller, "groups.delete", request, details)
                await announce(tx, Changed(GROUPS_CHANGED, caller.tenant))
        self.trees.forget(caller.tenant)

    async def import_(
        self,
        caller: Caller,
        definitions: Sequence[GroupDefinition],
        request: RequestInfo | None = None,
        *,
        dry_run: bool = False,
        prune: bool = False,
    ) -> GroupPlan:
        """Create and replace groups; ``prune`` removes all others, ``dry_run`` only returns what would change."""
        async with self.audit.refusals(caller, "groups.import", request):
            caller.require(Role.OPERATOR)
            async with self.database.transaction(caller.tenant, write=not dry_run) as tx:
                plan = await self._store(
                    tx, caller.tenant, definitions, remove=lambda _group: prune, dry_run=dry_run
                )
                if not dry_run:
                    details = {"created": len(plan.created), "updated": len(plan.updated)}
                    details |= {"removed": len(plan.removed), "unchanged": len(plan.unchanged)}
                    await self._record_change(tx, caller, "groups.import", request, details)
        self.trees.forget(caller.tenant)
        plan.warnings.extend(await self.warnings(caller.tenant, definitions))
        return plan

    async def import_document(
        self,
        caller: Caller,
        body: bytes,
        form: DocumentFormat,
        request: RequestInfo | None = None,
        *,
        dry_run: bool = False,
        prune: bool = False,
    ) -> GroupPlan:
        """Import a document that ``export`` returned or an operator wrote."""
        async with self.audit.refusals(caller, "groups.import", request):
            caller.require(Role.OPERATOR)
            definitions = await asyncio.to_thread(lambda: groups_of(read_document(body, form)))
        return await self.import_(caller, definitions, request, dry_run=dry_run, prune=prune)

    async def export(self, caller: Caller, request: RequestInfo | None = None) -> dict[str, Any]:
        """Return all groups in the form of ``import_`` and the declarative file."""
        return {"groups": [group.definition.declared() for group in await self.list(caller, request)]}

    async def warnings(self, tenant: str, definitions: Iterable[GroupDefinition]) -> Warnings:
        """Return a sentence for each member that names no present primitive; at most a hundred."""
        if self.catalog is None:
            return []
        try:
            catalog = await self.catalog(tenant)
        except ServiceError:
            return ["Whether the members exist could not be looked up now."]
        warnings: list[str] = []
        for definition in definitions:
            for member in definition.distinct:
                if not self._exists(catalog, member):
                    where = f" of server {member.server}" if member.server else ""
                    warnings.append(
                        f"Group {definition.name}: no {member.kind}{where} is called {member.name} now; "
                        "its server may be down."
                    )
                if len(warnings) == _MAX_WARNINGS:
                    return warnings
        return warnings

    async def _store(
        self, tx: GroupTransaction, tenant: str, definitions: Sequence[GroupDefinition], **options: Any
    ) -> GroupPlan:
        return await store_groups(tx, tenant, definitions, "api", self.now(), **options)

    async def _record_change(
        self,
        tx: GroupTransaction,
        caller: Caller,
        action: str,
        request: RequestInfo | None,
        details: Mapping[str, Any],
    ) -> None:
        event = self.audit.new_event(caller, action, OUTCOME_OK, request, details=dict(details))
        await self.audit.record_with(tx, event)

    def _exists(self, catalog: Catalog, member: Member) -> bool:
        if member.kind is PrimitiveKind.MIDDLEWARE:
            return any(member.matches(PrimitiveKind.MIDDLEWARE, name, None) for name in self.middlewares)
        if member.kind not in NAME_FIELD:
            return True  # groups were checked already, and tasks are short-lived
        named = catalog.of(member.kind)
        return any(member.matches(member.kind, name, primitive.server) for name, primitive in named.items())


def groups_of(document: Any) -> list[GroupDefinition]:
    """Return the groups of an import's document, or raise InvalidArgumentsError with a pointer to the fault."""
    try:
        return GroupsDocument.model_validate(document).groups
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        steps = (str(step).replace("~", "~0").replace("/", "~1") for step in fault["loc"])
        pointer = "".join(f"/{step}" for step in steps)
        message = fault["msg"].removeprefix("Value error, ")
        raise InvalidArgumentsError(
            f"{message[0].upper()}{message[1:]}.", details={"pointer": pointer}
        ) from None


def _infos(stored: Sequence[StoredGroup]) -> list[GroupInfo]:
    tree = GroupTree.build(definition_of(group) for group in stored)
    info = {
        group.name: GroupInfo(
            tree.groups[group.name],
            tree.direct(PrimitiveKind.GROUP, group.name),
            group.origin,
            group.created,
            group.updated,
        )
        for group in stored
    }
    return [info[name] for name in tree.groups]


def _named(infos: Sequence[GroupInfo], name: str) -> GroupInfo:
    for info in infos:
        if info.definition.name == name:
            return info
    raise NotFoundError("There is no such group.")


def _with_members(definition: GroupDefinition, members: list[Member]) -> GroupDefinition:
    return definition.model_copy(update={"members": members})


def _added_pointer(kept: int) -> Callable[[int], str]:
    return lambda number: f"/add/{number - kept}" if number >= kept else f"/members/{number}"
