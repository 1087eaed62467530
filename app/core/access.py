"""Callers and their permissions: roles and the format of API keys."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import Final, Literal

from app.core.errors import ForbiddenError, InvalidArgumentsError

SYSTEM_TENANT = "system"
DEFAULT_TENANT = "default"
HOST_ACTOR = "host"
COMMAND_LINE = "cli"
HOST_ACTORS = frozenset({HOST_ACTOR, COMMAND_LINE})
"""Who acts with access to the database, and so without a key: in the tenant system, and in the audit record."""
FIRST_START = "bootstrap"
"""Who makes the first key of an installation, in the audit record."""
KEY_PATTERN = re.compile(r"slc_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
TENANT_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


KeyState = Literal["live", "pending", "rotating", "expired", "revoked"]
"""What people call a key: with ``pending``, one of its roles waits for an approval."""


class Role(StrEnum):
    """What a credential may do; permission to redact does not include restoring."""

    INVOKER = "invoker"
    RESTORER = "restorer"
    AUDITOR = "auditor"
    ERASER = "eraser"
    OPERATOR = "operator"
    KEY_CUSTODIAN = "key-custodian"
    DELEGATE = "delegate"
    """May say, with ``X-Sluice-User``, for which end user of its own a request is."""
    PROVISIONER = "provisioner"
    """May keep the mirror of the tenant's people and groups up to date: a key for an identity provider."""


REFUSED_UNIONS: tuple[frozenset[Role], ...] = (
    frozenset({Role.OPERATOR, Role.RESTORER}),
    frozenset({Role.OPERATOR, Role.AUDITOR}),
    frozenset({Role.KEY_CUSTODIAN, Role.RESTORER}),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated party of one request; every service method takes it as its first argument.

    ``end_user`` is for whom it acts: the subject of a token, or the user whom a key with the role delegate names.
    ``key_name`` is what people call the key, for records. Who comes with a token has a keyed digest of issuer and
    subject as ``key_id``, the ``issuer``, the ``grants`` of its rule: names that count where policies list keys, and
    the ``agents`` that act for the subject, the nearest first, by such digests. ``keeps_end_user`` says whether the
    tenant's record keeps the name of the end user, sealed. ``presented`` is the token itself, for the eyes of
    its issuer alone; None for a key, and where the caller acts for an end user of its own. ``mirrored`` is the digest
    by which the mirror of the identity provider finds the person, None without a mirror. ``user_grants`` are the names
    by which policies list the end user for whom a service acts, None where no rule says so: a list must then name both.
    ``user_ref`` is the digest that stands for the end user in the tenant's record, None where it was not worked out.
    """

    tenant: str
    key_id: str
    roles: frozenset[Role]
    end_user: str | None = field(default=None, repr=False)
    key_name: str | None = field(default=None, repr=False, compare=False)
    grants: frozenset[str] = frozenset()
    issuer: str | None = field(default=None, repr=False)
    agents: tuple[str, ...] = ()
    keeps_end_user: bool = field(default=False, repr=False, compare=False)
    mirrored: str | None = field(default=None, repr=False, compare=False)
    user_grants: frozenset[str] | None = None
    user_ref: str | None = field(default=None, repr=False, compare=False)
    presented: str | None = field(default=None, repr=False, compare=False)

    def presenting(self, token: str) -> "Caller":
        """Return the caller with the token that it presents; a quarter of the time of `dataclasses.replace`."""
        return Caller(*(*_WITHOUT_TOKEN(self), token))

    def for_end_user(self, name: str) -> "Caller":
        """Return the caller that acts for an end user, whose token it does not have."""
        return replace(self, end_user=name, user_ref=None, presented=None)

    def is_listed(self, keys: Collection[str] | None) -> bool:
        """Return whether a policy's list of keys names this caller, and its end user; None names everybody."""
        return self.is_listed_itself(keys) and self.is_user_listed(keys)

    def is_listed_itself(self, keys: Collection[str] | None) -> bool:
        """Return whether a list names this caller, for whomever it acts."""
        return keys is None or self.key_id in keys or not self.grants.isdisjoint(keys)

    def is_user_listed(self, keys: Collection[str] | None) -> bool:
        """Return whether a list names the end user, where a rule says by which names that can be."""
        return keys is None or self.user_grants is None or not self.user_grants.isdisjoint(keys)

    def covers(self, other: "Caller") -> bool:
        """Return whether this caller may do all that another one may: itself at another time."""
        users = self.user_grants is None or (
            other.user_grants is not None and other.user_grants <= self.user_grants
        )
        same = (self.tenant, self.key_id) == (other.tenant, other.key_id)
        return same and users and other.roles <= self.roles and other.grants <= self.grants

    def require(self, *roles: Role) -> None:
        """Raise ForbiddenError unless the caller has at least one of ``roles``."""
        if self.roles.isdisjoint(roles):
            needed = " or ".join(sorted(roles))
            raise ForbiddenError(
                f"This needs the role {needed}; request a key with it from a key custodian.",
                details={"required": sorted(roles)},
            )


_WITHOUT_TOKEN: Final = attrgetter(*(part.name for part in fields(Caller) if part.name != "presented"))
"""The others, in their order; the token is the last of all."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The two parts of a presented key; only the digest of the secret is ever stored."""

    id: str
    secret: str

    @classmethod
    def generate(cls) -> "ApiKey":
        """Return a new key: 32 random bits of id, 258 of secret."""
        return cls(secrets.token_hex(4), secrets.token_urlsafe(32))

    @classmethod
    def parse(cls, text: str) -> "ApiKey | None":
        """Return the parts of ``slc_<8 hex>_<43 base64url>``, or None."""
        match = KEY_PATTERN.fullmatch(text)
        return cls(match[1], match[2]) if match else None

    def __str__(self) -> str:
        return f"slc_{self.id}_{self.secret}"

    def __repr__(self) -> str:
        return f"ApiKey(id={self.id!r})"

    @property
    def digest(self) -> bytes:
        """Return SHA-256 of the secret; a random secret of 258 bits needs no slow hash."""
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, digest: bytes) -> bool:
        """Compare the secret's digest with ``digest`` in constant time."""
        return hmac.compare_digest(self.digest, digest)


def parse_roles(names: Iterable[str]) -> frozenset[Role]:
    """Return the roles in ``names``; raise InvalidArgumentsError for unknown ones or none."""
    roles = set()
    for name in names:
        try:
            roles.add(Role(name))
        except ValueError:
            role_names = ", ".join(Role)
            raise InvalidArgumentsError(
                f"Unknown role {name!r}; the roles are {role_names}.", details={"pointer": "/roles"}
            ) from None
    if not roles:
        raise InvalidArgumentsError("A key needs at least one role.", details={"pointer": "/roles"})
    return frozenset(roles)


def check_union(roles: frozenset[Role], *, override: bool = False) -> None:
    """Raise InvalidArgumentsError for unions of roles that let one credential both configure and read."""
    if override:
        return
    for union in REFUSED_UNIONS:
        if union <= roles:
            names = " + ".join(sorted(union))
            raise InvalidArgumentsError(
                f"One key may not have {names}; create two keys, or override explicitly (which is audited).",
                details={"pointer": "/roles", "refused": sorted(union)},
            )


def check_tenant(name: str) -> str:
    """Return ``name`` if it is a valid tenant name, or raise InvalidArgumentsError."""
    if not TENANT_PATTERN.fullmatch(name):
        raise InvalidArgumentsError(
            "A tenant's name must have 1 to 63 lower-case letters, digits and hyphens.",
            details={"pointer": "/tenant"},
        )
    return name
