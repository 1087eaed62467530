"""Lists of tools narrowed to what a conversation needs: no access control, what is left out stays callable."""

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
    """Asks the ranker which of the tools that a list would hold fit a request."""

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
        """Choose among the tools of ``view`` that ``filters`` keep; all ranked as the caller is shown them."""
        listed = self.listing.listed(view, PrimitiveKind.TOOL, filters, short=short)
        offered = await self.visible.offered(listed.definitions)
        limit_ms = view.policy.limits.deadline_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await selected(self.ranker, request, offered.candidates, wanted, offered.tokens)
        except TimeoutError as error:
            raise DeadlineExceededError(
                "The tools could not be ranked within the time limit; ask for the list without a filter.",
                details={"limit_ms": limit_ms},
            ) from error


def narrowing_to(view: CallerView, names: Collection[str]) -> Filter | None:
    """Return what leaves all tools but ``names`` out of a list, and those that the policy always lists.

    None where ``names`` were chosen and none of them is there any more: a list that shows too much is of more use
    than one that shows nothing.
    """
    rules = view.policy.tool_listing
    tools = view.of(PrimitiveKind.TOOL)
    if names and not any(name in tools for name in names):
        return None
    wanted = frozenset(names).union(rules.pinned)
    servers = frozenset(rules.always_servers)

    def keeps(one: Primitive) -> bool:
        return one.kind is not PrimitiveKind.TOOL or one.name in wanted or one.server in servers

    key = hashlib.sha256(dumps([sorted(wanted), sorted(servers)])).hexdigest()
    return Filter(f"tools {key}", keeps)
