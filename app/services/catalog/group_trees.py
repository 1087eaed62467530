"""Reads the groups that a tenant has now, for lists, for catalogs and for the service that changes them."""

from dataclasses import dataclass, field

from app.core.catalog.groups import GroupTree
from app.core.catalog.primitives import GROUPS_CHANGED
from app.core.events import Changed
from app.services.caching import ShortMemory
from app.services.catalog.group_changes import definition_of
from app.store.catalog.groups import list_groups
from app.store.changes import EVERYTHING
from app.store.database import Database

_STALE_S = 5.0
_CACHED_TENANTS = 1000


@dataclass(eq=False, slots=True)
class GroupTrees:
    """Reads the groups of tenants; subscribe ``changed`` to the announcements of other processes."""

    database: Database
    memory: ShortMemory[str, GroupTree] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )

    async def tree(self, tenant: str) -> GroupTree:
        """Return the current groups, from the cache while it is fresh."""
        tree = self.memory.peek(tenant) or await self.memory.get(tenant, self._load)
        return tree if tree is not None else GroupTree.build(())

    def forget(self, tenant: str) -> None:
        """Forget the groups of a tenant that this process changed."""
        self.memory.forget(tenant)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING or (changed.kind == GROUPS_CHANGED and changed.tenant is None):
            self.memory.forget_where(lambda _tree: True)
        elif changed.kind == GROUPS_CHANGED and changed.tenant is not None:
            self.memory.forget(changed.tenant)

    async def _load(self, tenant: str) -> GroupTree:
        async with self.database.transaction(tenant, write=False) as tx:
            return GroupTree.build(definition_of(stored) for stored in await list_groups(tx, tenant))
