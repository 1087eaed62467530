"""Check a presented key against the stored one, and the properties of a new key."""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from app.core.access import ApiKey, Caller
from app.core.errors import InvalidArgumentsError
from app.store.access.access import StoredKey

MAX_NAME: Final = 200
MAX_CIDRS: Final = 100


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A stored key prepared for checks, which then need no parsing and no query."""

    caller: Caller
    previous_caller: Caller
    """Who presents the secret from before the last rotation: it never has what the new one waits for."""
    settled_caller: Caller
    """Who presents the current secret after ``pending_until``."""
    pending_until: datetime | None
    digest: bytes = field(repr=False)
    previous_digest: bytes | None = field(repr=False)
    previous_expires: datetime | None
    expires: datetime | None
    ended: bool
    networks: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def of(cls, stored: StoredKey) -> "KnownKey":
        """Prepare a stored key."""
        info = stored.info
        caller = Caller(info.tenant, info.id, info.roles)
        previous = info.roles if stored.previous_roles is None else stored.previous_roles
        return cls(
            caller=caller,
            previous_caller=replace(caller, roles=previous),
            settled_caller=replace(caller, roles=info.granted().roles),
            pending_until=info.pending_until,
            digest=stored.digest,
            previous_digest=stored.previous_digest,
            previous_expires=info.rotating_until,
            expires=info.expires,
            ended=info.revoked is not None or stored.tenant_disabled,
            networks=tuple(ip_network(cidr) for cidr in info.cidrs),
        )

    def caller_of(self, key: ApiKey, address: str | None, moment: datetime) -> Caller | None:
        """Return who presents ``key``, with the roles of that secret at this moment; None where it is not valid now.

        Secrets are compared in constant time.
        """
        digest = key.digest
        current = hmac.compare_digest(digest, self.digest)
        older = self.previous_digest is not None and hmac.compare_digest(digest, self.previous_digest)
        overlapping = self.previous_expires is not None and moment < self.previous_expires
        if (
            not (current or (older and overlapping))
            or self.ended
            or (self.expires is not None and moment >= self.expires)
            or not self._allows_address(address)
        ):
            return None
        if not current:
            return self.previous_caller
        waits = self.pending_until is not None and moment < self.pending_until
        return self.caller if waits else self.settled_caller

    def _allows_address(self, address: str | None) -> bool:
        if not self.networks:
            return True
        try:
            peer = ip_address(address or "")
        except ValueError:
            return False
        if isinstance(peer, IPv6Address) and peer.ipv4_mapped is not None:
            peer = peer.ipv4_mapped
        return any(peer in network for network in self.networks)


def checked_name(name: str | None) -> str | None:
    """Return a key's name, or refuse one that is too long or not printable."""
    if name is not None and not (0 < len(name) <= MAX_NAME and name.isprintable()):
        raise InvalidArgumentsError(
            f"A key's name is 1 to {MAX_NAME} printable characters.", details={"pointer": "/name"}
        )
    return name


def checked_cidrs(cidrs: Iterable[str]) -> tuple[str, ...]:
    """Return networks in canonical form; ``10.0.0.7`` means that one address."""
    checked = []
    for number, cidr in enumerate(cidrs):
        try:
            checked.append(str(ip_network(cidr)))
        except ValueError:
            raise InvalidArgumentsError(
                "Write a network as 10.0.0.0/8 or 2001:db8::/32, with no bits set after the prefix.",
                details={"pointer": f"/cidrs/{number}"},
            ) from None
    if len(checked) > MAX_CIDRS:
        raise InvalidArgumentsError(
            f"A key has at most {MAX_CIDRS} networks.", details={"pointer": "/cidrs", "maximum": MAX_CIDRS}
        )
    return tuple(checked)


def checked_expiry(expires: datetime | None, moment: datetime) -> datetime | None:
    """Return when a key ends, or refuse a past time or one without a time zone."""
    if expires is not None and (expires.tzinfo is None or expires <= moment):
        raise InvalidArgumentsError(
            "A key must end in the future, at a time with a time zone.", details={"pointer": "/expires"}
        )
    return expires
