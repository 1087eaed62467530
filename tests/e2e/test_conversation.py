"""A conversation as a host application has it: redacted, answered, restored, over restarts and replicas."""

import json
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest

from tests.conftest import fresh_postgres
from tests.e2e.running import Service, running

CONTRACT = "Please review this contract for Jane Smith (jane.smith@example.com, SSN: 987-65-4321)"


def invoked(service: Service, name: str, context: list[Any], **arguments: Any) -> dict[str, Any]:
    answer = httpx2.post(
        f"{service.url}/api/v1/middleware/{name}/invoke",
        json={"arguments": arguments, "context": context},
        headers={"authorization": f"Bearer {service.key}"},
        timeout=60,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_the_proposal_s_two_examples_hold_to_the_character(service: Service, scope: str) -> None:
    item = {"type": "text", "text": CONTRACT}
    redacted = invoked(service, "pii_redaction", [item], scope=scope)
    assert redacted == {
        "content": [
            {"type": "text", "text": "Please review this contract for [PERSON_1] ([EMAIL_1], SSN: [SSN_1])"}
        ],
        "metadata": {
            "redactions": [
                {"handle": "PERSON_1", "type": "person"},
                {"handle": "EMAIL_1", "type": "email"},
                {"handle": "SSN_1", "type": "ssn"},
            ],
            "scope": scope,
        },
    }
    answer = {
        "type": "text",
        "text": "I've reviewed the contract for [PERSON_1]. Please send it to [EMAIL_1].",
    }
    restored = invoked(service, "pii_restoration", [answer], scope=scope)
    assert restored["content"] == [
        {
            "type": "text",
            "text": "I've reviewed the contract for Jane Smith. Please send it to jane.smith@example.com.",
        }
    ]


def test_the_proposal_s_first_request_holds_in_strict(service: Service, scope: str) -> None:
    item = {"type": "text", "text": "My name is John Doe and my SSN is 123-45-6789"}
    redacted = invoked(service, "pii_redaction", [item], scope=scope, aggressiveness="strict")
    assert redacted["content"] == [{"type": "text", "text": "My name is [PERSON_1] and my SSN is [SSN_1]"}]
    assert redacted["metadata"]["redactions"] == [
        {"handle": "PERSON_1", "type": "person"},
        {"handle": "SSN_1", "type": "ssn"},
    ]


def test_the_mapping_is_answered_where_it_is_asked_for(service: Service, scope: str) -> None:
    redacted = invoked(service, "pii_redaction", [CONTRACT], scope=scope, returnMapping=True)
    assert redacted["metadata"]["redactions"] == {
        "PERSON_1": "Jane Smith",
        "EMAIL_1": "jane.smith@example.com",
        "SSN_1": "987-65-4321",
    }


def test_fifty_turns_keep_their_handles_and_come_back_exactly(service: Service, scope: str) -> None:
    turns = [
        {
            "role": "user",
            "content": f"Turn {n}: ask jane.smith{n % 7}@example.com about [PERSON_{n + 800}] and {CONTRACT}",
        }
        for n in range(50)
    ]
    first = invoked(service, "pii_redaction", turns, scope=scope)["content"]
    assert "jane.smith" not in json.dumps(first)
    # The prefix of a growing conversation stays the same to the byte, so that provider caches stay warm.
    for size in (10, 30, 50):
        assert invoked(service, "pii_redaction", turns[:size], scope=scope)["content"] == first[:size]
    assert invoked(service, "pii_restoration", first, scope=scope, positions="all")["content"] == turns


def test_tool_calls_and_json_inside_strings_come_back_exactly(service: Service, scope: str) -> None:
    context = [
        {
            "role": "user",
            "content": [{"type": "text", "text": 'He wrote {"to": "jane.smith@example.com"} again'}],
        },
        {
            "type": "tool_use",
            "id": "t1",
            "name": "send",
            "input": {
                "body": '{"mail": "jane.smith\\u0040example.com", "n": 123456789012345678901234567890}'
            },
        },
        {
            "type": "tool_result",
            "toolUseId": "t1",
            "content": CONTRACT,
            "structuredContent": {"by": "Jane Smith"},
        },
    ]
    redacted = invoked(service, "pii_redaction", context, scope=scope)["content"]
    assert "jane.smith" not in json.dumps(redacted)
    assert "Jane Smith" not in json.dumps(redacted)
    assert invoked(service, "pii_restoration", redacted, scope=scope, positions="all")["content"] == context


def test_what_was_redacted_is_restored_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as service:
        redacted = invoked(service, "pii_redaction", [CONTRACT], scope="kept")["content"]
    with running(tmp_path) as service:
        assert invoked(service, "pii_restoration", redacted, scope="kept")["content"] == [CONTRACT]
        again = invoked(service, "pii_redaction", ["Jane Smith met John Doe"], scope="kept")["content"]
        assert again == ["[PERSON_1] met [PERSON_2]"]


def test_another_replica_restores(tmp_path: Path, postgres_url: str) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    with fresh_postgres(postgres_url) as url:
        settings = {"SLUICE_DATABASE__URL": url, "SLUICE_KEYS__FILE": str(tmp_path / "ring.json")}
        with running(folders[0], **settings) as one, running(folders[1], **settings) as other:
            redacted = invoked(one, "pii_redaction", [CONTRACT], scope="shared")["content"]
            assert invoked(other, "pii_restoration", redacted, scope="shared")["content"] == [CONTRACT]
            assert invoked(other, "pii_redaction", [CONTRACT], scope="shared")["content"] == redacted


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_mcp_redacts_and_restores_on_both_revisions(service: Service, scope: str, revision: str) -> None:
    with Mcp(service, revision) as mcp:
        redacted = mcp.invoke("pii_redaction", [{"type": "text", "text": CONTRACT}], scope=scope)
        assert redacted["content"][0]["text"] == (
            "Please review this contract for [PERSON_1] ([EMAIL_1], SSN: [SSN_1])"
        )
        restored = mcp.invoke("pii_restoration", redacted["content"], scope=scope)
        assert restored["content"] == [{"type": "text", "text": CONTRACT}]


class Mcp:
    """JSON-RPC by hand: what stands on the wire, without a library that could mend it."""

    def __init__(self, service: Service, revision: str) -> None:
        self.revision = revision
        self.http = httpx2.Client(
            headers={
                "authorization": f"Bearer {service.key}",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": revision,
            },
            base_url=service.url,
            timeout=60,
        )

    def __enter__(self) -> Self:
        if self.revision == "2025-11-25":
            client = {"name": "test", "version": "1"}
            params = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": client}
            answer = self.http.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            )
            assert answer.json()["result"]["capabilities"]["contextMiddleware"] == {}
            self.http.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            told = self.http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert told.status_code == 202
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def invoke(self, name: str, context: list[Any], **arguments: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": name, "arguments": arguments, "context": context}
        headers = {}
        if self.revision == "2026-07-28":
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {"mcp-method": "middleware/invoke", "mcp-name": name}
        body = {"jsonrpc": "2.0", "id": 2, "method": "middleware/invoke", "params": params}
        answer = self.http.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result
