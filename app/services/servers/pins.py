"""Which definitions of a server may be served: compared with the approved ones.

Tools, prompts and templates are pinned by digest. Resources are data that comes and goes, so they are not pinned.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from app.core.catalog.primitives import Offer, PrimitiveKind

HEADER_MARK: Final = "x-mcp-header"
PINNED_KINDS: Final = frozenset({PrimitiveKind.TOOL, PrimitiveKind.PROMPT, PrimitiveKind.TEMPLATE})
MAX_NAME_BYTES: Final = 2048
_BOUNDED_TYPES: Final = frozenset({"boolean", "integer", "null", "number"})
_BOUNDED_FORMATS: Final = frozenset(
    {"date", "date-time", "duration", "ipv4", "ipv6", "time", "uuid"}
)  # values of these formats cannot hold a sentence
_MAPS: Final = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
_DATA: Final = frozenset({"const", "default", "enum", "examples"})


class PinState(StrEnum):
    """The state of a definition compared with what was approved; only ``approved`` is served."""

    APPROVED = "approved"
    CHANGED = "changed"
    NEW = "new"
    GONE = "gone"
    HEADER_LEAK = "header-leak"
    UNNAMEABLE = "unnameable"


UNAPPROVABLE: Final = frozenset({PinState.HEADER_LEAK, PinState.UNNAMEABLE})
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


def leaking_parameter(schema: Any) -> str | None:
    """Return the first header into which a tool's ``inputSchema`` would copy free text, None if there is none.

    A parameter marked ``x-mcp-header`` is sent outside the body, where proxies log it and nothing redacts it. Only
    parameters that cannot hold a sentence may be marked: numbers, booleans, enumerations, identifiers and times.
    """
    for part in _schemas(schema):
        marked = part.get(HEADER_MARK)
        if marked is not None and not isinstance(marked, dict) and not _is_bounded(part):
            return str(marked)
    return None


def _state(offer: Offer, digest: str, approved: str | None) -> PinState:
    name = offer.own_name
    if not (0 < len(name.encode()) <= MAX_NAME_BYTES and name.isprintable()):
        return PinState.UNNAMEABLE  # characters that reorder or end lines would show people another name
    if (
        offer.kind is PrimitiveKind.TOOL
        and leaking_parameter(offer.definition.get("inputSchema")) is not None
    ):
        return PinState.HEADER_LEAK
    if approved is None:
        return PinState.NEW
    return PinState.APPROVED if digest == approved else PinState.CHANGED


def _schemas(root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every part of a JSON Schema that may be a schema: also below unknown keywords, never instance data."""
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        if not isinstance(part, dict):
            continue
        yield part
        for keyword, value in part.items():
            if keyword in _MAPS and isinstance(value, dict):
                waiting.extend(value.values())
            elif keyword not in _DATA:
                waiting.append(value)


def _is_bounded(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kinds and all(isinstance(name, str) and name in _BOUNDED_TYPES for name in kinds):
        return True
    form = schema.get("format")
    return "enum" in schema or "const" in schema or (isinstance(form, str) and form in _BOUNDED_FORMATS)
