"""What records say of a client's address, and which scheme an address has that somebody else names.

Records say of which kind a client's address is, and of which network, never the address itself.
"""

from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

AddressClass = Literal["loopback", "link-local", "private", "public"]

_REMEMBERED: Final = 4096
_NETWORK_BITS: Final = {4: 24, 6: 48}
"""How much of an address names a network: what a provider gives to one site."""


@lru_cache(_REMEMBERED)
def address_class(address: str | None) -> AddressClass | None:
    """Return the kind of an IP address; None where there is none, as on the command line."""
    peer = _parsed(address)
    if peer is None:
        return None
    if peer.is_loopback:
        return "loopback"
    if peer.is_link_local:
        return "link-local"
    return "private" if peer.is_private else "public"


@lru_cache(_REMEMBERED)
def network_of(address: str | None) -> str | None:
    """Return the network of an IP address as text: a /24 of version 4, a /48 of version 6."""
    peer = _parsed(address)
    return None if peer is None else str(ip_network((peer, _NETWORK_BITS[peer.version]), strict=False))


def scheme_of(address: object) -> str | None:
    """Return the scheme of what somebody else calls an address; None unless it is one, with a host and no fragment."""
    try:
        parts = urlsplit(address) if isinstance(address, str) else None
        named = parts is not None and bool(parts.hostname) and parts.port != 0 and not parts.fragment
    except ValueError:
        return None
    return parts.scheme if parts is not None and named else None


def is_within(address: str | None, networks: Collection[IPv4Network | IPv6Network]) -> bool:
    """Return whether an IP address is in one of the networks."""
    try:
        peer = ip_address(address or "")
    except ValueError:
        return False
    if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
        peer = peer.ipv4_mapped
    return any(peer in network for network in networks)


def _parsed(address: str | None) -> IPv4Address | IPv6Address | None:
    try:
        peer = ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    return peer.ipv4_mapped or peer if isinstance(peer, IPv6Address) else peer
