"""Which definitions an approval covers, and what is stored of them."""

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
    """A definition that an operator approves by name; with a ``digest`` only in the form that was looked at."""

    kind: PrimitiveKind
    name: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovedDefinitions:
    """What an approval pins, the names whose earlier pins it replaces, and what it leaves quarantined."""

    offers: Sequence[Offer]
    names: Sequence[PinName]
    held_back: Sequence[Review]


@dataclass(frozen=True, slots=True)
class Approval:
    """A server after its approval, what it offered at that moment, and what of that was approved."""

    stored: StoredServer
    inspection: Inspection
    chosen: ApprovedDefinitions


def choose(reviews: Sequence[Review], wanted: Sequence[WantedDefinition] | None) -> ApprovedDefinitions:
    """Choose all that can be approved, or exactly what is ``wanted``; a definition that is gone loses its pin."""
    known: dict[PinName, Review] = {}
    for one in reviews:
        known.setdefault(PinName(one.kind, one.name), one)  # of two under one name the first counts
    if wanted is None:
        taken = {name: one for name, one in known.items() if one.state not in UNAPPROVABLE}
    else:
        taken = {PinName(one.kind, one.name): _wanted(known, one, at) for at, one in enumerate(wanted)}
    offers = [one.offer for one in taken.values() if one.offer is not None]
    approved = {id(offer) for offer in offers}
    held_back = [one for one in reviews if one.quarantined and id(one.offer) not in approved]
    return ApprovedDefinitions(offers, list(taken), held_back)


def _wanted(known: dict[PinName, Review], wanted: WantedDefinition, at: int) -> Review:
    found = known.get(PinName(wanted.kind, wanted.name))
    pointer = {"pointer": f"/primitives/{at}"}
    if found is None:
        raise InvalidArgumentsError("The server offers no such definition.", details=pointer)
    if found.state is PinState.HEADER_LEAK:
        raise InvalidArgumentsError(
            "The tool would copy free text into HTTP headers (x-mcp-header), so it cannot be approved.",
            details=pointer,
        )
    if found.state is PinState.UNNAMEABLE:
        raise InvalidArgumentsError(
            "The definition's name is empty, too long to be kept, or holds characters that cannot be seen.",
            details=pointer,
        )
    if wanted.digest is not None and wanted.digest != found.digest:
        raise ConflictError(
            "The server has changed the definition meanwhile; look at it again.", details=pointer
        )
    return found


def pinned(offers: Sequence[Offer], caller: Caller, server: str, moment: datetime) -> list[StoredPin]:
    """Return offers as the pins that are stored."""
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
