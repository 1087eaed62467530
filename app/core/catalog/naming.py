"""Expose the primitives of many servers under unique names, and find the server of a name that a client sends."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from app.core.catalog.primitives import QUALIFIED_URI, Offer, PrimitiveKind
from app.core.catalog.servers import SEPARATOR
from app.core.catalog.uri_templates import literal_characters, template_matches

OWN_URIS: Final = (QUALIFIED_URI, "resource:///tool_descriptions")
"""Prefixes of this service's own URIs; a server's URI with such a prefix is exposed in qualified form."""

_ALIAS, _OWN_NAME = 0, 1


@dataclass(frozen=True, slots=True)
class Naming:
    """Offers with their exposed names, in order, and what another offer hides: (kind, name, server)."""

    names: list[tuple[Offer, str]]
    shadowed: list[tuple[PrimitiveKind, str, str]]


@dataclass(frozen=True, slots=True)
class _Claim:
    offer: Offer
    name: str
    rank: tuple[str, int, int]
    """Server name, then alias before own name, then order of the offers; the lowest rank wins the name."""


def exposed(
    offers: Sequence[Offer],
    *,
    namespaced: Mapping[str, bool],
    aliases: Mapping[str, Mapping[str, str]],
    separator: str = SEPARATOR,
) -> Naming:
    """Name every offer once, or once per alias.

    ``namespaced`` states for every server whether its name prefixes its tools and prompts; ``aliases`` maps, by
    server, exposed names to the server's own tool names that they replace. A name that begins with another server's
    name belongs to that server, so that a server cannot pass its tools off as another's.
    """
    claims: list[_Claim] = []
    hidden: list[tuple[PrimitiveKind, str, str]] = []
    servers_by_offer = _servers_by_offer(offers)
    for index, offer in enumerate(offers):
        if offer.kind in {PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE}:
            several = len(servers_by_offer[offer.kind, offer.own_name]) > 1
            schemeless = offer.kind is PrimitiveKind.TEMPLATE and not _has_scheme(offer.own_name)
            qualifies = several or schemeless or offer.own_name.startswith(OWN_URIS)
            name = qualified(offer.server, offer.own_name) if qualifies else offer.own_name
            claims.append(_Claim(offer, name, (offer.server, _OWN_NAME, index)))
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
                claims.append(_Claim(offer, name, (offer.server, _OWN_NAME, index)))
    return _resolve_claims(claims, hidden)


def _servers_by_offer(offers: Iterable[Offer]) -> dict[tuple[PrimitiveKind, str], set[str]]:
    servers: dict[tuple[PrimitiveKind, str], set[str]] = {}
    for offer in offers:
        servers.setdefault((offer.kind, offer.own_name), set()).add(offer.server)
    return servers


def _aliases_of(offer: Offer, aliases: Mapping[str, Mapping[str, str]]) -> list[str]:
    if offer.kind is not PrimitiveKind.TOOL:
        return []
    return sorted(alias for alias, own in aliases.get(offer.server, {}).items() if own == offer.own_name)


def _resolve_claims(claims: list[_Claim], hidden: list[tuple[PrimitiveKind, str, str]]) -> Naming:
    winners: dict[tuple[PrimitiveKind, str], _Claim] = {}
    for claim in claims:
        winner = winners.get((claim.offer.kind, claim.name))
        if winner is None or claim.rank < winner.rank:
            winners[claim.offer.kind, claim.name] = claim
    names = []
    for claim in claims:
        if winners[claim.offer.kind, claim.name] is claim:
            names.append((claim.offer, claim.name))
        else:
            hidden.append((claim.offer.kind, claim.name, claim.offer.server))
    return Naming(names, hidden)


def split_name(name: str, servers: Collection[str], separator: str = SEPARATOR) -> tuple[str, str] | None:
    """Return (server, own name) by the longest registered server name that prefixes ``name``, or None."""
    best: tuple[str, str] | None = None
    position = name.find(separator, 1)
    while position > 0:
        own = name[position + len(separator) :]
        if own and name[:position] in servers:
            best = name[:position], own
        position = name.find(separator, position + 1)
    return best


def qualified(server: str, uri: str) -> str:
    """Return the qualified form of a server's URI or template, which names the server."""
    return f"{QUALIFIED_URI}{server}/{uri}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Return (server, its own URI) for a qualified URI, or None for a bare one."""
    if not uri.startswith(QUALIFIED_URI):
        return None
    server, slash, own = uri.removeprefix(QUALIFIED_URI).partition("/")
    return (server, own) if server and slash and own else None


class Named(Protocol):
    """What Offer and Primitive share: a server and its own URI of a resource or template."""

    @property
    def server(self) -> str:
        """Return the server's name."""

    @property
    def own_name(self) -> str:
        """Return the URI or template as the server spells it."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class ResourceReading(Generic[N]):
    """How to read a URI: the resource or template that covers it, and the URI in its server's own form."""

    primitive: N
    uri: str

    @property
    def server(self) -> str:
        """Return the name of the server that reads the URI."""
        return self.primitive.server


def resolve_uri(
    uri: str, resources: Mapping[str, N], templates: Mapping[str, N]
) -> ResourceReading[N] | None:
    """Find what covers a URI in the lists by exposed name: first the resources, then the templates.

    The bare form of a URI is accepted if only one server of the lists has it. Of several matching templates, the one
    with most literal characters wins; if two servers tie, the URI must be qualified. A template without a scheme
    covers qualified URIs only, since it would attract reads that are meant for other servers. Return None if nothing
    covers the URI or more than one server does.
    """
    if (resource := resources.get(uri)) is not None:
        return ResourceReading(resource, resource.own_name)
    server, own = split_uri(uri) or (None, uri)
    listed = [
        resource
        for resource in resources.values()
        if resource.own_name == own and server in (None, resource.server)
    ]
    if listed:
        return ResourceReading(listed[0], own) if len({resource.server for resource in listed}) == 1 else None
    matches = [
        (literal_characters(template.own_name), template)
        for template in templates.values()
        if _may_cover(template, server) and template_matches(template.own_name, own)
    ]
    most = max((count for count, _ in matches), default=0)
    best = [template for count, template in matches if count == most]
    return ResourceReading(best[0], own) if len({template.server for template in best}) == 1 else None


def _may_cover(template: Named, server: str | None) -> bool:
    if server is not None:
        return server == template.server
    return _has_scheme(template.own_name)


def _has_scheme(template: str) -> bool:
    return ":" in template.partition("{")[0]
