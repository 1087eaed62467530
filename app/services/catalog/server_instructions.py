"""The advice of servers to models, for the callers who may use those servers."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.access import Caller
from app.core.tools.server_texts import cleaned_instructions
from app.services.catalog.listing import USERS, ListingService
from app.services.servers.upstreams import UpstreamService


@dataclass(frozen=True, slots=True)
class ServerInstructions:
    """Finds the approved instructions of servers whose setting passes them on."""

    listing: ListingService
    upstreams: UpstreamService

    async def of(self, caller: Caller, group: str | None = None) -> Sequence[str]:
        """Return one text for each server of which the caller may use anything, with its name, in order of name."""
        if caller.roles.isdisjoint(USERS):
            return []
        texts = []
        approved = self.upstreams.approved(caller.tenant).instructions
        for server in sorted((await self.listing.view(caller, group=group)).servers & approved.keys()):
            text = cleaned_instructions(approved[server])
            if text:
                texts.append(f"Server {server}: {text}")
        return texts
