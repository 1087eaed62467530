"""Two hundred canaries through every position of every item type: none is found anywhere afterwards."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from tests.integration.canaries import (
    ARGUMENTS,
    BROKEN,
    CANARIES,
    COUNT,
    KINDS,
    POSITIONS,
    files_of,
    hits,
    spellings,
)
from tests.integration.service import Service, running_service
from tests.sampling import examples, sample

MALFORMED_POSITIONS = frozenset({"role", "type", "no object", "text of a wrong type"})
STREAM = "/api/v1/middleware/pii_restoration/stream"
SCOPE = "the-scope"
SENT = [
    value
    for start in sample("canaries", range(0, COUNT, len(KINDS)), examples(-(-COUNT // len(KINDS)), 2))
    for value in CANARIES[start : start + len(KINDS)]
]
"""All of them, or a few of each kind in `make test`."""
MODERN = "2026-07-28"
MCP_PREFIX = "io.modelcontextprotocol/"


@dataclass
class Run:
    """One service that has seen all canaries, and what it said when it refused."""

    service: Service
    refusals: list[bytes] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    over_mcp: list[str] = field(default_factory=list)

    def invoke(
        self, name: str, context: Any, arguments: Any, headers: Mapping[str, bytes] | None = None
    ) -> None:
        body = json.dumps({"arguments": arguments, "context": context}).encode()
        self.post(f"/api/v1/middleware/{name}/invoke", body, headers=headers)

    def post(
        self,
        path: str,
        body: bytes,
        kind: str = "application/json",
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        sent = {"content-type": kind.encode(), **(headers or {})}
        self.note(self.service.http.post(path, content=body, headers=sent))

    def invoke_over_mcp(self, context: Any, arguments: Any) -> None:
        meta = {f"{MCP_PREFIX}protocolVersion": MODERN, f"{MCP_PREFIX}clientCapabilities": {}}
        params = {"name": "pii_redaction", "arguments": arguments, "context": context, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "middleware/invoke", "params": params}
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": "middleware/invoke",
        }
        answer = self.service.http.post("/mcp", json=message, headers=headers)
        self.note(answer)
        self.over_mcp.append("result" if "result" in answer.json() else "error")
        if "error" in answer.json():
            self.refusals.append(answer.content)

    def note(self, answer: Response) -> None:
        self.statuses[answer.status_code] = self.statuses.get(answer.status_code, 0) + 1
        if answer.status_code >= 400:
            self.refusals.append(answer.content)


def through_every_position(run: Run, value: str) -> None:
    """Send one canary in every way in which it could come."""
    good = [make(value) for name, make in POSITIONS.items() if name not in MALFORMED_POSITIONS]
    run.invoke_over_mcp(good, {"scope": SCOPE})
    run.invoke_over_mcp([POSITIONS["text"](value)], {value: value})
    for arguments in ({"scope": SCOPE}, {"mode": "block"}):
        run.invoke("pii_redaction", good, {**arguments, "aggressiveness": "strict", "deny_list": [value]})
    run.invoke("audit_logging", good, {})
    run.invoke("timestamp_injector", good, {"timezone": "UTC"})
    run.invoke("timestamp_injector", good, {}, {"x-sluice-user": value.encode()})
    for name in MALFORMED_POSITIONS:
        run.invoke("pii_redaction", [POSITIONS[name](value)], {"strict": True})
    for make in ARGUMENTS.values():
        name, arguments = make(value)
        run.invoke(name, [{"type": "text", "text": value}], arguments)
    for broken in BROKEN.values():
        run.post("/api/v1/middleware/pii_redaction/invoke", broken(value))
        run.post("/mcp", broken(value))
    records = [
        {"arguments": {"redactions": {"PERSON_1": value}}},
        {"text": f"[PERSON_1] {value}"},
        {value: 1},
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    run.post(STREAM, lines.encode(), "application/x-ndjson")
    run.post(STREAM, value.encode(), "application/x-ndjson")
    http = run.service.http
    run.note(http.get("/api/v1/audit/events", params={"cursor": value, "limit": value}))
    run.note(
        http.get(f"/api/v1/nothing/{value}", params={"q": value}, headers={"x-request-id": value.encode()})
    )
    run.note(http.get("/api/v1/keys", headers={"authorization": b"Bearer " + value.encode()}))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with running_service(tmp_path, warm=True) as service:
        ran = Run(service)
        generous = {
            "audit_content": True,
            "audit_end_users": True,
            "limits": {"requests_per_second": 1000, "burst": 100_000},
        }
        assert service.put_policy(generous).status_code == 200
        for value in SENT:
            through_every_position(ran, value)
        for value in SENT[::10]:
            ran.note(service.http.post("/api/v1/vault/erasures", json={"value": value}))
        yield ran


def shown_by(service: Service) -> Iterator[tuple[str, bytes]]:
    """Yield what the service shows to operators and auditors."""
    for path in (
        "/metrics",
        "/readyz",
        "/api/v1/openapi.json",
        "/api/v1/audit/export?format=jsonl",
        "/api/v1/audit/export?format=csv",
        "/api/v1/vault/scopes?limit=1000",
        f"/api/v1/vault/scopes/{SCOPE}/entries?limit=1000",
        "/api/v1/keys",
        "/api/v1/tenants",
        "/api/v1/policies",
    ):
        answer = service.http.get(path)
        assert answer.status_code == 200, path
        yield path, answer.content


def test_there_are_two_hundred_different_canaries_of_all_eighteen_kinds() -> None:
    assert len(set(CANARIES)) == COUNT == 200
    assert len(KINDS) == 18


def check_that_the_canaries_were_sent(run: Run) -> None:
    """Guard the test itself: originals were stored, and thousands of refusals were collected."""
    entries = run.service.http.get(f"/api/v1/vault/scopes/{SCOPE}/entries?limit=1000&originals=true").json()
    sealed = {entry["original"] for entry in entries["items"]}
    assert len(sealed & set(SENT)) >= 0.75 * len(SENT)
    assert run.statuses[200] >= 3 * len(SENT)
    assert len(run.refusals) >= 20 * len(SENT)
    assert run.over_mcp == ["result", "error"] * len(SENT)
    assert not any(status >= 500 for status in run.statuses)


@pytest.mark.timeout(900)
def test_no_canary_is_in_files_logs_metrics_exports_lists_or_refusals(run: Run) -> None:
    check_that_the_canaries_were_sent(run)
    files = dict(files_of(run.service.directory))
    assert {"sluice.db", "sluice.db-wal", "keyring.json"} <= set(files)
    logged = run.service.log.getvalue().encode()
    assert logged.count(b"\n") >= 30 * len(SENT)
    assert hits(files.items()) == []
    assert hits([("log", logged), *shown_by(run.service)]) == []
    assert hits([("refusals", b"\n".join(run.refusals))]) == []


def test_the_search_finds_a_canary_that_does_leak(tmp_path: Path) -> None:
    """Negative control: planted in a database, a file, a log line, in every spelling, it is found."""
    with running_service(tmp_path) as leaky:
        value = CANARIES[0]
        assert leaky.http.post("/api/v1/keys", json={"roles": ["invoker"], "name": value}).status_code == 201
        found = hits(files_of(tmp_path))
        assert [hit.partition(":")[0] for hit in found if hit.endswith(value)] == ["sluice.db-wal"]
        assert hits([("keys", leaky.http.get("/api/v1/keys").content)]) == [f"keys: {value}"]
    for value in CANARIES:
        for spelling in spellings(value):
            assert hits([("planted", b"x" * 100 + spelling + b"y")], [value]) == [f"planted: {value}"]
