"""Rules that map claims: no default, the first that matches, and nothing for a claim of a strange type."""

from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.identities import Expected, MappingRule, TrustedIssuer, claim_at

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
    ],
)
def test_a_rule_matches_what_the_claims_say(
    when: dict[str, Expected], claims: dict[str, Any], *, matches: bool
) -> None:
    assert rule(when).matches(claims) is matches


def test_the_first_rule_that_matches_decides_and_there_is_no_default() -> None:
    first, second = rule({"groups": "a"}), rule({"groups": "b"}, BOTH)
    issuer = TrustedIssuer("https://i", frozenset({"x"}), (first, second))
    assert issuer.rule_for({"groups": ["b", "a"]}) is first
    assert issuer.rule_for({"groups": ["b"]}) is second
    assert issuer.rule_for({"groups": []}) is None


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
