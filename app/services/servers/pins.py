"""Which definitions of a server may be served: compared with the approved ones.

Tools, prompts, templates and instructions are pinned by digest. Resources are data that comes and goes, so they are
not pinned.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from app.core.catalog.header_parameters import declares_headers_wrongly
from app.core.catalog.primitives import Offer, PrimitiveKind

PINNED_KINDS: Final = frozenset(
    {PrimitiveKind.TOOL, PrimitiveKind.PROMPT, PrimitiveKind.TEMPLATE, PrimitiveKind.INSTRUCTIONS}
)
MAX_NAME_BYTES: Final = 2048


class PinState(StrEnum):
    """The state of a definition compared with what was approved; only ``approved`` is served."""

    APPROVED = "approved"
    CHANGED = "changed"
    NEW = "new"
    GONE = "gone"
    INVALID_HEADER = "invalid-header"
    UNNAMEABLE = "unnameable"


UNAPPROVABLE: Final = frozenset({PinState.INVALID_HEADER, PinState.UNNAMEABLE})
"""These stay quarantined and cannot be approved: the server has to change them."""


class PinName(NamedTuple):
    """The key of a pinned definition within one server."""

    kind: PrimitiveKind
    name: str


@dataclass(frozen=True, slots=True)
class Review:
    """One definition and its state; ``offer`` is None if it is gone, ``approved`` is the pinned digest."""

    kind: PrimitiveKind
    name: str
    state: PinState
    offer: Offer | None
    digest: str | None
    approved: str | None

    @property
    def quarantined(self) -> bool:
        """Return whether the server offers it but it is not served."""
        return self.state not in {PinState.APPROVED, PinState.GONE}


def review(offers: Iterable[Offer], pins: Mapping[PinName, str]) -> list[Review]:
    """Compare one server's offers with the approved digests; offers first, in their order, then missing definitions."""
    reviews, seen = [], set()
    for offer in offers:
        if offer.kind not in PINNED_KINDS:
            continue
        name = PinName(offer.kind, offer.own_name)
        digest, approved = offer.digest, pins.get(name)
        seen.add(name)
        reviews.append(Review(*name, _state(offer, digest, approved), offer, digest, approved))
    gone = [Review(*name, PinState.GONE, None, None, pins[name]) for name in pins if name not in seen]
    return reviews + sorted(gone, key=lambda missing: (missing.kind, missing.name))


def served(offers: Sequence[Offer], reviews: Sequence[Review]) -> list[Offer]:
    """Return the offers without the quarantined ones."""
    quarantined = {id(entry.offer) for entry in reviews if entry.quarantined}
    return [offer for offer in offers if id(offer) not in quarantined]


def _state(offer: Offer, digest: str, approved: str | None) -> PinState:
    name = offer.own_name
    if not (0 < len(name.encode()) <= MAX_NAME_BYTES and name.isprintable()):
        return PinState.UNNAMEABLE  # characters that reorder or end lines would show people another name
    if offer.kind is PrimitiveKind.TOOL and declares_headers_wrongly(offer.definition.get("inputSchema")):
        return PinState.INVALID_HEADER
    if approved is None:
        return PinState.NEW
    return PinState.APPROVED if digest == approved else PinState.CHANGED
