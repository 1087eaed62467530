"""When a stored key admits a presented one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.core.access import ApiKey, Role
from app.core.errors import InvalidArgumentsError
from app.services.access.credentials import (
    MAX_CIDRS,
    MAX_NAME,
    KnownKey,
    checked_cidrs,
    checked_expiry,
    checked_name,
)
from app.store.access.access import KeyInfo, StoredKey

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY, OLD = ApiKey.generate(), ApiKey.generate()


def known(*, previous: ApiKey | None = None, disabled: bool = False, **fields: Any) -> KnownKey:
    info = KeyInfo(
        tenant="acme",
        id=KEY.id,
        name=None,
        roles=frozenset({Role.INVOKER}),
        cidrs=fields.pop("cidrs", ()),
        created=NOON,
        created_by="host",
        **fields,
    )
    return KnownKey.of(StoredKey(info, KEY.digest, previous.digest if previous else None, disabled))


def test_the_right_secret_is_admitted_and_another_is_not() -> None:
    assert known().caller_of(KEY.digest, None, NOON)
    assert not known().caller_of(OLD.digest, None, NOON)


@pytest.mark.parametrize(
    ("fault", "cure"),
    [
        ({"revoked": NOON}, {}),
        ({"expires": NOON}, {"expires": NOON + timedelta(seconds=1)}),
        ({"disabled": True}, {"disabled": False}),
    ],
)
def test_a_key_that_has_ended_is_not_admitted(fault: dict[str, Any], cure: dict[str, Any]) -> None:
    assert not known(**fault).caller_of(KEY.digest, None, NOON)
    assert known(**cure).caller_of(KEY.digest, None, NOON)


def test_the_older_secret_is_good_only_while_the_rotation_lasts() -> None:
    rotating = known(previous=OLD, rotating_until=NOON)
    assert rotating.caller_of(OLD.digest, None, NOON - timedelta(seconds=1))
    assert not rotating.caller_of(OLD.digest, None, NOON)
    assert rotating.caller_of(KEY.digest, None, NOON)
    assert not known(previous=OLD).caller_of(OLD.digest, None, NOON)
    ended = known(previous=OLD, rotating_until=NOON + timedelta(days=1), revoked=NOON)
    assert not ended.caller_of(OLD.digest, None, NOON)


@pytest.mark.parametrize(
    ("cidrs", "address", "admitted"),
    [
        ((), None, True),
        (("10.0.0.0/8",), "10.255.0.1", True),
        (("10.0.0.0/8",), "11.0.0.1", False),
        (("10.0.0.0/8",), "::ffff:10.0.0.1", True),
        (("10.0.0.0/8",), "::ffff:11.0.0.1", False),
        (("10.0.0.0/8",), None, False),
        (("10.0.0.0/8",), "testclient", False),
        (("2001:db8::/32",), "2001:db8::1", True),
        (("2001:db8::/32",), "10.0.0.1", False),
        (("10.0.0.7/32", "192.168.0.0/16"), "192.168.9.9", True),
    ],
)
def test_addresses(cidrs: tuple[str, ...], address: str | None, admitted: bool) -> None:
    assert (known(cidrs=cidrs).caller_of(KEY.digest, address, NOON) is not None) is admitted


def test_networks_get_their_usual_spelling() -> None:
    assert checked_cidrs(["10.0.0.7", "2001:DB8:0::/32"]) == ("10.0.0.7/32", "2001:db8::/32")


@pytest.mark.parametrize("cidrs", [["10.0.0.1/8"], [""], ["10.0.0.0/33"], ["10.0.0.0/8"] * 101])
def test_networks_that_are_none_are_refused(cidrs: list[str]) -> None:
    with pytest.raises(InvalidArgumentsError):
        checked_cidrs(cidrs)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00"])
def test_names_that_do_not_fit_on_a_line_are_refused(name: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        checked_name(name)


def test_a_key_ends_in_the_future_at_a_time_with_a_zone() -> None:
    later = NOON + timedelta(days=1)
    assert checked_expiry(later, NOON) == later
    assert checked_expiry(None, NOON) is None
    for wrong in (NOON, later.replace(tzinfo=None)):
        with pytest.raises(InvalidArgumentsError):
            checked_expiry(wrong, NOON)


def test_a_known_key_shows_no_digest() -> None:
    shown = repr(known(previous=OLD, rotating_until=NOON))
    assert KEY.digest.hex() not in shown
    assert repr(KEY.digest) not in shown
    assert repr(OLD.digest) not in shown


def test_a_key_s_name_and_networks_fit_to_the_bound() -> None:
    longest, most = "a" * MAX_NAME, [f"10.0.0.{number}" for number in range(MAX_CIDRS)]
    assert checked_name(longest) == longest
    assert len(checked_cidrs(most)) == MAX_CIDRS
    with pytest.raises(InvalidArgumentsError):
        checked_name(longest + "a")
    with pytest.raises(InvalidArgumentsError):
        checked_cidrs([*most, "10.1.0.0"])


def test_a_key_ends_after_this_moment_and_not_at_it() -> None:
    later = NOON + timedelta(microseconds=1)
    assert checked_expiry(later, NOON) == later
    with pytest.raises(InvalidArgumentsError):
        checked_expiry(NOON, NOON)
