"""Bound what a service may do for the end user whom it names: by rules of the settings and of the tenant's policy.

A rule only takes away: the service acts with the rights that both it and its end user have. Of the settings' rules
and of the policy's the first that matches counts, each for itself, and both take away.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple, TypeVar

from app.core.access import Caller, Role
from app.core.contracts.identity_policy import IdentityPolicy
from app.core.errors import ForbiddenError
from app.core.identities import EndUserRule, EndUserRules
from app.services.access.identity.lookups import few_lookups, turn
from app.services.access.identity.memberships import (
    GroupMemory,
    Memberships,
    forget_group,
    group_memory,
)
from app.services.access.identity.mirror_changes import mirror_digest
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.policies import find_policy
from app.store.access.provisioned import StoredEntry

T = TypeVar("T")
Source = Literal["settings", "policy"]
Refusal = Literal["refused", "inactive"]
"""Why nothing is done for an end user: a rule says so, or the mirror knows nobody active of that name."""

_STALE_S: Final = 5.0
_CACHED_TENANTS: Final = 1_000
_CACHED_USERS: Final = 10_000


class TenantBounds(NamedTuple):
    """The rules for the end users of a tenant by where they stand; none where nothing is said of them."""

    tenant: str
    sources: tuple[tuple[Source, EndUserRules], ...]


class RuleTrial(NamedTuple):
    """What a rule says of an end user; ``absent`` are those of its groups in which they are not."""

    rule: EndUserRule
    named: bool
    absent: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Return whether the rule means this end user."""
        return self.named and not self.absent


@dataclass(frozen=True, slots=True)
class SourceTrial:
    """What the rules of one place say of an end user; ``marks`` announce that this may have changed.

    ``trials`` end with the first rule that matches, unless all were asked for.
    """

    source: Source
    trials: tuple[RuleTrial, ...]
    inactive: bool = False
    marks: frozenset[str] = frozenset()

    @property
    def rule(self) -> EndUserRule | None:
        """Return the rule that counts."""
        return next((trial.rule for trial in self.trials if trial.matches), None)

    @property
    def refusal(self) -> Refusal | None:
        """Return why nothing is done for this end user, None where something is."""
        if self.inactive:
            return "inactive"
        return "refused" if self.rule is not None and self.rule.refuse else None


class EndUserBounds(NamedTuple):
    """What is left of any service's rights for one end user; None: all."""

    tenant: str
    marks: frozenset[str]
    roles: frozenset[Role] | None = None
    grants: frozenset[str] | None = None
    refusal: Refusal | None = None

    @classmethod
    def of(cls, tenant: str, trials: Iterable[SourceTrial]) -> "EndUserBounds":
        """Return what all rules together leave."""
        bounds = cls(tenant, frozenset())
        for trial in trials:
            rule = trial.rule or EndUserRule()
            bounds = bounds._replace(
                marks=bounds.marks | trial.marks,
                roles=_both(bounds.roles, rule.roles),
                grants=_both(bounds.grants, rule.grants),
                refusal=bounds.refusal or trial.refusal,
            )
        return bounds

    def bounded(self, caller: Caller) -> Caller:
        """Return the service with what is left, or raise ForbiddenError."""
        if self.refusal is not None:
            raise ForbiddenError(_WORDS[self.refusal], details={"end_user": self.refusal})
        roles = caller.roles if self.roles is None else caller.roles & self.roles
        return replace(caller, roles=roles, user_grants=self.grants)


