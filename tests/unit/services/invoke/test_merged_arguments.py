"""Which argument a middleware runs with, and what the record tells of a call."""

from typing import Any

import pytest

import app.middlewares
from app.core.access import Caller, Role
from app.core.audit import AuditEvent
from app.core.contracts.policy import Policy
from app.core.contracts.registry import Registry
from app.core.errors import (
    BlockedByPolicyError,
    ForbiddenError,
    InvalidArgumentsError,
    OverloadedError,
    RateLimitedError,
)
from app.core.request import RequestInfo
from app.engines.cipher import RecordKeys
from app.services.audit.audit import AuditService
from app.services.invoke.calls import MiddlewareCall, checked_arguments, merged_arguments, weight_of
from tests.fakes import engines

MIDDLEWARE = Registry.discover(app.middlewares, engines()).middlewares["tool_filter"]
FIXED = Policy(
    default_arguments={"tool_filter": {"maxTools": 3, "minScore": 0.2}},
    fixed_arguments={"tool_filter": {"maxTokens": 100}},
)


def merged(given: dict[str, Any], policy: Policy = FIXED) -> dict[str, Any]:
    return merged_arguments(policy, MIDDLEWARE, given)


def test_the_caller_s_arguments_go_before_the_usual_ones_and_fixed_ones_before_all() -> None:
    assert merged({}) == {"max_tools": 3, "min_score": 0.2, "max_tokens": 100}
    assert merged({"max_tools": 7})["max_tools"] == 7
    assert merged({"maxTools": 7})["max_tools"] == 7
    assert merged({"gap": 0.5})["gap"] == 0.5


@pytest.mark.parametrize("name", ["maxTokens", "max_tokens"])
def test_a_fixed_argument_may_be_repeated_and_not_changed_in_any_spelling(name: str) -> None:
    assert merged({name: 100})["max_tokens"] == 100
    with pytest.raises(BlockedByPolicyError) as refused:
        merged({name: 101})
    assert refused.value.details == {"pointer": "/arguments/maxTokens"}


def test_a_fault_is_told_as_a_sentence_without_what_was_given() -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        checked_arguments(MIDDLEWARE, {"maxTools": "Jane"})
    assert refused.value.message[0].isupper()
    assert refused.value.message[1].islower()
    assert "Jane" not in str(refused.value) + str(refused.value.details)


@pytest.mark.parametrize(
    ("items", "weight"),
    [
        (["abc", "de"], 5),
        ([{"type": "text", "text": "abc"}, {"role": "user", "content": "de"}], 5),
        ([{"role": "user", "content": [{}, {}]}], 2000),
        ([{"type": "image"}, 7], 200),
        ([{"text": "a", "content": "bcd"}], 1),
        ("abc", 0),
        ([], 0),
    ],
)
def test_what_there_is_to_write_is_weighed_by_its_texts(items: Any, weight: int) -> None:
    assert weight_of(items) == weight


class Kept(AuditService):
    """Keeps what it is told to record."""

    async def record(self, *events: AuditEvent) -> None:
        RECORDED.extend(events)


RECORDED: list[AuditEvent] = []
CALLER = Caller("acme", "0000000a", frozenset({Role.INVOKER}))


@pytest.fixture
def call() -> MiddlewareCall:
    RECORDED.clear()
    audit = Kept(None, None, RecordKeys(b"k" * 32))  # type: ignore[arg-type]
    return MiddlewareCall(
        audit,
        CALLER,
        RequestInfo("r1", None, None, 0.0),
        "middleware.invoke",
        "tool_filter",
        input_json=b"[1]",
    )


def test_an_event_has_digests_of_what_came_and_of_what_went_where_something_did(call: MiddlewareCall) -> None:
    nothing, something = call.event("ok"), call.event("ok", out=["a"], scope="s")
    assert (nothing.bytes_in, nothing.bytes_out, nothing.out_hmac, nothing.scope_ref) == (3, 0, None, None)
    assert something.bytes_out == len(b'["a"]')
    assert something.out_hmac == call.audit.digest("acme", b'["a"]')
    assert something.in_hmac == call.audit.digest("acme", b"[1]")
    assert something.scope_ref not in {None, "s"}
    call.input_json = b""
    assert call.event("ok").in_hmac is None


def test_what_surrounds_a_call_never_hides_what_it_did(call: MiddlewareCall) -> None:
    call.about, call.details = {"a": "around", "b": "around"}, {"a": 1}
    assert call.event("ok").details == {"a": 1, "b": "around"}


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (ForbiddenError("x"), "refused", "forbidden"),
        (ValueError("Jane"), "failed", "internal_error"),
        (BlockedByPolicyError("x"), "refused", "blocked_by_policy"),
    ],
)
async def test_a_call_that_was_not_answered_is_on_record_with_its_code(
    call: MiddlewareCall, error: Exception, outcome: str, code: str
) -> None:
    await call.refused(error)
    assert [(one.outcome, one.error_code) for one in RECORDED] == [(outcome, code)]
    assert "Jane" not in str(RECORDED)


async def test_a_flood_that_is_turned_away_is_not_recorded(call: MiddlewareCall) -> None:
    for error in (RateLimitedError("x"), OverloadedError("x")):
        await call.refused(error)
    assert RECORDED == []


async def test_what_a_refusing_middleware_found_is_counted_once_each(call: MiddlewareCall) -> None:
    call.counts = {"a": 7}
    details = {"flags": ["a", "b"], "severity": "high", "items": [0]}
    await call.refused(BlockedByPolicyError("x", details=details))
    (event,) = RECORDED
    assert event.counts == {"a": 1, "b": 1}
    assert event.details == {"severity": "high", "allow": False}
