"""Say who presents a key or a token, and check the properties of a new one."""

import asyncio
import hmac
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from app.core.access import ApiKey, Caller, Role
from app.core.addresses import is_within
from app.core.errors import (
    ForbiddenError,
    InvalidArgumentsError,
    InvalidRequestError,
    UnauthenticatedError,
)
from app.core.events import Changed
from app.core.request import RequestInfo
from app.core.tokens import CallerRefusedError
from app.services.access.identity.end_users import EndUsers
from app.services.access.identity.ends import IDENTITY_ENDED
from app.services.access.identity.lookups import few_lookups, turn
from app.services.access.identity.mirror_changes import DIRECTORY_CHANGED
from app.services.access.identity.stored_issuers import ISSUERS_CHANGED
from app.services.access.refused_credentials import Reason, RefusedCredentials
from app.services.access.token_callers import TokenCallers
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.access import StoredKey, find_key_with_tenant
from app.store.access.policies import find_policy
from app.store.changes import EVERYTHING
from app.store.database import Database

KEYS_CHANGED: Final = "keys"
POLICY_CHANGED: Final = "policy"
TENANT_CHANGED: Final = "tenant"

MAX_NAME: Final = 200
MAX_CIDRS: Final = 100
LONGEST_END_USER: Final = 256
_STALE_S: Final = 5.0
_CACHED_KEYS: Final = 10_000
_CACHED_TENANTS: Final = 10_000
_NO_DIGEST: Final = bytes(32)


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
        caller = Caller(info.tenant, info.id, info.roles, key_name=info.name)
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

    def caller_of(self, digest: bytes, address: str | None, moment: datetime) -> Caller | None:
        """Return who holds the secret with ``digest``, with its roles at this moment; None where it is not valid now.

        Digests are compared in constant time.
        """
        current = hmac.compare_digest(digest, self.digest)
        older = self.previous_digest is not None and hmac.compare_digest(digest, self.previous_digest)
        overlapping = self.previous_expires is not None and moment < self.previous_expires
        if (
            not (current or (older and overlapping))
            or self.ended
            or (self.expires is not None and moment >= self.expires)
            or (self.networks and not is_within(address, self.networks))
        ):
            return None
        if not current:
            return self.previous_caller
        waits = self.pending_until is not None and moment < self.pending_until
        return self.caller if waits else self.settled_caller

    def fault_of(self, digest: bytes, moment: datetime) -> Reason:
        """Return why `caller_of` knows no caller."""
        secrets = [self.digest]
        if self.previous_digest is not None and self.previous_expires is not None:
            secrets += [self.previous_digest] if moment < self.previous_expires else []
        if not any(hmac.compare_digest(digest, secret) for secret in secrets):
            return "secret"
        if self.ended:
            return "ended"
        return "expired" if self.expires is not None and moment >= self.expires else "address"


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Says who asks; ``anonymous`` is the caller of every request where authentication is off.

    Subscribe ``changed`` to the announcements of other processes; without them, a revoked key stays valid for at
    most five seconds more.
    """

    database: Database
    audit: AuditService
    anonymous: Caller | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    memory: ShortMemory[str, KnownKey] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_KEYS)
    )
    # Limits lookups, so that a flood of invented keys cannot take every connection of the pool.
    lookups: asyncio.Semaphore = field(default_factory=few_lookups)
    refused: RefusedCredentials = field(default_factory=RefusedCredentials)
    keeping: ShortMemory[str, tuple[str, bool]] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )
    """Tenants, and whether their policies keep the names of end users."""
    tokens: TokenCallers | None = None
    """Who comes with a token of an issuer; None: only keys are taken."""
    end_users: EndUsers = field(default_factory=EndUsers)
    """What services may do for the end users whom they name."""

    async def authenticate(self, bearer: str | None, address: str | None) -> Caller:
        """Return the caller that presents ``bearer`` (the key or token alone) from the IP address ``address``.

        A key that is unknown, expired, revoked, of a disabled tenant or used from a wrong address is refused
        with the same message; so is a token that is not valid here. Raises ForbiddenError for a valid token that no
        rule maps, OverloadedError while an issuer has never said which keys it has.
        """
        if self.anonymous is not None:
            await self.audit.keys.ready(self.anonymous.tenant)
            return self.anonymous
        key = ApiKey.parse(bearer) if bearer is not None else None
        if key is None:
            if bearer and self.tokens is not None:
                return await self._token_caller(self.tokens, bearer, address)
            raise self._refusal("malformed" if bearer else "missing", address)
        known_key = await self.find(key.id)
        if known_key is None:
            hmac.compare_digest(key.digest, _NO_DIGEST)
            raise self._refusal("unknown", address)
        moment = self.now()
        caller = known_key.caller_of(key.digest, address, moment)
        if caller is None:
            raise self._refusal(known_key.fault_of(key.digest, moment), address, known_key.caller)
        await self.audit.keys.ready(caller.tenant)
        return caller

    async def find(self, key_id: str) -> KnownKey | None:
        """Return a stored key, from memory while that is fresh; it says nothing of who presents it."""
        return self.memory.peek(key_id) or await self.memory.get(key_id, self._look_up)

    def recognizes(self, text: str) -> bool:
        """Return whether ``text`` is a token of one of the issuers, valid or not."""
        return self.tokens is not None and self.tokens.recognizes(text)

    async def _token_caller(self, tokens: TokenCallers, token: str, address: str | None) -> Caller:
        try:
            caller = await tokens.caller_of(token, address, self.now())
            await self.audit.keys.ready(caller.tenant)
            return await self._for_end_user(caller)
        except CallerRefusedError as error:
            refusal = self._refusal(error.reason, address, error.caller)
            if error.reason == "unmapped":
                raise ForbiddenError(
                    "The token is valid, but no rule gives its owner a role here; ask whoever runs this service.",
                    details={"required": sorted(Role)},
                ) from None
            raise refusal from None

    async def record_refused(self) -> None:
        """Put on record how many credentials this process refused since it last did."""
        await self.refused.record(self.audit)

    async def acting(self, caller: Caller, names: Sequence[bytes], request: RequestInfo) -> Caller:
        """Return the caller, for the end user whom ``names`` name: the values of the request's header X-Sluice-User.

        It has no more rights than a rule leaves it for that user. Raises ForbiddenError without the role delegate and
        for an end user who is refused, InvalidRequestError for what is no name; all are on record.
        """
        if not names:
            return caller
        async with self.audit.refusals(caller, "access.delegate", request):
            caller.require(Role.DELEGATE)
            name = _end_user(names)
        named = await self._for_end_user(caller.for_end_user(name))
        async with self.audit.refusals(named, "access.delegate", request):
            return await self.end_users.bounded(self.audit, named, name)

    async def refuse(
        self, caller: Caller, roles: Collection[Role], action: str, request: RequestInfo
    ) -> None:
        """Raise ForbiddenError, on record as ``action``: the caller has none of ``roles``."""
        async with self.audit.refusals(caller, action, request):
            caller.require(*roles)

    def changed(self, changed: Changed) -> None:
        """Forget what an announced change has made stale."""
        if changed.kind == EVERYTHING:
            self.memory.forget_where(lambda _known_key: True)
        elif changed.kind == KEYS_CHANGED and changed.name is not None:
            self.memory.forget(changed.name)
        elif changed.kind in (KEYS_CHANGED, TENANT_CHANGED):
            self.memory.forget_where(lambda known_key: changed.tenant in (None, known_key.caller.tenant))
        if changed.kind in (EVERYTHING, POLICY_CHANGED):
            self.keeping.forget_where(lambda kept: changed.tenant in (None, kept[0]))
        if changed.kind in (EVERYTHING, POLICY_CHANGED, TENANT_CHANGED):
            self.end_users.forget_tenant(changed.tenant)
        if changed.kind in (IDENTITY_ENDED, DIRECTORY_CHANGED):
            self.end_users.forget_mark(changed.tenant, changed.name)
        if self.tokens is not None:
            self._tell_tokens(self.tokens, changed)

    def _tell_tokens(self, tokens: TokenCallers, changed: Changed) -> None:
        if changed.kind in (EVERYTHING, TENANT_CHANGED):
            tokens.forget(changed.tenant)
        if changed.kind == DIRECTORY_CHANGED:
            tokens.forget_group(changed.tenant, changed.name)
        if changed.kind in (IDENTITY_ENDED, DIRECTORY_CHANGED):
            tokens.forget_identity(changed.name)
        if changed.kind in (EVERYTHING, POLICY_CHANGED):
            tokens.forget_rules(changed.tenant)
        if changed.kind in (EVERYTHING, ISSUERS_CHANGED):
            tokens.forget_issuer(changed.name)

    def _refusal(
        self, reason: Reason, address: str | None, key: Caller | None = None
    ) -> UnauthenticatedError:
        """Count a refusal; the answer is the same for every reason."""
        self.refused.note(reason, address, self.now(), key)
        if self.tokens is not None and self.tokens.trusted:
            return UnauthenticatedError("A valid token or API key is needed: Authorization: Bearer …")
        return UnauthenticatedError("A valid API key is needed: Authorization: Bearer slc_…")

    async def _for_end_user(self, caller: Caller) -> Caller:
        """Return a caller for an end user, whose name is kept where the policy says so."""
        tenant = caller.tenant
        kept = self.keeping.peek(tenant) or await self.keeping.get(tenant, self._load_keeping)
        return replace(caller, keeps_end_user=True) if kept is not None and kept[1] else caller

    async def _load_keeping(self, tenant: str) -> tuple[str, bool]:
        async with self.database.transaction(tenant, write=False) as tx:
            policy = await find_policy(tx, tenant)
        return tenant, policy is not None and policy.document.get("audit_end_users") is True

    async def _look_up(self, key_id: str) -> KnownKey | None:
        async with turn(self.lookups), self.database.system_transaction(write=False) as tx:
            stored = await find_key_with_tenant(tx, key_id)
        return KnownKey.of(stored) if stored is not None else None


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


def _end_user(names: Sequence[bytes]) -> str:
    name = names[0].strip(b" \t").decode("utf-8", "replace")
    if len(names) > 1 or not 1 <= len(name) <= LONGEST_END_USER or not name.isprintable() or "\ufffd" in name:
        raise InvalidRequestError(
            f"X-Sluice-User must be sent once, with 1 to {LONGEST_END_USER} printable characters in UTF-8.",
            details={"header": "X-Sluice-User"},
        )
    return name
