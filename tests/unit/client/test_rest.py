"""What the REST dialect sends, and how it reads answers."""

import json

import pytest

from sluice_client import operations
from sluice_client.errors import InvalidArgumentsError, ProtocolError, RateLimitedError, SluiceError
from sluice_client.rest import RestDialect, problem
from sluice_client.wire import WireAnswer
from tests.unit.client.steps import answered

TEXT = {"type": "text", "text": "Hello"}


def answer(body: object, status: int = 200, **headers: str) -> WireAnswer:
    return WireAnswer(status, headers, json.dumps(body).encode())


def test_an_invocation_carries_arguments_and_context() -> None:
    steps = operations.invoke(RestDialect(), "my/one", "Hello", {"a": 1}, repeatable=False, progress=None)
    call = next(steps)

    assert (call.method, call.path) == ("POST", "/api/v1/middleware/my%2Fone/invoke")
    assert json.loads(call.body or b"") == {"arguments": {"a": 1}, "context": [TEXT]}
    assert not call.repeatable


def test_a_result_has_content_and_metadata() -> None:
    steps = operations.redact(RestDialect(), [TEXT], {}, None)
    body = {
        "content": [TEXT],
        "metadata": {"scope": "s1", "redactions": [{"handle": "PERSON_1", "type": "person"}]},
    }
    result = answered(steps, [answer(body)])

    assert result.text == "Hello"
    assert result.scope == "s1"
    assert [(one.handle, one.type) for one in result.redactions] == [("PERSON_1", "person")]
    assert result.mapping is None


def test_a_mapping_is_given_where_the_service_returned_one() -> None:
    steps = operations.redact(RestDialect(), [TEXT], {"returnMapping": True}, None)
    body = {"content": [TEXT], "metadata": {"scope": "s1", "redactions": {"BANK_ACCOUNT_2": "1234"}}}
    result = answered(steps, [answer(body)])

    assert result.mapping == {"BANK_ACCOUNT_2": "1234"}
    assert [(one.handle, one.type) for one in result.redactions] == [("BANK_ACCOUNT_2", "bank_account")]


def test_integers_of_thirty_digits_come_back_exactly() -> None:
    body = b'{"content": [{"type": "x", "n": 123456789012345678901234567890}], "metadata": {}}'
    steps = operations.invoke(RestDialect(), "m", [TEXT], {}, repeatable=False, progress=None)
    result = answered(steps, [WireAnswer(200, {}, body)])

    assert result.content[0]["n"] == 123456789012345678901234567890


@pytest.mark.parametrize(("arguments", "repeatable"), [({}, False), ({"scope": "s1"}, True)])
def test_a_redaction_may_be_repeated_only_into_a_named_scope(
    arguments: dict[str, str], *, repeatable: bool
) -> None:
    steps = operations.redact(RestDialect(), [TEXT], arguments, None)

    assert next(steps).repeatable is repeatable


def test_a_restoration_and_a_list_may_be_repeated() -> None:
    assert next(operations.restore(RestDialect(), [TEXT], {"scope": "s1"}, None)).repeatable
    assert next(operations.list_middleware(RestDialect())).repeatable


def test_a_problem_document_becomes_the_error_of_its_code() -> None:
    body = {
        "type": "urn:sluice:error:invalid_arguments",
        "title": "Wrong arguments",
        "detail": "There is no such argument.",
        "code": "invalid_arguments",
        "request_id": "r-1",
        "pointer": "/arguments/agressiveness",
        "details": {"arguments": ["aggressiveness"]},
    }
    error = problem(answer(body, 422))

    assert isinstance(error, InvalidArgumentsError)
    assert error.message == "There is no such argument."
    assert error.request_id == "r-1"
    assert error.details == {"pointer": "/arguments/agressiveness", "arguments": ["aggressiveness"]}


def test_retry_after_comes_from_the_header() -> None:
    error = problem(answer({"code": "rate_limited"}, 429, **{"retry-after": "7"}))

    assert isinstance(error, RateLimitedError)
    assert error.retry_after == 7


def test_a_code_of_a_newer_service_is_kept() -> None:
    error = problem(answer({"code": "quota_spent", "detail": "No."}, 402))

    assert type(error) is SluiceError
    assert error.code == "quota_spent"


def test_the_error_page_of_a_proxy_is_an_error_too() -> None:
    error = problem(WireAnswer(502, {}, b"<html>Bad gateway</html>"))

    assert error is not None
    assert error.status == 502


def test_a_success_that_is_no_answer_of_sluice_is_said_to_be_none() -> None:
    with pytest.raises(ProtocolError, match="Sluice"):
        answered(operations.list_middleware(RestDialect()), [WireAnswer(200, {}, b"<html>")])


def test_the_service_is_ready_or_not() -> None:
    ready = answered(operations.health(), [answer({"status": "ready", "checks": {"store": "ok"}})])
    draining = answered(operations.health(), [answer({"status": "draining"}, 503)])

    assert ready.ready
    assert ready.checks == {"store": "ok"}
    assert not draining.ready


def test_a_single_item_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        next(operations.redact(RestDialect(), TEXT, {}, None))
