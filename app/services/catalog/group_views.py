"""The groups that a caller sees: those with something that the caller may use."""

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
    """Reads the groups of a tenant as one caller sees them."""

    groups: GroupService
    listing: ListingService
    invoke: InvokeService

    async def tree(self, tenant: str) -> GroupTree:
        """Return all groups of a tenant."""
        return await self.groups.tree(tenant)

    async def visible(
        self, caller: Caller, tree: GroupTree, request: RequestInfo | None = None
    ) -> frozenset[str]:
        """Return the names of the groups with anything for the caller, in the group itself or in one below it.

        If the policy grants everything to everybody, these are all groups, including empty ones.
        """
        view = await self.listing.view(caller, request)
        if not view.restricted:
            return frozenset(tree.groups)
        listed = await self.invoke.list(caller, request)
        more = {
            group for middleware in listed for group in tree.direct(PrimitiveKind.MIDDLEWARE, middleware.name)
        }
        return visible_groups(tree, view.all, restricted=True, more=more)
