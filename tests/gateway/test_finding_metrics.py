"""Findings in the metrics: by type, from every door, and never a word that a caller or a tenant chose."""

import re
import time
from typing import Any

import pytest

from tests.gateway.conftest import Gateway
from tests.protocol.mcp_wire import ACCEPT, ENVELOPE, HANDSHAKE, MODERN

TEXT = "Write to jane.doe@example.org or john@example.org about 219-09-9999."
PLAIN = "The meeting is moved to the small room."
FOUND = {"email": 2, "ssn": 1}
POLICY = {"name": "zanzibar", "terms": ["small room"]}


@pytest.fixture(autouse=True)
def started(gateway: Gateway) -> None:
    """Wait until detection has started, which the first request of the service does."""
    until = time.monotonic() + 45
    while over_rest(gateway, PLAIN).status_code != 200:
        assert time.monotonic() < until


def counted(gateway: Gateway) -> dict[str, float]:
    text = exposition(gateway)
    return {
        kind: float(value)
        for kind, value in re.findall(r'^sluice_findings_total\{type="([^"]*)"\} (\S+)$', text, re.MULTILINE)
    }


def exposition(gateway: Gateway) -> str:
    answer = gateway.http.get("/metrics")
    assert answer.status_code == 200
    return answer.text


def over_rest(gateway: Gateway, text: str) -> Any:
    body = {"context": [{"type": "text", "text": text}]}
    return gateway.post("/api/v1/middleware/pii_redaction/invoke", body)


def over_modern_mcp(gateway: Gateway, text: str) -> Any:
    params = {"name": "pii_redaction", "context": [{"type": "text", "text": text}], "_meta": ENVELOPE}
    headers = {"accept": ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": "middleware/invoke"}
    return gateway.post("/mcp", message("middleware/invoke", params), headers=headers)


def over_handshake_mcp(gateway: Gateway, text: str) -> Any:
    headers = {"accept": ACCEPT, "mcp-protocol-version": HANDSHAKE}
    client = {"name": "tests", "version": "1"}
    opening = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": client}
    opened = gateway.post("/mcp", message("initialize", opening), headers=headers)
    headers["mcp-session-id"] = opened.headers["mcp-session-id"]
    params = {"name": "pii_redaction", "context": [{"type": "text", "text": text}]}
    return gateway.post("/mcp", message("middleware/invoke", params), headers=headers)


def over_the_gateway(gateway: Gateway, text: str) -> Any:
    body = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": text}]}
    return gateway.post("/openai/v1/chat/completions", body)


def message(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def grown(gateway: Gateway, before: dict[str, float]) -> dict[str, float]:
    return {
        kind: value - before.get(kind, 0)
        for kind, value in counted(gateway).items()
        if value != before.get(kind)
    }


@pytest.mark.parametrize("door", [over_rest, over_modern_mcp, over_handshake_mcp, over_the_gateway])
def test_each_door_counts_its_findings_once_by_type(gateway: Gateway, door: Any) -> None:
    before = counted(gateway)
    assert door(gateway, TEXT).status_code == 200
    assert grown(gateway, before) == FOUND
    assert door(gateway, PLAIN).status_code == 200
    assert grown(gateway, before) == FOUND
    assert "example.org" not in exposition(gateway)


def test_what_a_call_blocks_is_counted(gateway: Gateway) -> None:
    before = counted(gateway)
    body = {"arguments": {"mode": "block"}, "context": [{"type": "text", "text": TEXT}]}
    assert gateway.post("/api/v1/middleware/pii_redaction/invoke", body).status_code == 403
    assert grown(gateway, before) == FOUND


def test_names_that_a_tenant_gives_to_its_policies_are_no_types(gateway: Gateway) -> None:
    before = counted(gateway)
    arguments = {"customPolicies": [POLICY], "policies": ["zanzibar"]}
    body = {"arguments": arguments, "context": [{"type": "text", "text": PLAIN}]}
    answer = gateway.post("/api/v1/middleware/content_moderation/invoke", body)
    assert answer.status_code == 200
    assert "zanzibar" in answer.text
    assert grown(gateway, before) == {}
    assert "zanzibar" not in exposition(gateway)


def test_requests_are_counted_by_route_and_ids_and_unknown_paths_are_none(gateway: Gateway) -> None:
    answer = gateway.post("/openai/v1/responses", {"model": "gpt-5-mini", "input": PLAIN})
    gateway.http.get(f"/openai/v1/responses/{answer.json()['id']}")
    over_the_gateway(gateway, PLAIN)
    claude: Any = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": PLAIN}]}
    gateway.post("/anthropic/v1/messages", claude)
    gateway.http.get("/openai/v1/zanzibar")
    text = exposition(gateway)
    routes = set(
        re.findall(r'^sluice_http_requests_total\{method="[A-Z]+",route="([^"]*)"', text, re.MULTILINE)
    )
    assert routes >= {
        "/openai/v1/chat/completions",
        "/openai/v1/responses",
        "/openai/v1/responses/{response}",
        "/anthropic/v1/messages",
    }
    assert 'sluice_http_request_seconds_count{route="/openai/v1/chat/completions"}' in text
    assert "zanzibar" not in text and answer.json()["id"] not in text
