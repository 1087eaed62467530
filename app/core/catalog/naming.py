"""Under which names the primitives of many servers are shown, and whose a name is that a client sends."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from app.core.catalog.primitives import QUALIFIED_URI, Offer, PrimitiveKind
from app.core.catalog.servers import SEPARATOR
from app.core.catalog.uri_templates import literal_characters, template_matches

OWN_URIS: Final = (QUALIFIED_URI, "resource:///tool_descriptions")
"""What these URIs begin with is ours: a server that offers such a one is shown with its name in front."""

_ALIAS, _OWN = 0, 1


@dataclass(frozen=True, slots=True)
class Naming:
    """What is shown under which name, in the order of the offers, and what another one hides: (kind, name, server)."""

    names: list[tuple[Offer, str]]
    shadowed: list[tuple[PrimitiveKind, str, str]]


@dataclass(frozen=True, slots=True)
class _Claim:
    offer: Offer
    name: str
    rank: tuple[str, int, int]
    """Server name, then aliases before own names, then the order of the offers: the least wins the name."""


def exposed(
    offers: Sequence[Offer],
    *,
    namespaced: Mapping[str, bool],
    aliases: Mapping[str, Mapping[str, str]],
    separator: str = SEPARATOR,
) -> Naming:
    """Name every offer once, or under each of its aliases.

    ``namespaced`` says for every server whether its name stands in front of its tools and prompts; ``aliases`` holds,
    by server, exposed names and the server's own names of the tools that they replace. A name that begins with the
    name of another server belongs to that server: a server cannot pass its tools off as another's.
    """
    claims: list[_Claim] = []
    hidden: list[tuple[PrimitiveKind, str, str]] = []
    offerers = _offerers(offers)
    for index, offer in enumerate(offers):
        if offer.kind in {PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE}:
            several = len(offerers[offer.kind, offer.own_name]) > 1
            schemeless = offer.kind is PrimitiveKind.TEMPLATE and not _has_scheme(offer.own_name)
            ours = several or schemeless or offer.own_name.startswith(OWN_URIS)
            name = qualified(offer.server, offer.own_name) if ours else offer.own_name
            claims.append(_Claim(offer, name, (offer.server, _OWN, index)))
            continue
        chosen = _aliases_of(offer, aliases)
        claims += [_Claim(offer, alias, (offer.server, _ALIAS, index)) for alias in chosen]
        if not chosen:
            prefix = f"{offer.server}{separator}" if namespaced.get(offer.server, True) else ""
            name = f"{prefix}{offer.own_name}"
            owner = split_name(name, namespaced, separator)
            if owner is not None and owner[0] != offer.server:
                hidden.append((offer.kind, name, offer.server))
            else:
                claims.append(_Claim(offer, name, (offer.server, _OWN, index)))
    return _settled(claims, hidden)


def _offerers(offers: Iterable[Offer]) -> dict[tuple[PrimitiveKind, str], set[str]]:
    found: dict[tuple[PrimitiveKind, str], set[str]] = {}
    for offer in offers:
        found.setdefault((offer.kind, offer.own_name), set()).add(offer.server)
    return found


def _aliases_of(offer: Offer, aliases: Mapping[str, Mapping[str, str]]) -> list[str]:
    if offer.kind is not PrimitiveKind.TOOL:
        return []
    return sorted(alias for alias, own in aliases.get(offer.server, {}).items() if own == offer.own_name)


def _settled(claims: list[_Claim], hidden: list[tuple[PrimitiveKind, str, str]]) -> Naming:
    winners: dict[tuple[PrimitiveKind, str], _Claim] = {}
    for claim in claims:
        held = winners.get((claim.offer.kind, claim.name))
        if held is None or claim.rank < held.rank:
            winners[claim.offer.kind, claim.name] = claim
    names = []
    for claim in claims:
        if winners[claim.offer.kind, claim.name] is claim:
            names.append((claim.offer, claim.name))
        else:
            hidden.append((claim.offer.kind, claim.name, claim.offer.server))
    return Naming(names, hidden)


def split_name(name: str, servers: Collection[str], separator: str = SEPARATOR) -> tuple[str, str] | None:
    """Return (server, own name) by the longest registered server name in front, or None."""
    best: tuple[str, str] | None = None
    position = name.find(separator, 1)
    while position > 0:
        own = name[position + len(separator) :]
        if own and name[:position] in servers:
            best = name[:position], own
        position = name.find(separator, position + 1)
    return best


def qualified(server: str, uri: str) -> str:
    """Return the spelling of a server's URI or template that names the server."""
    return f"{QUALIFIED_URI}{server}/{uri}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Return (server, its own URI) for a qualified URI, or None for a bare one."""
    if not uri.startswith(QUALIFIED_URI):
        return None
    server, slash, own = uri.removeprefix(QUALIFIED_URI).partition("/")
    return (server, own) if server and slash and own else None


class Named(Protocol):
    """Offer and Primitive both are: a server's resource or template by the server's own URI."""

    @property
    def server(self) -> str:
        """Return the server's name."""

    @property
    def own_name(self) -> str:
        """Return the URI or template as the server spells it."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class ResourceReading(Generic[N]):
    """Where a URI is read: the resource or template that covers it, and the URI as its server knows it."""

    primitive: N
    uri: str

    @property
    def server(self) -> str:
        """Return the server to ask."""
        return self.primitive.server


def resolve_uri(
    uri: str, resources: Mapping[str, N], templates: Mapping[str, N]
) -> ResourceReading[N] | None:
    """Find what covers a URI in lists by exposed name: first the resources, then the templates.

    The bare form of a URI is understood where only one server of the lists has it. Of several templates that match,
    the one with most literal characters decides; where two servers tie, the URI must be qualified. A template that
    names no scheme covers qualified URIs only: it would draw the reads that are meant for other servers. None: nothing
    covers it, or more than one server does.
    """
    if (found := resources.get(uri)) is not None:
        return ResourceReading(found, found.own_name)
    server, own = split_uri(uri) or (None, uri)
    listed = [one for one in resources.values() if one.own_name == own and server in (None, one.server)]
    if listed:
        return ResourceReading(listed[0], own) if len({one.server for one in listed}) == 1 else None
    matching = [
        (literal_characters(one.own_name), one)
        for one in templates.values()
        if _may_cover(one, server) and template_matches(one.own_name, own)
    ]
    most = max((count for count, _ in matching), default=0)
    best = [one for count, one in matching if count == most]
    return ResourceReading(best[0], own) if len({one.server for one in best}) == 1 else None


def _may_cover(template: Named, server: str | None) -> bool:
    if server is not None:
        return server == template.server
    return _has_scheme(template.own_name)


def _has_scheme(template: str) -> bool:
    return ":" in template.partition("{")[0]
