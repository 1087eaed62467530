"""Rules that map claims, and that bound what is done for end users: what they match, and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.contracts.policy import Policy
from app.core.identities import EndUserRule, Expected, MappingRule, TrustedIssuer, claim_at

INVOKER = frozenset({Role.INVOKER})
BOTH = frozenset({Role.INVOKER, Role.RESTORER})


def rule(when: dict[str, Expected], roles: frozenset[Role] = INVOKER) -> MappingRule:
    return MappingRule(when, "acme", roles)


@pytest.mark.parametrize(
    ("when", "claims", "matches"),
    [
        ({"groups": "a"}, {"groups": ["b", "a"]}, True),
        ({"groups": "a"}, {"groups": "a"}, True),
        ({"groups": "a"}, {"groups": "a b"}, False),
        ({"groups": ("a", "b")}, {"groups": ["b", "c", "a"]}, True),
        ({"groups": ("a", "b")}, {"groups": ["a"]}, False),
        ({"scope": "use"}, {"scope": "read use"}, True),
        ({"scope": "use"}, {"scope": "reuse"}, False),
        ({"scp": ("use", "read")}, {"scp": "read use more"}, True),
        ({"scp": "use"}, {"scp": ["use"]}, True),
        ({"groups": "a", "scope": "use"}, {"groups": ["a"], "scope": "use"}, True),
        ({"groups": "a", "scope": "use"}, {"groups": ["a"]}, False),
        ({"/realm_access/roles": "a"}, {"realm_access": {"roles": ["a"]}}, True),
        ({"/realm_access/roles": "a"}, {"/realm_access/roles": ["a"]}, False),
        ({"/realm_access/roles": "a"}, {"realm_access": [{"roles": "a"}]}, False),
        ({"https://example.com/groups": "a"}, {"https://example.com/groups": ["a"]}, True),
        ({"/a~1b/~0c": "x"}, {"a/b": {"~c": "x"}}, True),
        ({"email_verified": True}, {"email_verified": True}, True),
        ({"email_verified": True}, {"email_verified": "true"}, False),
        ({"email_verified": True}, {"email_verified": 1}, False),
        ({"email_verified": False}, {}, False),
        ({"groups": "a"}, {"groups": {"a": True}}, False),
        ({"groups": "a"}, {"groups": [["a"]]}, False),
        ({"groups": "a"}, {"groups": None}, False),
        ({"groups": "None"}, {"groups": None}, False),
        ({"groups": "7"}, {"groups": [7]}, False),
        ({"groups": "7"}, {"groups": 7}, False),
        ({"groups": "a"}, {"groups": [{"a": 1}, True, None, 1.5, "a"]}, True),
        ({"groups": "a"}, {"Groups": ["a"]}, False),
        ({"groups": "a"}, {"groups": ["A"]}, False),
        ({"groups": ()}, {"groups": ["a"]}, False),
        ({"scope": ()}, {"scope": "use"}, False),
    ],
)
def test_a_rule_matches_what_the_claims_say(
    when: dict[str, Expected], claims: dict[str, Any], *, matches: bool
) -> None:
    assert rule(when).matches(claims) is matches


def test_a_rule_that_names_groups_of_the_mirror_needs_all_of_them_beside_the_claims() -> None:
    both = replace(rule({"sub": "ada"}), groups=("a", "b"))
    alone = replace(rule({}), groups=("a",))
    assert both.matches({"sub": "ada"}, {"a", "b", "c"}) and not both.matches({"sub": "ada"}, {"a"})
    assert not both.matches({"sub": "grace"}, {"a", "b"})
    # Who asks for claims alone lets nobody in by such a rule.
    assert alone.matches({}, {"a"}) and not alone.matches({"groups": ["a"]})


@pytest.mark.parametrize(
    ("patterns", "name", "matches"),
    [
        (("ada@example.org",), "ADA@Example.ORG", True),
        (("ada@example.org",), "ada@example.org.evil", False),
        (("*@partner.example",), "max@partner.example", True),
        (("*@partner.example",), "max@partner.example.org", False),
        (("andr\u00e9",), "andre\u0301", True),
        (("STRASSE",), "stra\u00dfe", True),
        (("a", "b"), "b", True),
        (("*",), "anybody", True),
        ((), "anybody", True),
    ],
)
def test_a_rule_names_end_users_in_any_spelling(
    patterns: tuple[str, ...], name: str, *, matches: bool
) -> None:
    assert EndUserRule(users=patterns, groups=("g",)).names(name) is matches


def test_a_pointer_leads_nowhere_through_what_is_no_object() -> None:
    assert claim_at({"a": "text"}, "/a/b") is None
    assert claim_at({"a": ["x"]}, "/a/0") is None


def test_clients_are_told_all_scopes_of_the_rule_that_gives_the_roles() -> None:
    rules = (rule({"scope": ("use", "see")}, BOTH), rule({"scope": "use"}), rule({"groups": "a"}))
    issuer = TrustedIssuer("https://i", frozenset({"x"}), rules, scopes=("base",))
    assert issuer.scopes_for(BOTH) == ("base", "use", "see")
    assert issuer.scopes_for(INVOKER) == ("base", "use"), (
        "of those that give more, nobody is told who needs less"
    )
    assert issuer.scopes_for({Role.OPERATOR}) == ("base",)


def test_a_policy_lists_callers_by_key_or_by_grant() -> None:
    caller = Caller("acme", "sub-1", INVOKER, grants=frozenset({"sales"}))
    assert [caller.is_listed(keys) for keys in (None, [], ["sub-1"], ["sales"], ["support"])] == [
        *(True, False, True, True),
        False,
    ]


def test_a_list_counts_for_an_end_user_where_it_names_the_service_and_the_user() -> None:
    service = Caller("acme", "0123abcd", INVOKER, user_grants=frozenset({"support"}))
    lists: tuple[list[str] | None, ...] = (None, ["0123abcd"], ["support"], ["0123abcd", "support"], [])
    assert [service.is_listed(keys) for keys in lists] == [True, False, False, True, False]
    nowhere = replace(service, user_grants=frozenset())
    assert [nowhere.is_listed(keys) for keys in lists] == [True, False, False, False, False]


def test_rights_are_covered_by_as_many_or_more() -> None:
    caller = Caller("acme", "k", BOTH, grants=frozenset({"a", "b"}), user_grants=frozenset({"a", "b"}))
    assert caller.covers(caller) and replace(caller, user_grants=None).covers(caller)
    for fewer in (
        {"roles": INVOKER},
        {"grants": frozenset({"a"})},
        {"user_grants": frozenset({"a"})},
        {"key_id": "l"},
        {"tenant": "other"},
    ):
        assert not replace(caller, **fewer).covers(caller)  # type: ignore[arg-type]
    assert not caller.covers(replace(caller, user_grants=None))


def test_a_stored_rule_that_asks_for_nothing_is_read_and_fits_nobody() -> None:
    stored = {"issuer": "https://login.example.com", "when": {"groups": []}, "roles": ["invoker"]}
    [read] = Policy.model_validate({"identity": {"rules": [stored]}}).identity.rules
    assert read.rule_of("acme").missing({"groups": ["staff"]}) == ("groups",)
