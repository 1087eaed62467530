"""Callers by token in one process: verified once, remembered for no longer than they count, counted when refused."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from joserfc.jwk import ECKey

from app.core.access import SYSTEM_TENANT, Caller, Role
from app.core.audit import OUTCOME_OK
from app.core.contracts.policy import Policy
from app.core.errors import ForbiddenError, NotFoundError, OverloadedError, UnauthenticatedError
from app.core.events import Changed
from app.core.identities import Introspection, MappingRule, TrustedIssuer
from app.core.tokens import TokenHead, VerifiedToken
from app.engines.tokens import JoseReader
from app.services.access.access import HOST
from app.services.access.credentials import POLICY_CHANGED, Authenticator
from app.services.access.issuer_keys import IssuerKeys
from app.services.access.token_callers import TokenCallers
from app.services.access.token_states import TokenState
from app.services.audit.keeping import KeptContent
from app.services.caching import ShortMemory
from app.store.database import Database
from app.upstream.issuers import IssuerClient
from tests.integration.access_setup import Replica, replica_on
from tests.integration.token_issuer import AUDIENCE, SECRET, Issuer, send, token_issuer

ADDRESS = "10.9.8.7"


class CountingReader(JoseReader):
    """Counts how often a signature is checked."""

    verifications: list[str]

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "verifications", [])

    def verified(self, token: str, head: TokenHead, *rest: Any) -> VerifiedToken:
        self.verifications.append(token)
        return super().verified(token, head, *rest)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with token_issuer() as running:
        yield running


def other_of(tenant: str) -> str:
    return f"{tenant}-other"


@pytest.fixture
async def replica(database: Database, tenant: str) -> AsyncIterator[Replica]:
    async with replica_on(database) as running:
        for name in (tenant, other_of(tenant)):
            await running.tenants.create(HOST, name)
        yield running


def door_of(
    replica: Replica,
    tenant: str,
    *issuers: Issuer,
    size: int = 1000,
    introspection: Introspection | None = None,
    tenants: tuple[str, ...] = (),
) -> Authenticator:
    """Return what knows callers of ``tenant`` by tokens of these issuers."""
    reader, client = CountingReader(), IssuerClient(development=True)
    rules = (
        MappingRule({"groups": "llm-users"}, tenant, frozenset({Role.INVOKER}), networks=("10.0.0.0/8",)),
        MappingRule({"groups": "others"}, other_of(tenant), frozenset({Role.INVOKER})),
    )
    keys = {
        trusted.url: IssuerKeys(
            TrustedIssuer(trusted.url, frozenset({AUDIENCE}), rules, tenants=tenants), client, reader
        )
        for trusted in issuers
    }
    asked = {
        name: TokenState(own.issuer, introspection, client, reader, replica.clock.monotonic)
        for name, own in keys.items()
        if introspection is not None
    }
    memory: ShortMemory[bytes, Any] = ShortMemory(ttl_s=1e9, size=size, clock=replica.clock.monotonic)
    tokens = TokenCallers(keys, asked, reader, replica.database, replica.audit, memory)
    return replace(replica.access.authenticator, tokens=tokens)


def checks(door: Authenticator) -> int:
    assert door.tokens is not None and isinstance(door.tokens.reader, CountingReader)
    return len(door.tokens.reader.verifications)


async def test_a_token_is_verified_once_until_it_counts_no_more(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door, moment = door_of(replica, tenant, issuer), int(replica.clock.now().timestamp())
    token = issuer.token(iat=moment, exp=moment + 300)
    callers = await asyncio.gather(*(door.authenticate(token, ADDRESS) for _ in range(50)))
    assert len({caller.key_id for caller in callers}) == 1 and checks(door) == 1
    replica.clock.advance(300 + 29)
    assert await door.authenticate(token, ADDRESS) == callers[0]
    replica.clock.advance(2)
    with pytest.raises(UnauthenticatedError):
        await door.authenticate(token, ADDRESS)
    assert checks(door) == 2


async def test_what_is_remembered_is_bounded_and_holds_no_token(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer, size=4)
    tokens = [issuer.token(jti=str(number)) for number in range(12)]
    for token in tokens:
        await door.authenticate(token, ADDRESS)
    assert door.tokens is not None
    kept = door.tokens.memory._values
    assert len(kept) == 4 and all(len(digest) == 32 for digest in kept)
    assert not any(token in repr(vars(door.tokens.memory)) for token in tokens)


async def test_a_refusal_is_never_remembered(replica: Replica, tenant: str, issuer: Issuer) -> None:
    door, early = door_of(replica, tenant, issuer), issuer.token(nbf=issuer.claims()["iat"] + 100)
    with pytest.raises(UnauthenticatedError):
        await door.authenticate(early, ADDRESS)
    replica.clock.advance(100)
    assert (await door.authenticate(early, ADDRESS)).roles == {Role.INVOKER}


async def test_a_subject_is_somebody_else_at_another_issuer_and_in_another_tenant(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    with token_issuer() as other:
        door = door_of(replica, tenant, issuer, other)
        callers = [
            await door.authenticate(token, ADDRESS)
            for token in (
                *(issuer.token(), issuer.token(jti="again"), other.token()),
                *(issuer.token(groups=["others"]), issuer.token(sub="grace")),
            )
        ]
        # An issuer's token that another one has signed, under the same name of a key, is nobody's.
        with pytest.raises(UnauthenticatedError):
            await door.authenticate(issuer.token(key=other.key), ADDRESS)
    ids = [caller.key_id for caller in callers]
    assert ids[0] == ids[1] and len(set(ids)) == 4
    assert all(re.fullmatch("sub-[0-9a-f]{24}", caller_id) for caller_id in ids)
    assert (callers[0].tenant, callers[3].tenant) == (tenant, other_of(tenant))


async def test_refusals_are_on_record_by_their_reason(replica: Replica, tenant: str, issuer: Issuer) -> None:
    door = door_of(replica, tenant, issuer)
    moment = issuer.claims()["iat"]
    network = "198.51.100"
    wrong = {
        "audience": issuer.token(aud="https://other.example.com"),
        "issuer": issuer.token(iss="https://other.example.com"),
        "token_expired": issuer.token(exp=moment - 60),
        "token_old": issuer.token(iat=moment - 3600),
        "token_early": issuer.token(nbf=moment + 60),
        "signature": issuer.token(key=ECKey.generate_key("P-256", {"kid": "first"})),
        "token": issuer.token(sub=7),
    }
    for token in wrong.values():
        with pytest.raises(UnauthenticatedError):
            await door.authenticate(token, f"{network}.1")
    with pytest.raises(ForbiddenError):
        await door.authenticate(issuer.token(groups=[]), f"{network}.1")
    with pytest.raises(UnauthenticatedError):
        await door.authenticate(issuer.token(), f"{network}.1")
    await door.record_refused()
    events = await replica.events(SYSTEM_TENANT, action="access.authenticate")
    here = [event.details for event in events if str(event.details.get("network")).startswith(network)]
    assert {details["reason"] for details in here} == {*wrong, "unmapped"}
    assert not any("ada" in str(details) for details in here)
    (own,) = await replica.events(tenant, action="access.authenticate")
    assert (own.details["reason"], str(own.details["key"])[:4]) == ("address", "sub-")


OPAQUE = "7YqPzQ0mW3cN9aVb4XkL"
INTROSPECTION = Introspection("sluice", SECRET)


def state_of(issuer: Issuer, **changed: Any) -> dict[str, Any]:
    return {"active": True, "token_type": "Bearer", **issuer.claims(**changed)}


async def refused(door: Authenticator, token: str) -> None:
    with pytest.raises(UnauthenticatedError):
        await door.authenticate(token, ADDRESS)


async def test_an_opaque_token_counts_for_as_long_as_the_issuer_says(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer, introspection=INTROSPECTION)
    issuer.states[OPAQUE] = state_of(issuer)
    callers = await asyncio.gather(*(door.authenticate(OPAQUE, ADDRESS) for _ in range(20)))
    assert (callers[0].tenant, callers[0].end_user) == (tenant, "ada")
    assert issuer.asked["/introspect"] == 1
    assert callers[0] == await door.authenticate(issuer.token(), ADDRESS)  # the same person, by either token
    issuer.states[OPAQUE] = {"active": False}
    replica.clock.advance(INTROSPECTION.cache_s - 1)
    assert await door.authenticate(OPAQUE, ADDRESS) == callers[0]
    replica.clock.advance(2)
    for _ in range(5):
        await refused(door, OPAQUE)
    assert issuer.asked["/introspect"] == 2  # nor is it asked for again what it does not know


@pytest.mark.parametrize(
    "changed",
    [
        {"active": False},
        {"active": "true"},
        {"active": 1},
        {"aud": None},
        {"aud": "https://other.example.com"},
        {"iss": "https://other.example.com"},
        {"sub": None},
        {"sub": ["ada"]},
        {"exp": 7},
        {"exp": "never"},
        {"iat": 7},
        {"nbf": 4e9},
        {"token_type": "DPoP"},
        {"token_type": ["Bearer"]},
        {"token_use": "refresh_token"},
    ],
    ids=str,
)
async def test_what_an_issuer_says_of_a_token_must_be_whole(
    replica: Replica, tenant: str, issuer: Issuer, changed: dict[str, Any]
) -> None:
    door = door_of(replica, tenant, issuer, introspection=INTROSPECTION)
    issuer.states[OPAQUE] = {
        name: value for name, value in {**state_of(issuer), **changed}.items() if value is not None
    }
    await refused(door, OPAQUE)
    good = {"exp": 10**400, "iat": None, "iss": None}
    issuer.states[OPAQUE * 2] = {**state_of(issuer, **good), "sub": "ada"}
    assert (await door.authenticate(OPAQUE * 2, ADDRESS)).end_user == "ada"


async def test_the_token_of_a_service_without_a_subject_is_about_its_client(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer, introspection=INTROSPECTION)
    issuer.states[OPAQUE] = state_of(issuer, sub=None, client_id="backend")
    assert (await door.authenticate(OPAQUE, ADDRESS)).end_user == "backend"


async def test_signed_tokens_that_are_revoked_count_no_more_where_the_issuer_is_asked(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer, introspection=replace(INTROSPECTION, signed=True))
    token = issuer.token()
    issuer.states[token] = state_of(issuer)
    assert await door.authenticate(token, ADDRESS)
    issuer.states.clear()
    replica.clock.advance(INTROSPECTION.cache_s + 1)
    await refused(door, token)
    asked = issuer.asked["/introspect"]
    await refused(door, issuer.token(aud="https://other.example.com"))  # which nobody needs to be asked about
    assert issuer.asked["/introspect"] == asked


async def test_an_issuer_that_does_not_answer_lets_nobody_new_in(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer, introspection=INTROSPECTION)
    issuer.states[OPAQUE] = state_of(issuer)
    caller = await door.authenticate(OPAQUE, ADDRESS)
    for fault in (b"[]", b"no JSON", b'{"active": true, "active": false}'):
        issuer.answer = lambda request, body=fault: send(request, body)
        with pytest.raises(OverloadedError):
            await door.authenticate(OPAQUE * 2, ADDRESS)
    assert await door.authenticate(OPAQUE, ADDRESS) == caller
    issuer.answer = None
    await refused(door, OPAQUE * 2)


async def test_what_is_no_opaque_token_is_sent_nowhere(replica: Replica, tenant: str, issuer: Issuer) -> None:
    door = door_of(replica, tenant, issuer, introspection=INTROSPECTION)
    for other in ("short", "slc_0123abcd_" + "A" * 42, "slc_0123abcd_" + "A" * 43, "x" * 5000, "a b" * 9):
        await refused(door, other)
    without = door_of(replica, tenant, issuer)
    await refused(without, OPAQUE)
    assert issuer.asked["/introspect"] == 0


async def test_a_dry_run_says_which_rule_maps_and_remembers_nothing(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    tokens = door_of(replica, tenant, issuer).tokens
    assert tokens is not None
    moment = replica.clock.now()
    trial = await tokens.tried(issuer.token(groups=["others"]), moment)
    assert list(trial.missing) == [("groups",), ()]
    assert (trial.reason, trial.rule) == (None, trial.issuer and trial.issuer.rules[1])
    assert (await tokens.tried(issuer.token(groups=[]), moment)).reason == "unmapped"
    assert (await tokens.tried(issuer.token(aud="x"), moment)).reason == "audience"
    await replica.tenants.disable(HOST, other_of(tenant))
    assert (await tokens.tried(issuer.token(groups=["others"]), moment)).reason == "ended"
    assert not tokens.memory._values


async def test_agents_that_act_for_somebody_are_on_record_with_him(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    door = door_of(replica, tenant, issuer)
    ada = await door.authenticate(issuer.token(), ADDRESS)
    planner = await door.authenticate(issuer.token(sub="planner"), ADDRESS)
    chain = {"sub": "planner", "act": {"iss": "https://agents.example.com", "sub": "planner"}}
    caller = await door.authenticate(issuer.token(act=chain), ADDRESS)
    assert (caller.key_id, caller.agents[0], len(set(caller.agents))) == (ada.key_id, planner.key_id, 2)
    event = replica.audit.new_event(caller, "middleware.invoke", "ok", None)
    assert event.details["agents"] == " ".join(caller.agents)
    assert "agents" not in replica.audit.new_event(ada, "middleware.invoke", "ok", None).details
    deep: dict[str, Any] = {"sub": "planner"}
    for _ in range(8):
        deep = {"sub": "planner", "act": deep}
    for wrong in (
        "planner",
        ["planner"],
        {},
        {"sub": 7},
        {"sub": "a", "iss": 7},
        {"sub": "a", "act": "b"},
        deep,
    ):
        await refused(door, issuer.token(act=wrong))


async def test_rules_of_tenants_come_after_those_of_the_settings_and_map_to_the_tenant_alone(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    other = other_of(tenant)
    door = door_of(replica, tenant, issuer, tenants=(other, tenant))
    token = issuer.token(groups=["contractors"])

    async def store(target: str, *rules: dict[str, Any]) -> None:
        named = [{"issuer": issuer.url, **rule} for rule in rules]
        policy = Policy.model_validate({"identity": {"rules": named}})
        operator = Caller(target, "0badcafe", frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN}))
        await replica.policies.put(operator, None, policy)
        door.changed(Changed(POLICY_CHANGED, target))

    contractors: dict[str, Any] = {
        "when": {"groups": "contractors"},
        "roles": ["invoker"],
        "grants": ["guests"],
    }
    with pytest.raises(ForbiddenError):
        await door.authenticate(token, ADDRESS)
    await store(tenant, contractors, {"when": {"groups": "llm-users"}, "roles": ["auditor"]})
    caller = await door.authenticate(token, ADDRESS)
    assert (caller.tenant, caller.roles, caller.grants) == (tenant, {Role.INVOKER}, {"guests"})
    assert (await door.authenticate(issuer.token(), ADDRESS)).roles == {Role.INVOKER}  # the settings' rule
    # The order of the tenants is that of the settings.
    await store(other, contractors)
    assert (await door.authenticate(token, ADDRESS)).tenant == other
    # A rule for another issuer maps none of this one's tokens.
    await store(other, {**contractors, "issuer": "https://other.example.com"})
    assert (await door.authenticate(token, ADDRESS)).tenant == tenant
    await store(tenant)
    with pytest.raises(ForbiddenError):
        await door.authenticate(token, ADDRESS)
    # Where the settings name no tenants, what a policy says of tokens has no effect.
    await store(other, contractors)
    with pytest.raises(ForbiddenError):
        await door_of(replica, tenant, issuer).authenticate(token, ADDRESS)


async def test_the_policy_keeps_the_subjects_of_tokens(replica: Replica, tenant: str, issuer: Issuer) -> None:
    door, token = door_of(replica, tenant, issuer), issuer.token(sub="zoe@example.org")
    moments = {}
    for kept in (False, True, False):
        await replica.policies.put(HOST, tenant, Policy(audit_end_users=kept))
        door.changed(Changed(POLICY_CHANGED, tenant))
        caller = await door.authenticate(token, ADDRESS)
        event = replica.audit.new_event(caller, "act", OUTCOME_OK, None)
        moments[event.id] = kept
        await replica.audit.record(event)
    auditor = Caller(tenant, "0000000a", frozenset({Role.AUDITOR, Role.RESTORER}))
    opening = KeptContent(replica.audit)
    for event_id, kept in moments.items():
        if kept:
            assert await opening.end_user(auditor, event_id, "a complaint") == "zoe@example.org"
        else:
            with pytest.raises(NotFoundError):
                await opening.end_user(auditor, event_id, "a complaint")


async def test_who_makes_keys_makes_rules_that_make_callers(
    replica: Replica, tenant: str, issuer: Issuer
) -> None:
    rule = {"issuer": issuer.url, "when": {"groups": "contractors"}, "roles": ["invoker"]}
    policy = Policy.model_validate({"identity": {"rules": [rule]}})
    for roles in ({Role.OPERATOR}, {Role.KEY_CUSTODIAN}):
        with pytest.raises(ForbiddenError):
            await replica.policies.put(Caller(tenant, "0badcafe", frozenset(roles)), None, policy)
    both = Caller(tenant, "0badcafe", frozenset({Role.OPERATOR, Role.KEY_CUSTODIAN}))
    assert [change.pointer for change in (await replica.policies.put(both, None, policy)).widened] == [
        "/identity/rules/0"
    ]
    # What leaves the rules as they are is an operator's own affair.
    operator = Caller(tenant, "0badcafe", frozenset({Role.OPERATOR}))
    changed = policy.model_copy(update={"audit_content": True})
    assert (await replica.policies.put(operator, None, changed)).version == 2
    with pytest.raises(ForbiddenError):
        await replica.policies.put(operator, None, Policy())
