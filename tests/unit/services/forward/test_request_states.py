"""A state that a server gives is opened for the caller, the request and the arguments that it was given to."""

from typing import Any

import pytest

from app.core.access import Caller, Role
from app.core.errors import InvalidArgumentsError
from app.engines.cipher import RecordKeys
from app.services.forward.request_states import RequestStates

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
