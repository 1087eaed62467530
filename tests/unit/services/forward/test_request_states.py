"""A state that a server gives is opened for the caller, the request and the arguments that it was given to."""

from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.errors import InvalidArgumentsError, TooLargeError
from app.engines.cipher import RecordKeys
from app.services.forward.request_states import MAX_STATE_BYTES, RequestStates

STATES = RequestStates(RecordKeys(b"k" * 32))
CALLER = Caller("acme", "0000000a", frozenset({Role.INVOKER}))
ABOUT = ("tools/call", "mail", "mail__send")
PARAMS = {"name": "mail__send", "arguments": {"to": "a", "of": [1, 2]}}


def sealed(state: Any = "theirs") -> dict[str, Any]:
    result = STATES.sealed(CALLER, ABOUT, PARAMS, {"resultType": "input_required", "requestState": state})
    return {**PARAMS, "requestState": result["requestState"]}


def test_what_was_sealed_is_opened_for_the_same_request() -> None:
    again = sealed()
    assert "theirs" not in again["requestState"]
    assert STATES.opened(CALLER, ABOUT, again) == {**PARAMS, "requestState": "theirs"}
    assert STATES.continues(CALLER, ABOUT, again)
    reordered = {**again, "arguments": {"of": [1, 2], "to": "a"}}
    assert STATES.continues(CALLER, ABOUT, reordered), "the order of members says nothing"


@pytest.mark.parametrize(
    ("caller", "about", "change"),
    [
        (Caller("acme", "0000000b", CALLER.roles), ABOUT, {}),
        (Caller("other", "0000000a", CALLER.roles), ABOUT, {}),
        (CALLER, ("tools/call", "mail", "mail__read"), {}),
        (CALLER, ("prompts/get", "mail", "mail__send"), {}),
        (CALLER, ABOUT, {"arguments": {"to": "b", "of": [1, 2]}}),
        (CALLER, ABOUT, {"arguments": {}}),
        (CALLER, ABOUT, {"requestState": "dev.sluice/sealed.AAAA"}),
        (CALLER, ABOUT, {"requestState": "dev.sluice/sealed.é"}),
    ],
)
def test_for_another_caller_request_or_arguments_it_is_refused(
    caller: Caller, about: tuple[str, ...], change: dict[str, Any]
) -> None:
    params = {**sealed(), **change}
    assert not STATES.continues(caller, about, params)
    with pytest.raises(InvalidArgumentsError) as refused:
        STATES.opened(caller, about, params)
    assert refused.value.details == {"pointer": "/requestState"}


def test_a_state_that_was_never_sealed_stays_and_goes_on_with_nothing() -> None:
    for params in ({**PARAMS, "requestState": "bare"}, {**PARAMS, "requestState": 7}, dict(PARAMS)):
        assert STATES.opened(CALLER, ABOUT, params) == params
        assert not STATES.continues(CALLER, ABOUT, params)
    result = {"content": [], "requestState": 7}
    assert STATES.sealed(CALLER, ABOUT, PARAMS, result) == result


def test_no_arguments_and_empty_ones_are_the_same_request() -> None:
    bare = {"name": "mail__send"}
    made = STATES.sealed(CALLER, ABOUT, bare, {"requestState": "s"})
    assert STATES.continues(CALLER, ABOUT, {**bare, "arguments": {}, "requestState": made["requestState"]})


def test_any_text_comes_back_even_one_that_no_utf_8_can_hold() -> None:
    assert STATES.opened(CALLER, ABOUT, sealed("\ud800"))["requestState"] == "\ud800"


SPELLINGS = {
    "more behind it": lambda state: state + "AAAA",
    "a word behind it": lambda state: state + "-tampered",
    "foreign characters": lambda state: state[:40] + "!.\n" + state[40:],
    "white space": lambda state: f"{state} ",
    "no padding": lambda state: state.rstrip("="),
    "more padding": lambda state: state + "====",
    "the other alphabet": lambda state: state.replace("-", "+").replace("_", "/"),
    "bits behind the last byte": lambda state: state[:-2] + chr(ord(state[-2]) + 1) + "=",
    "one character less": lambda state: state[:-1],
    "one character else": lambda state: state[:40] + ("A" if state[40] != "A" else "B") + state[41:],
    "endless": lambda state: state + "A" * 8_000_000,
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_state_in_any_other_spelling_is_refused(spelling: str) -> None:
    for length in range(24):  # with every padding, and digits of both alphabets
        issued = sealed("s" * length)["requestState"]
        state = SPELLINGS[spelling](issued)
        if state != issued and (spelling != "bits behind the last byte" or issued[-1:] == "=" != issued[-2]):
            params = {**PARAMS, "requestState": state}
            assert not STATES.continues(CALLER, ABOUT, params)
            with pytest.raises(InvalidArgumentsError):
                STATES.opened(CALLER, ABOUT, params)
        assert STATES.continues(CALLER, ABOUT, {**PARAMS, "requestState": issued})


def test_a_state_has_a_longest_length_and_up_to_it_comes_back() -> None:
    longest = "s" * MAX_STATE_BYTES
    assert STATES.opened(CALLER, ABOUT, sealed(longest))["requestState"] == longest
    with pytest.raises(TooLargeError) as refused:
        sealed(longest + "s")
    assert refused.value.details["maximum"] == MAX_STATE_BYTES
