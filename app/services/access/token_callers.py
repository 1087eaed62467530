"""Say who presents a token of an issuer: verified once, remembered by its digest, mapped by rules."""

import asyncio
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, NamedTuple

from app.core.access import Caller
from app.core.addresses import is_within
from app.core.contracts.identity_policy import IdentityPolicy
from app.core.identities import MappingRule, TrustedIssuer, agents_of
from app.core.tokens import CallerRefusedError, TokenReader, TokenRefusedError, VerifiedToken
from app.services.access.identity.ends import IdentityEnds
from app.services.access.identity.lookups import few_lookups, turn
from app.services.access.identity.memberships import (
    GroupMemory,
    Memberships,
    forget_group,
    group_memory,
)
from app.services.access.identity.mirror_changes import mirror_digest
from app.services.access.identity.stored_issuers import StoredIssuers
from app.services.access.identity.token_trials import TokenTrial
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.token_states import TokenState, looks_opaque
from app.services.audit.audit import AuditService
from app.services.caching import ShortMemory
from app.store.access.identity_marks import ended_at
from app.store.access.policies import find_policy
from app.store.access.provisioned import StoredEntry, find_entry
from app.store.access.tenants import Tenant, find_tenant
from app.store.database import Database

People = dict[str, StoredEntry | None]
Networks = tuple[IPv4Network | IPv6Network, ...]

_STALE_S: Final = 5.0
_CACHED_TOKENS: Final = 10_000
_CACHED_TENANTS: Final = 1_000
_SUBJECT: Final = b"token subject\0"
_SUBJECT_DIGITS: Final = 24


@dataclass(frozen=True, slots=True)
class KnownToken:
    """A verified token prepared for checks: whose it is, until when (seconds since 1970), and from where.

    ``marks`` are those under which its owner, or the session at the issuer, may have ended, or be in other groups.
    """

    caller: Caller
    until: float
    networks: Networks
    marks: frozenset[str] = frozenset()


class StoredRules(NamedTuple):
    """The rules in the policy of a tenant."""

    tenant: str
    identity: IdentityPolicy


class Mapped(NamedTuple):
    """The first rule that fits, None: there is none; and the marks of the groups that were asked about."""

    rule: MappingRule | None
    marks: frozenset[str] = frozenset()


class _Standing(NamedTuple):
    """The tenant of a caller, and whether nobody may call for it, or this one no more."""

    tenant: Tenant | None
    is_over: bool


