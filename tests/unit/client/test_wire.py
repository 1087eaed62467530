"""When the client sends a request again, and what it refuses to send."""

import math

import pytest

from sluice_client.errors import (
    ClientTimeoutError,
    DeadlineExceededError,
    OverloadedError,
    RateLimitedError,
    SluiceError,
    StoreUnavailableError,
    UnreachableError,
)
from sluice_client.wire import Options, WireCall, encoded, pause_before_retry, seconds

OPTIONS = Options("http://127.0.0.1:1", "slc_key", retries=2, longest_pause=5)


def call(*, repeatable: bool) -> WireCall:
    return WireCall("POST", "/", lambda _: None, repeatable=repeatable)


def pause(error: SluiceError, *, repeatable: bool, attempt: int = 0) -> float | None:
    return pause_before_retry(error, call(repeatable=repeatable), attempt, OPTIONS)


def test_a_request_of_which_nothing_was_sent_is_sent_again() -> None:
    assert pause(UnreachableError("", sent=False), repeatable=False) is not None


@pytest.mark.parametrize(
    "error", [UnreachableError("", sent=True), ClientTimeoutError("", sent=True)], ids=["lost", "timeout"]
)
def test_a_request_that_may_have_arrived_is_sent_again_only_if_twice_does_no_harm(error: SluiceError) -> None:
    assert pause(error, repeatable=False) is None
    assert pause(error, repeatable=True) is not None


@pytest.mark.parametrize("kind", [RateLimitedError, OverloadedError])
def test_a_refusal_before_the_work_is_waited_out(kind: type[SluiceError]) -> None:
    waited = pause(kind("", retry_after=2, status=429), repeatable=False)

    assert waited is not None
    assert waited >= 2


def test_a_pause_longer_than_the_limit_is_left_to_the_caller() -> None:
    assert pause(RateLimitedError("", retry_after=60, status=429), repeatable=False) is None


def test_an_outage_in_the_middle_of_the_work_is_retried_only_if_twice_does_no_harm() -> None:
    error = StoreUnavailableError("", retry_after=1, status=503)

    assert pause(error, repeatable=False) is None
    assert pause(error, repeatable=True) is not None


def test_an_error_that_waiting_does_not_mend_is_not_retried() -> None:
    assert pause(DeadlineExceededError("", status=504), repeatable=False) is None
    assert pause(SluiceError("", status=422), repeatable=True) is None


def test_attempts_are_counted() -> None:
    assert pause(UnreachableError("", sent=False), repeatable=True, attempt=2) is None


def test_integers_of_thirty_digits_are_sent_as_they_are() -> None:
    number = 123456789012345678901234567890

    assert encoded({"n": number}) == b'{"n":123456789012345678901234567890}'


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {1, 2}, "\ud800"], ids=["nan", "inf", "set", "surrogate"]
)
def test_what_json_cannot_say_is_refused_before_it_is_sent(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON|UTF-8"):
        encoded([value])


def test_the_key_does_not_appear_when_options_are_printed() -> None:
    assert "slc_key" not in repr(OPTIONS)


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3.0), ("-1", 0.0), (None, None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)]
)
def test_retry_after_is_read_in_seconds(text: str | None, expected: float | None) -> None:
    assert seconds(text) == expected