@dataclass(frozen=True, slots=True)
class EndUsers:
    """Knows the rules of ``settings`` by tenant, and remembers those of policies and what they say of whom.

    End users are remembered by a digest, without their names.
    """

    settings: Mapping[str, EndUserRules] = field(default_factory=dict)
    groups: GroupMemory = field(default_factory=group_memory)
    tenants: ShortMemory[str, TenantBounds] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )
    users: ShortMemory[bytes, EndUserBounds] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_USERS)
    )
    lookups: asyncio.Semaphore = field(default_factory=few_lookups)

    async def bounded(self, audit: AuditService, caller: Caller, user: str) -> Caller:
        """Return a service with the rights that it has for an end user.

        Raises ForbiddenError for one who is refused, and what the store raises where it gives no answer.
        """
        tenant = caller.tenant
        if not (await self.rules_of(audit, tenant)).sources:
            return caller
        key = hashlib.sha256(f"{tenant}\0{user}".encode("utf-8", "surrogatepass")).digest()
        bounds = self.users.peek(key) or await self.users.get(
            key, lambda _key: self._bounds(audit, tenant, user)
        )
        assert bounds is not None  # noqa: S101 - an end user without rules has bounds that bound nothing
        return bounds.bounded(caller)

    async def tried(
        self, audit: AuditService, tenant: str, user: str, *, whole: bool = True
    ) -> list[SourceTrial]:
        """Say what the rules make of an end user: a dry run, which records nothing; ``whole``: of all rules."""
        await audit.keys.ready(tenant)
        rules = await self.rules_of(audit, tenant)
        return [
            await self._asked(audit, tenant, source, bounds, user, whole=whole)
            for source, bounds in rules.sources
        ]

    def forget_mark(self, tenant: str | None, mark: str | None) -> None:
        """Ask again about a person, or the members of a group, that a digest stands for; None: about everybody."""
        # The group first: nobody may be looked at again by what it was.
        forget_group(self.groups, tenant, mark)
        self.users.forget_where(lambda bounds: mark is None or mark in bounds.marks)

    def forget_tenant(self, tenant: str | None) -> None:
        """Read the rules of a tenant and its groups again, None: of all."""
        forget_group(self.groups, tenant, None)
        self.tenants.forget_where(lambda bounds: tenant in (None, bounds.tenant))
        self.users.forget_where(lambda bounds: tenant in (None, bounds.tenant))

    async def _bounds(self, audit: AuditService, tenant: str, user: str) -> EndUserBounds:
        # The rules are read again inside: what is remembered of a user must not come from rules of before.
        return EndUserBounds.of(tenant, await self.tried(audit, tenant, user, whole=False))

    async def rules_of(self, audit: AuditService, tenant: str) -> TenantBounds:
        """Return the rules for the end users of a tenant, from memory while that is fresh."""

        async def load(_tenant: str) -> TenantBounds:
            async with turn(self.lookups), audit.database.transaction(tenant, write=False) as tx:
                policy = await find_policy(tx, tenant)
            document = policy.document.get("identity") if policy is not None else None
            own = IdentityPolicy.model_validate(document or {}).end_users.bounds()
            places: tuple[tuple[Source, EndUserRules | None], ...] = (
                ("settings", self.settings.get(tenant)),
                ("policy", own),
            )
            says = ((source, rules) for source, rules in places if rules and (rules.rules or rules.mirror))
            return TenantBounds(tenant, tuple(says))

        rules = self.tenants.peek(tenant) or await self.tenants.get(tenant, load)
        assert rules is not None  # noqa: S101 - a tenant without a policy has rules that say nothing
        return rules

    async def _asked(
        self, audit: AuditService, tenant: str, source: Source, rules: EndUserRules, user: str, *, whole: bool
    ) -> SourceTrial:
        memberships, mirror = Memberships(audit, self.groups), rules.mirror
        marks: frozenset[str] = frozenset()
        person: StoredEntry | None = None
        if mirror is not None:
            digest = mirror_digest(audit, tenant, "User", mirror.part, user)
            marks |= {digest}
            async with turn(self.lookups):
                person = await memberships.person(tenant, mirror.part, digest)
        inactive = mirror is not None and (mirror.required if person is None else not person.active)
        trials: list[RuleTrial] = []
        for rule in rules.rules:
            trial = RuleTrial(rule, rule.names(user))
            if rule.groups and (trial.named or whole):
                marks |= await memberships.marks_of(tenant, rule.groups)
                trial = trial._replace(absent=await memberships.absent(tenant, person, rule.groups))
            trials.append(trial)
            if trial.matches and not whole:
                break
        return SourceTrial(source, tuple(trials), inactive, marks)


_WORDS: Final[Mapping[Refusal, str]] = {
    "refused": "Nothing is done here for the end user in X-Sluice-User: a rule for end users (identity.end_users of "
    "the policy, or SLUICE_AUTH__END_USERS) refuses them.",
    "inactive": "Nothing is done here for the end user in X-Sluice-User: the mirror of the identity provider has no "
    "active person of that name, and the rules for end users ask for one.",
}


def _both(first: frozenset[T] | None, second: frozenset[T] | None) -> frozenset[T] | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second
