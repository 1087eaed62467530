"""Connect to a server once, to see what it offers."""

import hashlib
from dataclasses import dataclass

from app.core.catalog.primitives import Offer
from app.core.catalog.servers import ServerEntry
from app.core.client_features import ALL_FEATURES
from app.core.errors import ConflictError, UpstreamUnavailableError
from app.services.servers.pins import PINNED_KINDS
from app.upstream.connection import Connection
from app.upstream.connection_options import AggregatorOptions
from app.upstream.status import ServerStatus

__all__ = ["Inspection", "ServerStatus", "inspect"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The result of listing a server once: everything it offers, or why it could not be listed."""

    status: ServerStatus
    offers: tuple[Offer, ...]

    @property
    def ready(self) -> bool:
        """Return whether the server was listed."""
        return self.status.state == "ready"

    @property
    def error(self) -> str | None:
        """Return the error in our words, None without one; single lists of a listed server may be unreadable."""
        return self.status.error or (None if self.ready else "The server did not answer in time.")

    @property
    def digest(self) -> str:
        """Return a digest of the whole listing, independent of its order; without resources."""
        lines = sorted(
            f"{offer.kind} {offer.digest} {offer.own_name}"
            for offer in self.offers
            if offer.kind in PINNED_KINDS
        )
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def check(self, listing: str | None) -> None:
        """Raise an error unless the server was listed and its digest is ``listing``, if set."""
        if not self.ready:
            raise UpstreamUnavailableError(self.error or "The server does not answer.")
        if listing is not None and listing != self.digest:
            raise ConflictError(
                "The server's offers differ from the reviewed listing; test it again and review the result."
            )


async def inspect(entry: ServerEntry, options: AggregatorOptions) -> Inspection:
    """Connect, list as every kind of client does, and disconnect; a failure is part of the result."""
    connection = Connection(entry.name, entry.settings, options)
    connection.start()
    try:
        await connection.settled()
        await connection.find_for(ALL_FEATURES)
        return Inspection(connection.status, connection.offers)
    finally:
        await connection.stop()