@dataclass(frozen=True, slots=True)
class TokenCallers:
    """Turns tokens into callers; ``issuers`` are those of the settings, by their exact names.

    ``asked`` are those that say whether a token still counts, among them at most one that takes opaque tokens.
    ``stored`` are those that operators have added; the settings come first.
    """

    issuers: Mapping[str, IssuerKeys]
    asked: Mapping[str, TokenState]
    reader: TokenReader
    database: Database
    audit: AuditService
    memory: ShortMemory[bytes, KnownToken] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TOKENS)
    )
    rules: ShortMemory[str, StoredRules] = field(
        default_factory=lambda: ShortMemory(ttl_s=_STALE_S, size=_CACHED_TENANTS)
    )
    groups: GroupMemory = field(default_factory=group_memory)
    lookups: asyncio.Semaphore = field(default_factory=few_lookups)
    stored: StoredIssuers | None = None

    async def ready(self) -> None:
        """Read again which issuers are trusted, where that may have changed."""
        if self.stored is not None:
            await self.stored.ready()

    @property
    def trusted(self) -> list[IssuerKeys]:
        """Return all issuers that are trusted, those of the settings first."""
        stored = self.stored.seen.keys.values() if self.stored is not None else ()
        return [*self.issuers.values(), *stored]

    def keys_of(self, issuer: str) -> IssuerKeys | None:
        """Return the keys of an issuer, None where it is not trusted."""
        keys = self.issuers.get(issuer)
        return keys if keys is not None or self.stored is None else self.stored.seen.keys.get(issuer)

    def takes(self, text: str) -> bool:
        """Return whether ``text`` may be a token: a signed one, or an opaque one where an issuer knows those."""
        return self.reader.looks_signed(text) or (self._opaque is not None and looks_opaque(text))

    def recognizes(self, text: str) -> bool:
        """Return whether ``text`` is, or pretends to be, a token of one of the issuers."""
        if not self.reader.looks_signed(text):
            return False
        try:
            return self.keys_of(self.reader.head(text).issuer) is not None
        except TokenRefusedError:
            return False

    async def caller_of(self, token: str, address: str | None, moment: datetime) -> Caller:
        """Return who presents ``token`` from an IP address, or raise CallerRefusedError.

        Raises OverloadedError while the keys of an issuer have never been there.
        """
        now = moment.timestamp()
        digest = hashlib.sha256(token.encode()).digest()  # the token itself is not remembered
        known_token = self.memory.peek(digest)
        if known_token is not None and now >= known_token.until:
            self.memory.forget(digest)
            known_token = None
        if known_token is None:
            if not self.takes(token):
                raise CallerRefusedError("malformed")
            known_token = await self.memory.get(digest, lambda _digest: self._verified(token, now, address))
            assert known_token is not None  # noqa: S101 - what is not verified is raised
        if known_token.networks and not is_within(address, known_token.networks):
            raise CallerRefusedError("address", known_token.caller)
        return known_token.caller.presenting(token)

    async def tried(self, token: str, moment: datetime) -> TokenTrial:
        """Say what would become of a token: a dry run, which neither remembers nor records anything."""
        try:
            issuer, verified = await self._checked(token, moment.timestamp(), None)
        except TokenRefusedError as error:
            return TokenTrial(error.reason)
        return await self._mapped(issuer, verified.claims)

    async def tried_claims(self, issuer: str, claims: Mapping[str, Any]) -> TokenTrial:
        """Say what would become of a token of an issuer with these claims: a dry run, for which nothing is signed."""
        await self.ready()
        keys = self.keys_of(issuer)
        if keys is None:
            return TokenTrial("issuer")
        return await self._mapped(keys.issuer, claims)

    async def _mapped(self, issuer: TrustedIssuer, claims: Mapping[str, Any]) -> TokenTrial:
        rules = await self.rules_of(issuer)
        missing = tuple(rule.missing(claims) for rule in rules)
        people: People = {}
        absent = tuple([await self._absent(issuer, rule, claims, people) for rule in rules])
        shown = TokenTrial("unmapped", issuer, rules, missing, absent)
        each = zip(rules, missing, absent, strict=True)
        rule = next((rule for rule, names, groups in each if not names and not groups), None)
        if rule is None:
            return shown
        await self.audit.keys.ready(rule.tenant)
        marks = await self._marks(issuer, rule.tenant, claims)
        if (await self._standing(issuer, rule.tenant, claims, marks)).is_over:
            return replace(shown, reason="ended")
        return replace(shown, reason=None, rule=rule)

    def forget(self, tenant: str | None) -> None:
        """Verify the tokens of a tenant again, None: of all."""
        forget_group(self.groups, tenant, None)
        self.memory.forget_where(lambda known_token: tenant in (None, known_token.caller.tenant))

    def forget_identity(self, mark: str | None) -> None:
        """Verify the tokens of somebody who has ended, or is in other groups, again; None: of everybody."""
        self.memory.forget_where(lambda known_token: mark is None or mark in known_token.marks)

    def forget_group(self, tenant: str | None, digest: str | None) -> None:
        """Read who is in a group again, by the digest of its name; None: in all."""
        forget_group(self.groups, tenant, digest)

    def forget_rules(self, tenant: str | None) -> None:
        """Map tokens again where the policy of a tenant has changed, None: of any."""
        self.rules.forget_where(lambda stored: tenant in (None, stored.tenant))
        mapping = {name for keys in self.trusted for name in keys.issuer.tenants}
        if tenant is None or tenant in mapping:
            # A rule of one tenant may come before that of another, or no longer.
            self.memory.forget_where(lambda known_token: known_token.caller.tenant in mapping)

    def forget_issuer(self, issuer: str | None) -> None:
        """Read again which issuers are trusted, and verify the tokens of one again, None: of all."""
        if self.stored is not None:
            self.stored.forget()
        self.memory.forget_where(lambda known_token: issuer in (None, known_token.caller.issuer))

    async def close(self) -> None:
        """Stop fetching keys."""
        for keys in self.trusted:
            await keys.close()

    @property
    def ends(self) -> IdentityEnds:
        """Return what knows who has ended."""
        return IdentityEnds(self.audit)

    @property
    def _opaque(self) -> TokenState | None:
        stored = self.stored.seen.asked.values() if self.stored is not None else ()
        return next((each for each in (*self.asked.values(), *stored) if each.introspection.opaque), None)

    def _state_of(self, issuer: str) -> TokenState | None:
        """Return what an issuer says of tokens, None where it is not asked."""
        state = self.asked.get(issuer)
        # An issuer of the settings is asked as they say, whatever was stored before it stood there.
        if state is not None or self.stored is None or issuer in self.issuers:
            return state
        return self.stored.seen.asked.get(issuer)

    async def _checked(
        self, token: str, now: float, address: str | None
    ) -> tuple[TrustedIssuer, VerifiedToken]:
        """Return a token's issuer and claims, or raise TokenRefusedError."""
        await self.ready()
        if not self.reader.looks_signed(token):
            if self._opaque is None:
                raise TokenRefusedError("token")
            return self._opaque.issuer, await self._opaque.verified(token, now, address)
        head = self.reader.head(token)
        keys, state = self.keys_of(head.issuer), self._state_of(head.issuer)
        if keys is None:
            raise TokenRefusedError("issuer")
        verified = self.reader.verified(token, head, await keys.candidates(head), keys.issuer, now)
        if state is not None and state.introspection.signed:
            answer = await state.verified(token, now, address)
            verified = VerifiedToken(verified.claims, min(verified.until, answer.until))
        return keys.issuer, verified

    async def _verified(self, token: str, now: float, address: str | None) -> KnownToken:
        try:
            issuer, verified = await self._checked(token, now, address)
        except TokenRefusedError as error:
            raise CallerRefusedError(error.reason) from None
        mapped = await self.first_of(issuer, issuer.rules, verified.claims)
        if mapped.rule is None:
            later = await self.first_of(issuer, await self._stored_rules(issuer), verified.claims)
            mapped = Mapped(later.rule, mapped.marks | later.marks)
        return await self.identified(issuer, verified, mapped)

    async def identified(self, issuer: TrustedIssuer, verified: VerifiedToken, mapped: Mapped) -> KnownToken:
        """Return whom a rule makes the owner of verified claims, or raise CallerRefusedError where that is nobody."""
        rule = mapped.rule
        if rule is None:
            raise CallerRefusedError("unmapped")
        await self.audit.keys.ready(rule.tenant)
        marks = await self._marks(issuer, rule.tenant, verified.claims)
        try:
            caller = self._caller(issuer.issuer, verified.claims, rule)
        except ValueError:
            # Whoever acts for the subject is to be on record, or nobody acts.
            raise CallerRefusedError("token") from None
        standing = await self._standing(issuer, rule.tenant, verified.claims, marks)
        if standing.is_over:
            # A tenant that does not exist has no record.
            raise CallerRefusedError("ended", caller if standing.tenant is not None else None)
        networks = tuple(ip_network(network) for network in rule.networks)
        caller = replace(
            caller,
            mirrored=self._person(issuer, rule.tenant, verified.claims),
            user_ref=self.audit.user_ref(rule.tenant, verified.claims["sub"]),
        )
        return KnownToken(caller, verified.until, networks, marks | mapped.marks)

    def _caller(self, issuer: str, claims: Mapping[str, Any], rule: MappingRule) -> Caller:
        agents = agents_of(claims, issuer)
        return Caller(
            tenant=rule.tenant,
            key_id=self._id(rule.tenant, issuer, claims["sub"]),
            roles=rule.roles,
            end_user=claims["sub"],
            grants=rule.grants,
            issuer=issuer,
            agents=tuple(self._id(rule.tenant, *agent) for agent in agents),
        )

    def _id(self, tenant: str, issuer: str, subject: str) -> str:
        """Return what stands for a subject of an issuer in the records of a tenant."""
        named = _SUBJECT + issuer.encode() + b"\0" + subject.encode("utf-8", "surrogatepass")
        return f"sub-{self.audit.digest(tenant, named)[:_SUBJECT_DIGITS]}"

    async def first_of(
        self,
        issuer: TrustedIssuer,
        rules: Sequence[MappingRule],
        claims: Mapping[str, Any],
        *,
        checked: bool = False,
    ) -> Mapped:
        """Return the first of the rules that claims and groups fit; the mirror is asked where a rule names groups.

        ``checked``: the claims were found to fit all of the rules, and are no longer all there.
        """
        marks: frozenset[str] = frozenset()
        people: People = {}
        for rule in rules:
            if not checked and rule.missing(claims):
                continue
            if rule.groups and issuer.provisioning is not None:
                marks |= await self._memberships.marks_of(rule.tenant, rule.groups)
            if not await self._absent(issuer, rule, claims, people):
                return Mapped(rule, marks)
        return Mapped(None, marks)

    async def _absent(
        self, issuer: TrustedIssuer, rule: MappingRule, claims: Mapping[str, Any], people: People
    ) -> tuple[str, ...]:
        """Return those groups of a rule in which the owner of claims is not: all, where nobody would be found.

        ``people`` keeps whom the mirror of a tenant has, for the rules that are asked next.
        """
        if not rule.groups:
            return ()
        await self.audit.keys.ready(rule.tenant)
        mirror, digest = issuer.provisioning, self._person(issuer, rule.tenant, claims)
        if mirror is None or digest is None:
            return rule.groups
        if rule.tenant not in people:
            async with turn(self.lookups):
                people[rule.tenant] = await self._memberships.person(rule.tenant, mirror.part, digest)
        return await self._memberships.absent(rule.tenant, people[rule.tenant], rule.groups)

    @property
    def _memberships(self) -> Memberships:
        return Memberships(self.audit, self.groups)

    async def rules_of(self, issuer: TrustedIssuer) -> tuple[MappingRule, ...]:
        """Return all rules of an issuer, in the order in which they count."""
        return (*issuer.rules, *await self._stored_rules(issuer))

    async def _stored_rules(self, issuer: TrustedIssuer) -> list[MappingRule]:
        stored = [await self.rules.get(tenant, self._load_rules) for tenant in issuer.tenants]
        return [
            rule.rule_of(rules.tenant)
            for rules in stored
            if rules is not None
            for rule in rules.identity.rules
            if rule.issuer == issuer.issuer
        ]

    async def _load_rules(self, tenant: str) -> StoredRules:
        async with self.database.transaction(tenant, write=False) as tx:
            policy = await find_policy(tx, tenant)
        document = policy.document.get("identity") if policy is not None else None
        return StoredRules(tenant, IdentityPolicy.model_validate(document or {}))

    async def _marks(self, issuer: TrustedIssuer, tenant: str, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return all digests whose announcement is about the owner of these claims."""
        person = self._person(issuer, tenant, claims)
        marks = await self.ends.marks_of(issuer.issuer, claims)
        return marks if person is None else marks | {person}

    def _person(self, issuer: TrustedIssuer, tenant: str, claims: Mapping[str, Any]) -> str | None:
        """Return by which digest the mirror of a tenant finds the owner of these claims, None where it is not asked."""
        mirror = issuer.provisioning
        name = claims.get(mirror.claim) if mirror is not None else None
        if mirror is None or not isinstance(name, str):
            return None
        return mirror_digest(self.audit, tenant, "User", mirror.part, name)

    async def _standing(
        self, issuer: TrustedIssuer, tenant: str, claims: Mapping[str, Any], marks: Collection[str]
    ) -> _Standing:
        """Return what is stored of a tenant, and of whom these claims are about."""
        async with turn(self.lookups), self.database.system_transaction(write=False) as tx:
            found_tenant, ended = await find_tenant(tx, tenant), await ended_at(tx, marks)
            mirror, person = issuer.provisioning, self._person(issuer, tenant, claims)
            entry = None
            if mirror is not None and person is not None:
                entry = await find_entry(tx, tenant, "User", mirror.part, person)
        stays_out = mirror is not None and mirror.required if entry is None else not entry.active
        # What the issuer says of a token when it is asked says already that its owner has ended.
        is_ended = ended is not None and claims.get("iat", math.inf) <= ended
        is_over = found_tenant is None or found_tenant.disabled is not None or is_ended or stays_out
        return _Standing(found_tenant, is_over)
