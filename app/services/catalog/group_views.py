"""Which groups one caller sees: those of which it may use something."""

from dataclasses import dataclass

from app.core.access import Caller
from app.core.catalog.groups import GroupTree, visible_groups
from app.core.catalog.primitives import PrimitiveKind
from app.core.request import RequestInfo
from app.services.catalog.groups import GroupService
from app.services.catalog.listing import ListingService
from app.services.invoke.invoke import InvokeService


@dataclass(frozen=True, slots=True)
class GroupViews:
    """Reads the groups of a tenant through the eyes of a caller."""

    groups: GroupService
    listing: ListingService
    invoke: InvokeService

    async def tree(self, tenant: str) -> GroupTree:
        """Return all groups of a tenant."""
        return await self.groups.tree(tenant)

    async def visible(
        self, caller: Caller, tree: GroupTree, request: RequestInfo | None = None
    ) -> frozenset[str]:
        """Return the names of the groups in which, or below which, there is anything for the caller.

        Where the policy grants everything to everybody that is every group, empty ones included.
        """
        view = await self.listing.view(caller, request)
        if not view.restricted:
            return frozenset(tree.groups)
        listed = await self.invoke.list(caller, request)
        more = {group for one in listed for group in tree.direct(PrimitiveKind.MIDDLEWARE, one.name)}
        return visible_groups(tree, view.all, restricted=True, more=more)
