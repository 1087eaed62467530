"""Whom tokens make callers of a tenant: the rules of issuers that map to it, and those of its policy."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from app.core.access import Caller, Role
from app.core.identities import EndUserRules, Expected, MappingRule
from app.core.request import RequestInfo
from app.services.access.access import AccessService
from app.services.access.identity.end_users import Source as BoundSource
from app.services.access.identity.issuer_states import IssuerState, state_of
from app.services.access.policies import PolicyService

Source = Literal["settings", "stored", "policy"]
"""Where a rule stands: in the settings, in an issuer that operators have added, or in the tenant's policy."""


class ShownRule(NamedTuple):
    """A rule, and where it stands; ``groups`` are those of the mirror."""

    when: Mapping[str, Expected]
    groups: Sequence[str]
    roles: Sequence[Role]
    grants: Sequence[str]
    networks: Sequence[str]
    source: Source


class ShownIssuer(NamedTuple):
    """An issuer, its rules for one tenant in the order in which they count, and what this process knows of it."""

    issuer: str
    audience: Sequence[str]
    algorithms: Sequence[str]
    max_token_age_s: int
    rules: Sequence[ShownRule]
    state: IssuerState


async def identities(
    access: AccessService, policies: PolicyService, caller: Caller, request: RequestInfo | None = None
) -> list[ShownIssuer]:
    """Return the issuers whose tokens can make callers of the caller's tenant; needs the role key custodian."""
    async with access.audit.refusals(caller, "identity.list", request):
        caller.require(Role.KEY_CUSTODIAN)
    tokens = access.authenticator.tokens
    if tokens is None:
        return []
    await tokens.ready()
    _, policy = await policies.get(caller.tenant)
    listed = []
    for keys in sorted(tokens.trusted, key=attrgetter("issuer.issuer")):
        issuer = keys.issuer
        source: Source = "settings" if issuer.issuer in tokens.issuers else "stored"
        rules = [_shown(rule, source) for rule in issuer.rules if rule.tenant == caller.tenant]
        if caller.tenant in issuer.tenants:
            own = [rule for rule in policy.identity.rules if rule.issuer == issuer.issuer]
            rules += [_shown(rule.rule_of(caller.tenant), "policy") for rule in own]
        if rules:
            listed.append(
                ShownIssuer(
                    issuer.issuer,
                    sorted(issuer.audience),
                    sorted(issuer.algorithms),
                    issuer.max_token_age_s,
                    rules,
                    state_of(keys, access.now()),
                )
            )
    return listed


async def end_user_rules(access: AccessService, caller: Caller) -> Sequence[tuple[BoundSource, EndUserRules]]:
    """Return what bounds services for end users in the caller's tenant; for those whom ``identities`` answers."""
    return (await access.authenticator.end_users.rules_of(access.audit, caller.tenant)).sources


def _shown(rule: MappingRule, source: Source) -> ShownRule:
    return ShownRule(rule.when, rule.groups, sorted(rule.roles), sorted(rule.grants), rule.networks, source)
