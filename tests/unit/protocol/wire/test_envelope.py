"""What is one JSON-RPC message, and which headers contradict it."""

from typing import Any

import pytest
from mcp_types import HEADER_MISMATCH, PARSE_ERROR, PROTOCOL_VERSION_META_KEY

from app.protocol.wire.envelope import (
    check_modern_headers,
    is_response,
    message_id,
    parse_message,
    the_object,
)
from app.protocol.wire.errors import RefusedError
from app.protocol.wire.exchange import Fields

MODERN = "2026-07-28"


def message(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **members}


@pytest.mark.parametrize(
    ("members", "response"),
    [
        ({"id": 1, "method": "ping"}, False),
        ({"method": "ping", "params": {}}, False),
        ({"method": "ping", "params": None}, False),
        ({"id": "a", "result": {}}, True),
        ({"id": 0, "error": {}}, True),
        ({"id": 1, "method": "ping", "result": {}}, False),
    ],
)
def test_requests_notifications_and_answers_are_told_apart(members: Any, response: bool) -> None:
    assert is_response(message(**members)) is response


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 1, "method": "ping"},
        message(id=None, method="ping"),
        message(id=True, method="ping"),
        message(id=1.5, method="ping"),
        message(result={}),
        message(error={}),
        message(id=1),
        message(id=1, method=7),
        message(id=1, method="ping", params=[]),
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
    ],
)
def test_what_is_no_message_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RefusedError):
        is_response(wrong)


@pytest.mark.parametrize(
    ("given", "expected"), [(0, 0), ("", ""), ("a", "a"), (True, None), (None, None), (1.0, None), ([], None)]
)
def test_an_id_is_a_string_or_an_integer(given: Any, expected: Any) -> None:
    assert message_id({"id": given}) == expected
    assert type(message_id({"id": given})) is type(expected)


def test_a_body_is_one_object() -> None:
    assert parse_message(b'{"a": 1}') == {"a": 1}
    with pytest.raises(RefusedError) as refused:
        parse_message(b"{")
    assert refused.value.code == PARSE_ERROR
    for value in ([{}], 1, None, "x"):
        with pytest.raises(RefusedError) as refused:
            the_object(value)
        assert refused.value.code != PARSE_ERROR


def fields(*pairs: tuple[str, str]) -> Fields:
    return Fields([(name.encode(), value.encode()) for name, value in pairs])


def checked(version: str | None, *pairs: tuple[str, str], claims: str | None = None, **members: Any) -> None:
    meta = {} if claims is None else {"_meta": {PROTOCOL_VERSION_META_KEY: claims}}
    params = {**members.pop("params", {}), **meta}
    check_modern_headers(message(id=1, params=params, **members), fields(*pairs), version)


def test_the_header_and_the_message_name_the_same_revision_or_only_the_message_names_none() -> None:
    checked(MODERN, claims=MODERN)
    checked("2025-11-25")
    checked(None)
    for version, claims in ((None, MODERN), ("2025-11-25", MODERN)):
        with pytest.raises(RefusedError) as refused:
            checked(version, claims=claims)
        assert refused.value.code == HEADER_MISMATCH
    with pytest.raises(RefusedError) as refused:
        checked("1999-01-01")
    assert refused.value.code != HEADER_MISMATCH


def test_the_name_in_the_header_is_the_name_in_the_message() -> None:
    call = {"method": "middleware/invoke", "params": {"name": "a"}}
    checked(MODERN, **call)
    checked(MODERN, ("mcp-name", "a"), **call)
    checked(MODERN, ("mcp-name", "b"), method="tools/call", params={"name": "a"})
    for pairs in ([("mcp-name", "b")], [("mcp-name", "a"), ("mcp-name", "a")]):
        with pytest.raises(RefusedError) as refused:
            checked(MODERN, *pairs, **call)
        assert refused.value.code == HEADER_MISMATCH
