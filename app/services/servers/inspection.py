"""Connecting to a server once, to see what it offers."""

import hashlib
from dataclasses import dataclass

from app.core.catalog.primitives import Offer
from app.core.catalog.servers import ServerEntry
from app.core.errors import ConflictError, UpstreamUnavailableError
from app.services.servers.pins import PINNED_KINDS
from app.upstream.connection import Connection
from app.upstream.status import ServerStatus
from app.upstream.terms import AggregatorOptions

__all__ = ["Inspection", "ServerStatus", "inspect"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a server said when it was listed once: everything it offers, or why it could not be listed."""

    status: ServerStatus
    offers: tuple[Offer, ...]

    @property
    def ready(self) -> bool:
        """Return whether the server was listed."""
        return self.status.state == "ready"

    @property
    def error(self) -> str | None:
        """Return what is wrong, in our words; a listed server may have lists that could not be read."""
        return self.status.error or (None if self.ready else "The server did not answer in time.")

    @property
    def digest(self) -> str:
        """Return what stands for the whole listing, whatever its order; resources do not count."""
        lines = sorted(
            f"{one.kind} {one.digest} {one.own_name}" for one in self.offers if one.kind in PINNED_KINDS
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def check(self, listing: str | None) -> None:
        """Raise an error unless the server was listed and offers what ``listing``, where given, stands for."""
        if not self.ready:
            raise UpstreamUnavailableError(self.error or "The server does not answer.")
        if listing is not None and listing != self.digest:
            raise ConflictError(
                "The server offers something else than what was looked at; test it again and look again."
            )


async def inspect(entry: ServerEntry, options: AggregatorOptions) -> Inspection:
    """Connect, list and leave; a failure is part of what is returned."""
    connection = Connection(entry.name, entry.settings, options)
    connection.start()
    try:
        await connection.settled()
        return Inspection(connection.status, connection.offers)
    finally:
        await connection.stop()
