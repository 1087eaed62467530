"""Callers, their roles and the keys that they present."""

from dataclasses import fields

import pytest

from app.core.access import ApiKey, Caller, Role, check_tenant, check_union, parse_roles
from app.core.errors import ForbiddenError, InvalidArgumentsError


def caller_of(*roles: Role) -> Caller:
    return Caller("acme", "0000000a", frozenset(roles))


def test_any_of_the_required_roles_is_enough() -> None:
    caller_of(Role.RESTORER).require(Role.INVOKER, Role.RESTORER)
    caller_of(Role.RESTORER, Role.AUDITOR).require(Role.INVOKER, Role.RESTORER)
    caller_of(Role.INVOKER, Role.RESTORER).require(Role.RESTORER)


def test_a_caller_without_any_of_them_is_told_which_would_do() -> None:
    with pytest.raises(ForbiddenError, match="invoker or restorer") as refused:
        caller_of(Role.OPERATOR, Role.AUDITOR).require(Role.RESTORER, Role.INVOKER)
    assert refused.value.details == {"required": ["invoker", "restorer"]}


@pytest.mark.parametrize(
    "roles",
    [
        {Role.OPERATOR, Role.RESTORER},
        {Role.OPERATOR, Role.AUDITOR},
        {Role.KEY_CUSTODIAN, Role.RESTORER},
        {Role.OPERATOR, Role.RESTORER, Role.INVOKER},
    ],
)
def test_one_key_may_not_both_configure_and_read(roles: set[Role]) -> None:
    with pytest.raises(InvalidArgumentsError):
        check_union(frozenset(roles))
    check_union(frozenset(roles), override=True)


@pytest.mark.parametrize(
    "roles", [{Role.OPERATOR}, {Role.RESTORER, Role.AUDITOR}, {Role.OPERATOR, Role.KEY_CUSTODIAN}]
)
def test_other_unions_are_fine(roles: set[Role]) -> None:
    check_union(frozenset(roles))


def test_a_key_has_at_least_one_role_and_only_known_ones() -> None:
    assert parse_roles(["invoker", "invoker", "auditor"]) == {Role.INVOKER, Role.AUDITOR}
    for names in ([], ["invoker", "root"]):
        with pytest.raises(InvalidArgumentsError):
            parse_roles(names)


def test_a_generated_key_is_read_back_and_matches_its_own_digest_only() -> None:
    key, other = ApiKey.generate(), ApiKey.generate()
    assert ApiKey.parse(str(key)) == key
    assert key.matches(key.digest)
    assert not key.matches(other.digest)
    assert key.secret not in repr(key)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1], lambda text: text + "A", lambda text: text + "\n"]
)
def test_a_text_that_is_almost_a_key_is_none(change: object) -> None:
    assert ApiKey.parse(change(str(ApiKey.generate()))) is None  # type: ignore[operator]


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("a", True),
        ("9-b", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("", False),
        ("-a", False),
        ("A", False),
    ],
)
def test_a_tenant_s_name_is_checked_whole(name: str, is_valid: bool) -> None:
    if is_valid:
        assert check_tenant(name) == name
    else:
        with pytest.raises(InvalidArgumentsError):
            check_tenant(name)


def test_a_caller_presents_a_token_and_stays_itself() -> None:
    values = {part.name: object() for part in fields(Caller)}
    caller = Caller(**values)  # type: ignore[arg-type]
    shown = caller.presenting("token")
    assert {name: getattr(shown, name) for name in values} == {**values, "presented": "token"}


def test_who_acts_for_an_end_user_has_neither_the_token_nor_the_digest_of_another() -> None:
    caller = Caller("acme", "0badcafe", frozenset({Role.INVOKER}), end_user="ada", user_ref="of ada")
    acting = caller.presenting("of ada").for_end_user("grace")
    assert (acting.end_user, acting.user_ref, acting.presented) == ("grace", None, None)
    assert acting.roles == caller.roles
