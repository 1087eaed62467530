"""Lists of tools narrowed to what a conversation needs; not access control: omitted tools stay callable."""

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from app.core.catalog.primitives import Primitive, PrimitiveKind
from app.core.contracts.engines import ToolRanker
from app.core.errors import DeadlineExceededError
from app.core.strictjson import dumps
from app.core.tools.offered import VisibleTools
from app.core.tools.requests import ToolRequest
from app.core.tools.selection import Selection, SelectionLimits, selected
from app.services.catalog.listing import CallerView, Filter, ListingService


@dataclass(frozen=True, slots=True)
class ToolListService:
    """Ranks the tools of a list by how well they fit a request, and chooses the best."""

    ranker: ToolRanker
    listing: ListingService
    visible: VisibleTools = field(default_factory=VisibleTools)

    async def chosen(
        self,
        view: CallerView,
        filters: Sequence[Filter],
        short: Filter | None,
        request: ToolRequest,
        wanted: SelectionLimits,
    ) -> Selection:
        """Choose among the tools of ``view`` that ``filters`` keep, ranked by the definitions that the caller sees."""
        listed = self.listing.listed(view, PrimitiveKind.TOOL, filters, short=short)
        offered = await self.visible.offered(listed.definitions)
        limit_ms = view.policy.limits.deadline_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await selected(self.ranker, request, offered.candidates, wanted, offered.tokens)
        except TimeoutError as error:
            raise DeadlineExceededError(
                "The tools could not be ranked within the time limit; request the list without a filter.",
                details={"limit_ms": limit_ms},
            ) from error


def narrowing_to(view: CallerView, names: Collection[str]) -> Filter | None:
    """Return a filter that keeps only the tools ``names`` and those that the policy always lists.

    None if none of the chosen ``names`` exists any more: a list that shows too much is more useful than an empty one.
    """
    rules = view.policy.tool_listing
    tools = view.of(PrimitiveKind.TOOL)
    if names and not any(name in tools for name in names):
        return None
    wanted = frozenset(names).union(rules.pinned)
    servers = frozenset(rules.always_servers)

    def keeps(primitive: Primitive) -> bool:
        return (
            primitive.kind is not PrimitiveKind.TOOL
            or primitive.name in wanted
            or primitive.server in servers
        )

    key = hashlib.sha256(dumps([sorted(wanted), sorted(servers)])).hexdigest()
    return Filter(f"tools {key}", keeps)
