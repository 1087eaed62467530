"""Servers as stored, with their decrypted entries and approved definitions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.core.catalog.primitives import PrimitiveKind
from app.core.catalog.servers import ServerEntry
from app.core.errors import NotFoundError
from app.services.servers.inspection import Inspection
from app.services.servers.pins import PinName, Review
from app.store.audit.audit import Transaction
from app.store.servers import SERVERS, StoredPin, StoredServer, list_pins

__all__ = ["ServerDetail", "ServerRecord", "StoredPin", "Trial", "digests", "pins_of", "require_server"]


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A server as stored, and its entry with the secrets, which are never shown (``sealing.shown``)."""

    stored: StoredServer
    entry: ServerEntry


@dataclass(frozen=True, slots=True)
class ServerDetail:
    """A server with its definitions, each with its state.

    ``reviews`` is None if this process has no listing of the server: it has one only if it serves the server.
    """

    record: ServerRecord
    reviews: Sequence[Review] | None
    pins: Mapping[PinName, StoredPin]


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of connecting to a server once; ``reviews`` is empty if that failed."""

    inspection: Inspection
    reviews: Sequence[Review]
    pins: Mapping[PinName, StoredPin]


def digests(pins: Mapping[PinName, StoredPin]) -> dict[PinName, str]:
    """Return the approved digests."""
    return {name: pin.digest for name, pin in pins.items()}


async def require_server(tx: Transaction, tenant: str, name: str, *, lock: bool = False) -> StoredServer:
    """Return a tenant's server, or raise NotFoundError."""
    stored = await SERVERS.find(tx, tenant, name, lock=lock)
    if stored is None:
        raise NotFoundError("There is no such server.")
    return stored


async def pins_of(tx: Transaction, tenant: str, name: str) -> Mapping[PinName, StoredPin]:
    """Return the approved definitions of a server."""
    return {PinName(PrimitiveKind(pin.kind), pin.name): pin for pin in await list_pins(tx, tenant, name)}
