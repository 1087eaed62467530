"""The service behind a reverse proxy: streams arrive as written, long answers whole, addresses are the proxy's."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx2
import pytest

from tests.e2e.running import Service, running
from tests.outside.proxies import proxied

pytestmark = pytest.mark.outside

REVISION = "2025-11-25"
SOON_S = 8.0
"""A notification takes less, however slow the machine; a proxy that buffers keeps it until the stream ends."""
LONG = 3_000_000


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("behind"), forked=False) as started:
        yield started


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs(name)) for name in ("nginx", "haproxy")])
def http(request: pytest.FixtureRequest, service: Service, tmp_path: Path) -> Iterator[httpx2.Client]:
    """Return a client of the service through each proxy in turn."""
    headers = {"authorization": f"Bearer {service.key}"}
    with (
        proxied(request.param, service.port, tmp_path) as url,
        httpx2.Client(base_url=url, headers=headers, timeout=30, trust_env=False) as client,
    ):
        yield client


class Upload:
    """One request on a socket of its own, so that the answer can be read while the body is being sent."""

    def __init__(self, port: int, key: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        head = (
            "POST /api/v1/middleware/pii_restoration/stream HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {key}\r\nContent-Type: application/x-ndjson\r\n"
            "Transfer-Encoding: chunked\r\n\r\n"
        )
        self._socket.sendall(head.encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, record: dict[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        self._socket.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def until(self, wanted: str) -> str:
        """Read on until ``wanted`` has arrived and its line is whole."""
        seen = b""
        while wanted.encode() not in seen or not seen.rpartition(wanted.encode())[2].count(b"\n"):
            read = self._socket.recv(65536)
            assert read, seen
            seen += read
        return seen.decode()


def initialized(http: httpx2.Client) -> dict[str, str]:
    """Open a session and return the headers of its requests."""
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": REVISION}
    params = {
        "protocolVersion": REVISION,
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = http.post("/mcp", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert http.post("/mcp", json=told, headers=headers).status_code == 202
    return headers


def test_a_notification_arrives_while_its_stream_is_open(http: httpx2.Client) -> None:
    headers = initialized(http)
    with http.stream("GET", "/mcp", headers={**headers, "accept": "text/event-stream"}) as stream:
        assert stream.status_code == 200
        lines = stream.iter_lines()
        asked = time.monotonic()
        group = {"name": f"g{time.time_ns()}", "members": [{"kind": "tool", "name": "mail__*"}]}
        made = http.put(f"/api/v1/groups/{group['name']}", json=group)
        assert made.is_success, made.text
        message = next(
            json.loads(line[5:]) for line in lines if line.startswith("data:") and line[5:].strip()
        )

    assert message["method"] == "notifications/groups/list_changed"
    assert time.monotonic() - asked < SOON_S


def test_a_restoring_stream_answers_before_its_body_has_ended(http: httpx2.Client, service: Service) -> None:
    assert http.base_url.port is not None
    with Upload(http.base_url.port, service.key) as upload:
        upload.send({"arguments": {"redactions": {"PERSON_1": "Jane Smith"}}})
        upload.send({"text": "Hello [PERSON_1], how do you do today? "})
        assert "Jane Smith" in upload.until("Smith")
        upload.send({"text": "Good."})
        upload.end()
        assert '{"done":true,' in upload.until("done").replace(" ", "")


def test_a_long_answer_arrives_whole(http: httpx2.Client) -> None:
    words = "".join(chr(97 + position % 26) for position in range(LONG))
    answer = http.post("/api/v1/middleware/timestamp_injector/invoke", json={"context": [words]})

    assert answer.status_code == 200, answer.text
    (content,) = answer.json()["content"]
    assert content.endswith(words)
    assert content != words


@pytest.mark.parametrize(("network", "status"), [("127.0.0.0/8", 200), ("10.0.0.0/8", 401)])
def test_the_address_of_a_client_is_the_proxys_whatever_a_header_says(
    http: httpx2.Client, network: str, status: int
) -> None:
    made = http.post("/api/v1/keys", json={"roles": ["invoker"], "cidrs": [network]})
    assert made.status_code == 201, made.text
    key = made.json()["key"]

    answer = http.get(
        "/api/v1/middleware",
        headers={"authorization": f"Bearer {key}", "x-forwarded-for": "10.1.2.3"},
    )

    assert answer.status_code == status, answer.text
