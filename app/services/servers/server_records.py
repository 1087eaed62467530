"""Servers as the service knows them: stored, opened, with what was approved of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.catalog.primitives import PrimitiveKind
from app.core.catalog.servers import ServerEntry
from app.core.errors import NotFoundError
from app.services.servers.inspection import Inspection
from app.services.servers.pins import PinName, Review
from app.store.audit.audit import Transaction
from app.store.servers import StoredPin, StoredServer, find_server, list_pins

__all__ = ["ServerDetail", "ServerRecord", "StoredPin", "Trial", "digests", "found", "pins_of"]


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A server as it is stored, and its entry with the secrets, which no surface shows (``sealing.shown``)."""

    stored: StoredServer
    entry: ServerEntry


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """A server with its definitions, each with its standing.

    ``reviews`` is None where this process has no listing of the server, which is so unless it is served here.
    """

    known: ServerRecord
    reviews: Sequence[Review] | None
    pins: Mapping[PinName, StoredPin]


@dataclass(frozen=True, slots=True)
class Trial:
    """What connecting to a server once has shown; ``reviews`` is empty where that failed."""

    inspection: Inspection
    reviews: Sequence[Review]
    pins: Mapping[PinName, StoredPin]


def digests(pins: Mapping[PinName, StoredPin]) -> dict[PinName, str]:
    """Return the approved digests."""
    return {name: pin.digest for name, pin in pins.items()}


async def found(tx: Transaction, tenant: str, name: str, *, lock: bool = False) -> StoredServer:
    """Return a tenant's server, or raise NotFoundError."""
    stored = await find_server(tx, tenant, name, lock=lock)
    if stored is None:
        raise NotFoundError("There is no such server.")
    return stored


async def pins_of(tx: Transaction, tenant: str, name: str) -> Mapping[PinName, StoredPin]:
    """Return what was approved of a server."""
    return {PinName(PrimitiveKind(pin.kind), pin.name): pin for pin in await list_pins(tx, tenant, name)}
