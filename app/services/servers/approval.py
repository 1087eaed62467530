"""Which definitions an approval covers, and the pins that are stored for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app.core.access import Caller
from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError
from app.services.servers.inspection import Inspection
from app.services.servers.pins import UNAPPROVABLE, PinName, PinState, Review
from app.store.servers import StoredPin, StoredServer


@dataclass(frozen=True, slots=True)
class WantedDefinition:
    """A definition that an operator approves by name; with a ``digest``, only in the form that was reviewed."""

    kind: PrimitiveKind
    name: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovedDefinitions:
    """The offers that an approval pins, the names whose earlier pins it replaces, and what stays quarantined."""

    offers: Sequence[Offer]
    names: Sequence[PinName]
    held_back: Sequence[Review]


@dataclass(frozen=True, slots=True)
class Approval:
    """A server after its approval, what it offered at that time, and what of it was approved."""

    stored: StoredServer
    inspection: Inspection
    chosen: ApprovedDefinitions


def choose(reviews: Sequence[Review], wanted: Sequence[WantedDefinition] | None) -> ApprovedDefinitions:
    """Choose all that can be approved, or exactly what is ``wanted``; a missing definition loses its pin."""
    by_name: dict[PinName, Review] = {}
    for entry in reviews:
        by_name.setdefault(
            PinName(entry.kind, entry.name), entry
        )  # if two have the same name, the first one counts
    if wanted is None:
        chosen = {name: entry for name, entry in by_name.items() if entry.state not in UNAPPROVABLE}
    else:
        chosen = {
            PinName(definition.kind, definition.name): _choose_wanted(by_name, definition, at)
            for at, definition in enumerate(wanted)
        }
    offers = [entry.offer for entry in chosen.values() if entry.offer is not None]
    approved = {id(offer) for offer in offers}
    held_back = [entry for entry in reviews if entry.quarantined and id(entry.offer) not in approved]
    return ApprovedDefinitions(offers, list(chosen), held_back)


def _choose_wanted(by_name: dict[PinName, Review], wanted: WantedDefinition, at: int) -> Review:
    chosen = by_name.get(PinName(wanted.kind, wanted.name))
    pointer = {"pointer": f"/primitives/{at}"}
    if chosen is None:
        raise InvalidArgumentsError("The server offers no such definition.", details=pointer)
    if chosen.state is PinState.INVALID_HEADER:
        raise InvalidArgumentsError(
            "The tool declares HTTP headers in an invalid way (x-mcp-header), so it cannot be approved.",
            details=pointer,
        )
    if chosen.state is PinState.UNNAMEABLE:
        raise InvalidArgumentsError(
            "The definition's name is empty, too long to be stored, or has invisible characters.",
            details=pointer,
        )
    if wanted.digest is not None and wanted.digest != chosen.digest:
        raise ConflictError(
            "The server has changed the definition meanwhile; review it again.", details=pointer
        )
    return chosen


def pinned(offers: Sequence[Offer], caller: Caller, server: str, moment: datetime) -> list[StoredPin]:
    """Return the pins to store for ``offers``."""
    return [
        StoredPin(
            tenant=caller.tenant,
            server=server,
            kind=offer.kind.value,
            name=offer.own_name,
            digest=offer.digest,
            definition=offer.definition,
            approved=moment,
            approved_by=caller.key_id,
        )
        for offer in offers
    ]
