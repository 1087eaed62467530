"""Where a request's params are wrong, when to come back, and what a bug tells."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field, ValidationError

from app.core.errors import InternalError, OverloadedError, UnauthenticatedError
from app.protocol.wire.errors import error_body, error_headers, internal_error, params_error


class Inner(BaseModel):
    name: str


class Params(BaseModel):
    uri: str
    entries: list[Inner] = []
    either: Annotated[int | list[int], Field()] = 0
    by_name: dict[str, int] = {}


def pointer_of(params: Any) -> str:
    with pytest.raises(ValidationError) as wrong:
        Params.model_validate(params)
    return str(params_error(wrong.value, params).details["pointer"])


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({}, "/uri"),
        ({"uri": 7}, "/uri"),
        ({"uri": "x", "entries": [{"name": "a"}, {}]}, "/entries/1/name"),
        ({"uri": "x", "entries": [{"name": "a"}, {"name": 7}]}, "/entries/1/name"),
        ({"uri": "x", "either": "no"}, "/either"),
        ({"uri": "x", "by_name": {"a/b~": "no"}}, "/by_name/a~1b~0"),
    ],
)
def test_the_pointer_leads_to_what_is_wrong_and_has_no_names_of_the_validator(
    params: Any, pointer: str
) -> None:
    assert pointer_of(params) == pointer


@pytest.mark.parametrize(("pause", "header"), [(0.01, "1"), (1.0, "1"), (1.01, "2"), (30, "30")])
def test_a_pause_is_told_in_whole_seconds_and_never_too_short(pause: float, header: str) -> None:
    assert error_headers(OverloadedError("x", retry_after_s=pause)) == {"retry-after": header}


def test_only_who_is_not_known_is_asked_for_credentials() -> None:
    assert "www-authenticate" in error_headers(UnauthenticatedError("x"))
    assert error_headers(OverloadedError("x")) == {}


def test_details_never_hide_the_code_and_the_request() -> None:
    error = OverloadedError("x", details={"code": "theirs", "requestId": "theirs", "limit": "a"})
    assert error_body(error, "r1")["data"] == {"limit": "a", "code": "overloaded", "requestId": "r1"}


def test_a_bug_is_logged_by_its_type_and_answered_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    made = internal_error(ValueError("Jane"), "r1")
    assert made.details == {"errorId": "r1"}
    assert "ValueError" in caplog.text
    assert "Jane" not in caplog.text + str(made)
    named = InternalError("x", details={"interceptor": "a", "secret": "b"})
    assert internal_error(named, "r2").details == {"errorId": "r2", "interceptor": "a", "reason": "failed"}
    named.__cause__ = KeyError("Jane")
    internal_error(named, "r3")
    assert "KeyError" in caplog.text
