"""Connect to a server only where that is allowed: check every address, then dial exactly the checked one."""

import asyncio
import re
import socket
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from app import __version__
from app.core.errors import InvalidArgumentsError, UpstreamUnavailableError
from app.upstream.transport.options import LinkOptions

Address = IPv4Address | IPv6Address

METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
METADATA_ADDRESSES: Final = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # AWS containers
        "169.254.170.23",
        "169.254.0.23",  # Tencent
        "fd00:ec2::254",  # AWS
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "168.63.129.16",  # Azure
    )
)
_NAT64: Final = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_COMPATIBLE: Final = ip_network("::/96")
_NUMERIC: Final = re.compile(r"(?:.*\.)?(?:\d+|0[xX][0-9a-fA-F]*)\.?")
_PRINTABLE: Final = re.compile(r"[!-~]+")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TRANSPORT_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "te",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
_IDLE_S: Final = 4.0
"""Below the five seconds after which common servers close an idle connection, so that no closing one is used."""

_CLOUD_METADATA = "This address serves the secrets of a cloud machine and is never connected to."
_NOT_PUBLIC = (
    "The server's address is not public; whoever runs this service may allow its network with "
    "SLUICE_UPSTREAMS__ALLOWED_NETWORKS."
)
_PLAIN = (
    "A public server needs a url that begins with https://; plain http:// is for networks in "
    "SLUICE_UPSTREAMS__ALLOWED_NETWORKS."
)


Refusal = Literal["form", "metadata", "not_public", "plain"]


class AddressRefusedError(InvalidArgumentsError):
    """This address is never connected to, or not from here; ``refusal`` says why."""

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message, details={"pointer": "/settings/url"})
        self.refusal: Final[Refusal] = refusal


class Gate:
    """Decides which addresses may be dialed. ``networks`` None: the settings are the host's own and may name any."""

    def __init__(self, networks: tuple[str, ...] | None, *, encrypted: bool) -> None:
        self._networks = None if networks is None else [ip_network(text, strict=False) for text in networks]
        self._encrypted = encrypted

    def check(self, text: str) -> None:
        """Raise InvalidArgumentsError unless the address may be dialed."""
        address = ip_address(text.partition("%")[0])
        faces = list(_faces(address))
        if not METADATA_ADDRESSES.isdisjoint(faces):
            raise AddressRefusedError(_CLOUD_METADATA, "metadata")
        if self._networks is None or any(_within(face, self._networks) for face in faces):
            return
        if not _is_public(faces[-1]):
            raise AddressRefusedError(_NOT_PUBLIC, "not_public")
        if not self._encrypted:
            raise AddressRefusedError(_PLAIN, "plain")


class GatedResolver(AbstractResolver):
    """Resolves a name and returns its addresses only if each of them may be dialed."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses to connect to; aiohttp resolves nothing itself."""
        return [
            ResolveResult(
                hostname=host, host=address, port=port, family=kind, proto=0, flags=socket.AI_NUMERICHOST
            )
            for kind, address in await self.addresses(host, port, family)
        ]

    async def addresses(
        self, host: str, port: int, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[tuple[socket.AddressFamily, str]]:
        """Return the addresses of a name; raises InvalidArgumentsError or, for an unknown name, OSError."""
        if host.rstrip(".").lower() in METADATA_NAMES:
            raise AddressRefusedError(_CLOUD_METADATA, "metadata")
        loop = asyncio.get_running_loop()
        resolved = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        addresses: list[tuple[socket.AddressFamily, str]] = [
            (kind, str(place[0])) for kind, _, _, _, place in resolved
        ]
        for _, address in addresses:
            self._gate.check(address)
        return addresses

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""


async def check_url(url: str, allowed_networks: tuple[str, ...] | None) -> None:
    """Raise InvalidArgumentsError where connecting to a server at this url is not allowed.

    A name may resolve differently later, so each connection checks it again. Raises UpstreamUnavailableError where a
    name is not known.
    """
    host, port, gate = _parsed(url, allowed_networks)
    if host is None:
        return
    try:
        await GatedResolver(gate).addresses(host, port)
    except OSError:
        raise UpstreamUnavailableError("The host name in the server's url is not known.") from None


def open_session(url: str, options: LinkOptions, headers: Mapping[str, str]) -> aiohttp.ClientSession:
    """Return a session that connects to this url's host as far as that is allowed; the caller closes it.

    It sends ``headers`` except those of the transport itself. It follows no redirects (pass
    ``allow_redirects=False``), takes no proxy or password from the environment, keeps no cookies, verifies
    certificates and bounds the head of an answer.
    """
    own = {"Accept-Encoding": "identity", "User-Agent": f"sluice/{__version__}"}
    return aiohttp.ClientSession(
        connector=gated_connector(url, options.allowed_networks),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=aiohttp.ClientTimeout(total=None, connect=options.connect_timeout_s),
        headers={**_accepted_headers(headers), **own},
        read_bufsize=65_536,
        max_line_size=8_190,
        max_field_size=8_190,
        max_headers=128,
    )


def gated_connector(url: str, networks: tuple[str, ...] | None) -> aiohttp.TCPConnector:
    """Return a connector that dials this url's host as far as that is allowed; ``networks``: see ``LinkOptions``.

    Raises AddressRefusedError where the url alone shows that it is not; a refused name fails each request.
    """
    _, _, gate = _parsed(url, networks)
    return aiohttp.TCPConnector(resolver=GatedResolver(gate), limit=0, keepalive_timeout=_IDLE_S)


def _parsed(url: str, networks: tuple[str, ...] | None) -> tuple[str | None, int, Gate]:
    """Check everything that needs no resolving; the host is None where it is an address, which is checked here."""
    parts = urlsplit(url) if _PRINTABLE.fullmatch(url) and "\\" not in url else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise AddressRefusedError(
            "A server's url begins with https:// or http:// and names a host in plain ASCII.", "form"
        )
    if parts.username is not None or parts.password is not None or "%" in parts.netloc:
        raise AddressRefusedError(
            "Credentials do not belong in a server's url; give them as headers.", "form"
        )
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise AddressRefusedError("The port in the server's url is not valid.", "form") from None
    gate = Gate(networks, encrypted=parts.scheme == "https")
    host = parts.hostname
    try:
        ip_address(host)
    except ValueError:
        if _NUMERIC.fullmatch(host):
            raise AddressRefusedError(
                "Write an IPv4 address as four decimal numbers with dots.", "form"
            ) from None
        name = host.rstrip(".")
        if name in METADATA_NAMES:
            raise AddressRefusedError(_CLOUD_METADATA, "metadata") from None
        if name == "localhost" or name.endswith(".localhost"):
            gate.check("127.0.0.1")
        return host, port, gate
    gate.check(host)
    return None, port, gate


def _accepted_headers(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise InvalidArgumentsError(
                "A header has a name or a value that HTTP does not allow.",
                details={"pointer": "/settings/headers"},
            )
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _TRANSPORT_HEADERS and not name.lower().startswith("mcp-")
    }


def _faces(address: Address) -> Iterator[Address]:
    """Yield the address and the IPv4 address that it wraps, which is where packets go."""
    yield address
    if isinstance(address, IPv4Address):
        return
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    if inner is None and any(address in network for network in _NAT64):
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    if inner is None and address in _COMPATIBLE and int(address) > 1:
        inner = IPv4Address(int(address))
    if inner is not None:
        yield inner


def _is_public(address: Address) -> bool:
    local = isinstance(address, IPv6Address) and address.is_site_local
    return address.is_global and not (address.is_multicast or address.is_reserved or local)


def _within(address: Address, networks: list[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks)
