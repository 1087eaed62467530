"""What the MCP dialects send, and how they read answers."""

import json

import pytest

from sluice_client import operations
from sluice_client.errors import InvalidArgumentsError, OverloadedError, ProtocolError, UnauthenticatedError
from sluice_client.mcp import HandshakeDialect, ModernDialect, SessionLostError, rpc_failure
from sluice_client.wire import WireAnswer, WireCall
from tests.unit.client.steps import answered

TEXT = {"type": "text", "text": "Hello"}


def reply(result: object, **headers: str) -> WireAnswer:
    return WireAnswer(200, headers, json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())


def refusal(code: int, message: str, data: object, status: int = 200) -> WireAnswer:
    error = {"code": code, "message": message, "data": data}
    return WireAnswer(status, {}, json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode())


def body_of(call: WireCall) -> dict[str, object]:
    found = json.loads(call.body or b"{}")
    assert isinstance(found, dict)
    return found


def shaken(session: str = "s-1") -> HandshakeDialect:
    dialect = HandshakeDialect()
    opened = reply({"protocolVersion": "2025-11-25", "capabilities": {}}, **{"mcp-session-id": session})
    answered(dialect.opening(), [opened, WireAnswer(202, {}, b"")])
    return dialect


def test_a_modern_request_carries_everything_with_it() -> None:
    steps = operations.invoke(ModernDialect(), "m", [TEXT], {"a": 1}, repeatable=False, progress=None)
    call = next(steps)
    params = body_of(call)["params"]

    assert call.headers["MCP-Protocol-Version"] == "2026-07-28"
    assert call.headers["Mcp-Method"] == "middleware/invoke"
    assert isinstance(params, dict)
    assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert params["name"] == "m"
    assert params["context"] == [TEXT]
    assert "progressToken" not in params["_meta"]


def test_progress_is_asked_for_only_where_someone_looks() -> None:
    steps = operations.invoke(
        ModernDialect(), "m", [TEXT], {}, repeatable=False, progress=lambda _done, _whole: None
    )
    call = next(steps)

    assert body_of(call)["params"]["_meta"]["progressToken"] == body_of(call)["id"]  # type: ignore[index]


def test_the_handshake_opens_a_session_whose_id_goes_with_every_request() -> None:
    dialect = shaken("s-1")
    call = next(operations.list_middleware(dialect))

    assert call.headers["Mcp-Session-Id"] == "s-1"
    assert call.headers["MCP-Protocol-Version"] == "2025-11-25"
    assert "_meta" not in body_of(call)["params"]  # type: ignore[operator]


def test_a_second_opening_sends_nothing() -> None:
    with pytest.raises(StopIteration):
        next(shaken().opening())


def test_a_lost_session_is_replaced_once_even_if_two_callers_notice() -> None:
    dialect = shaken("s-2")

    with pytest.raises(StopIteration):
        next(dialect.opening(lost="s-1"))
    assert body_of(next(dialect.opening(lost="s-2")))["method"] == "initialize"


def test_a_session_that_the_service_no_longer_knows_is_reported_as_lost() -> None:
    with pytest.raises(SessionLostError):
        answered(operations.list_middleware(shaken()), [refusal(-32001, "Session not found", {}, 404)])


def test_closing_ends_the_session() -> None:
    dialect = shaken("s-1")
    call = next(dialect.closing())

    assert call.method == "DELETE"
    assert call.headers["Mcp-Session-Id"] == "s-1"
    with pytest.raises(StopIteration):
        next(dialect.closing())


def test_a_service_without_our_revision_is_refused() -> None:
    with pytest.raises(ProtocolError, match="2025-11-25"):
        answered(HandshakeDialect().opening(), [reply({"protocolVersion": "2024-11-05"})])


def test_lists_are_read_page_by_page() -> None:
    steps = operations.list_middleware(ModernDialect())
    pages = [
        reply({"middleware": [{"name": "a"}], "nextCursor": "c"}),
        reply({"middleware": [{"name": "b", "_meta": {"dev.sluice/phase": "inbound"}}]}),
    ]
    listed = answered(steps, pages)

    assert [(one.name, one.phase) for one in listed] == [("a", None), ("b", "inbound")]


def test_an_error_keeps_our_code_our_id_and_the_place_of_the_fault() -> None:
    data = {"code": "invalid_arguments", "requestId": "r-1", "pointer": "/arguments/x"}
    error = rpc_failure(refusal(-32602, "There is no such argument.", data))

    assert isinstance(error, InvalidArgumentsError)
    assert error.request_id == "r-1"
    assert error.details == {"pointer": "/arguments/x"}


def test_a_refusal_with_an_http_status_keeps_its_pause() -> None:
    answer = refusal(5030, "Too much to do.", {"code": "overloaded"}, 503)
    error = rpc_failure(WireAnswer(answer.status, {"retry-after": "2"}, answer.body))

    assert isinstance(error, OverloadedError)
    assert error.retry_after == 2


def test_an_error_without_our_data_is_read_by_its_json_rpc_code() -> None:
    assert isinstance(rpc_failure(refusal(-32602, "No.", None)), InvalidArgumentsError)


def test_a_refusal_in_plain_http_is_understood() -> None:
    error = rpc_failure(
        WireAnswer(401, {}, json.dumps({"code": "unauthenticated", "detail": "No."}).encode())
    )

    assert isinstance(error, UnauthenticatedError)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"hello": 1}'])
def test_a_success_that_is_no_json_rpc_is_said_to_be_none(body: bytes) -> None:
    assert isinstance(rpc_failure(WireAnswer(200, {}, body)), ProtocolError)
