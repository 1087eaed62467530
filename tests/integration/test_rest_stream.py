"""Streaming restoration over REST: while reading, in both formats, and what a failure looks like when."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.service import Service, running_service

PATH = "/api/v1/middleware/pii_restoration/stream"
LINES, EVENTS = "application/x-ndjson", "text/event-stream"
MAPPING = {"arguments": {"redactions": {"PERSON_1": "Jane Smith", "EMAIL_1": "jane@example.com"}}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: Path = tmp_path_factory.mktemp("stream")
    with running_service(directory) as running:
        yield running


def body_of(records: list[Any], kind: str) -> bytes:
    if kind == LINES:
        return b"".join(json.dumps(record).encode() + b"\n" for record in records)
    return b"".join(b"data: " + json.dumps(record).encode() + b"\n\n" for record in records)


def records_of(text: str) -> list[Any]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line[:1] in {"{", "d"}]


def post(service: Service, body: bytes, kind: str = LINES, accept: str = "*/*") -> Any:
    return service.http.post(PATH, content=body, headers={"content-type": kind, "accept": accept})


@pytest.mark.parametrize("kind", [LINES, EVENTS])
@pytest.mark.parametrize("accept", [LINES, EVENTS, "*/*"])
def test_text_is_restored_across_pieces_in_either_format(service: Service, kind: str, accept: str) -> None:
    text = "Hello [PERSON_1], is [EMAIL_1] yours? [PERSON_2] says no."
    records = [MAPPING, *({"text": letter} for letter in text)]
    answer = post(service, body_of(records, kind), kind, accept)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind if accept == "*/*" else accept)
    *pieces, last = records_of(answer.text)
    assert last == {"done": True, "metadata": {"unresolved": 1, "handlesLeft": 1}}
    restored = "".join(piece["text"] for piece in pieces)
    assert restored == "Hello Jane Smith, is jane@example.com yours? [PERSON_2] says no."


@pytest.mark.parametrize("kind", [LINES, EVENTS])
@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("Hi [PERSON_1]", {}, {"unresolved": 0}),
        ("[PERSON_1] [PERSON_9] https://x.example/?q=[PERSON_1]", {}, {"withheld": 1, "handlesLeft": 2}),
        ("person_1 [person_1] [PERSON_1] [PERSON_4]", {"exact": True}, {"unresolved": 1, "handlesLeft": 2}),
        ('{"id": "[EMAIL_1]", "arguments": {"a": "[EMAIL_1]"}}', {}, {"withheld": 2, "unresolved": 2}),
        ("[CUSTOM_1]", {}, {"unresolved": 0, "handlesLeft": 1}),
        ("[PERSON_1] is PERSON_1", {"exact": True}, {"unresolved": 0, "handlesLeft": 1}),
        ("no handle", {"exact": True}, {"unresolved": 0}),
    ],
)
def test_the_last_record_has_the_metadata_of_a_call(
    service: Service, kind: str, text: str, arguments: dict[str, Any], expected: dict[str, int]
) -> None:
    given = {"redactions": {**MAPPING["arguments"]["redactions"], "CUSTOM_1": "[PERSON_1]"}, **arguments}
    called = service.http.post(
        "/api/v1/middleware/pii_restoration/invoke", json={"arguments": given, "context": [text]}
    ).json()
    assert expected.items() <= called["metadata"].items()
    for size in (1, 5, 1000):
        chunks = [text[start : start + size] for start in range(0, len(text), size)]
        records = [{"arguments": given}, *({"text": chunk} for chunk in chunks)]
        *pieces, last = records_of(post(service, body_of(records, kind), kind).text)
        assert last == {"done": True, "metadata": called["metadata"]}
        assert ["".join(piece["text"] for piece in pieces)] == called["content"]


def test_an_object_waits_until_it_is_known_to_be_no_call_and_prose_does_not(service: Service) -> None:
    stream = Duplex(service)
    with stream.socket:
        stream.send(MAPPING)
        stream.until(b"\r\n\r\n")
        stream.send({"text": 'See {"a": "[EMAIL_1]", '})
        seen = stream.until(b"See ")
        stream.send({"text": '"b": 1} and [PERSON_1], '})
        seen += stream.until(b"Jane Smith")
        assert b"jane@example.com" in seen
        stream.send({"text": '{"a": "[EMAIL_1]", "arguments": {}} [PERSON_1], '})
        seen = stream.until(b"Jane Smith")
        assert b"[EMAIL_1]" in seen and b"jane@example.com" not in seen
        stream.end()
        assert b'"metadata":{"unresolved":1,"withheld":1,"handlesLeft":1}' in stream.until(b"0\r\n\r\n")


def test_a_stream_of_arguments_alone_is_fine_and_one_without_them_is_refused(service: Service) -> None:
    assert records_of(post(service, body_of([MAPPING], LINES)).text) == [
        {"done": True, "metadata": {"unresolved": 0}}
    ]
    for body in (b"", body_of([{"text": "a"}], LINES)):
        refused = post(service, body)
        assert (refused.status_code, refused.json()["pointer"]) == (422, "/arguments")


class Duplex:
    """One request on a raw socket, so that the answer can be read while the body is being sent."""

    def __init__(self, service: Service) -> None:
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=10)
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
            f"Content-Type: {LINES}\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        self.socket.sendall(head.encode())

    def send(self, record: Any) -> None:
        line = json.dumps(record).encode() + b"\n"
        self.socket.sendall(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def until(self, wanted: bytes) -> bytes:
        seen = b""
        while wanted not in seen:
            piece = self.socket.recv(65536)
            assert piece, seen
            seen += piece
        return seen


def test_restored_text_arrives_while_the_rest_is_still_being_written(service: Service) -> None:
    stream = Duplex(service)
    with stream.socket:
        stream.send(MAPPING)
        assert b"200 OK" in stream.until(b"\r\n\r\n")
        stream.send({"text": "Dear [PERSON_1], "})
        assert b"Jane Smith" in stream.until(b"Jane Smith")
        stream.send({"text": "write to [EMA"})
        stream.send({"text": "IL_1]. "})  # the blank shows that no host name follows
        assert b"jane@example.com" in stream.until(b"jane@example.com")
        stream.end()
        assert b'{"done":true,"metadata":{"unresolved":0}}' in stream.until(b"0\r\n\r\n")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"Jane-Canary\n", 400, "invalid_request"),
        (b"[]\n", 422, "invalid_arguments"),
        (b'{"text":1}\n', 422, "invalid_arguments"),
        (b'{"arguments":1}\n', 422, "invalid_arguments"),
        (b'{"arguments":{},"text":"a"}\n', 422, "invalid_arguments"),
        (b'{"arguments":{"Jane-Canary":1}}\n{"text":"a"}\n', 422, "invalid_arguments"),
        (b'{"arguments":{"scope":5}}\n', 422, "invalid_arguments"),
        (b"[" * 100_000 + b"\n", 413, "too_large"),
    ],
)
def test_a_fault_before_the_first_text_has_a_status(
    service: Service, body: bytes, status: int, code: str
) -> None:
    answer = post(service, body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "Jane-Canary" not in answer.text


@pytest.mark.parametrize("bad", [{"text": 1}, {"arguments": {}}, {"Jane-Canary": 1}])
def test_a_fault_on_the_way_is_the_last_record(service: Service, bad: Any) -> None:
    answer = post(
        service, body_of([MAPPING, {"text": "Hi [PERSON_1]. "}, bad, {"text": "more"}], LINES), LINES, EVENTS
    )
    assert answer.status_code == 200
    first, last = records_of(answer.text)
    assert first == {"text": "Hi Jane Smith. "}
    assert last["error"]["code"] == "invalid_arguments"
    assert last["error"]["request_id"] == answer.headers["x-request-id"]
    assert "event: error" in answer.text and "Jane-Canary" not in answer.text


def test_a_type_that_is_not_offered_is_refused(service: Service) -> None:
    assert post(service, b"", LINES, "application/json").status_code == 406
    assert post(service, b"{}", "application/json").status_code == 415


def test_a_client_that_leaves_ends_the_stream_and_leaves_a_record(service: Service) -> None:
    stream = Duplex(service)
    with stream.socket:
        stream.send(MAPPING)
        stream.send({"text": "Dear [PERSON_1], "})
        stream.until(b"Jane Smith")
    until = time.monotonic() + 10
    stages: list[str] = []
    while "ended" not in stages[:1] and time.monotonic() < until:
        page = service.http.get("/api/v1/audit/events?action=middleware.restore_stream&limit=2").json()
        stages = [event["details"].get("stage", "") for event in page["items"]]
        time.sleep(0.05)
    assert service.http.get("/livez").status_code == 200
    assert "ended" in stages


def test_open_streams_of_a_tenant_are_capped_and_one_that_ends_makes_room(service: Service) -> None:
    assert service.put_policy({"limits": {"in_flight": 1}}).status_code == 200
    try:
        first = Duplex(service)
        with first.socket:
            first.send(MAPPING)
            first.until(b"\r\n\r\n")
            refused = post(service, body_of([MAPPING], LINES))
            assert (refused.status_code, refused.json()["code"]) == (503, "overloaded")
            assert int(refused.headers["retry-after"]) >= 1
        until = time.monotonic() + 10
        while (
            status := post(service, body_of([MAPPING], LINES)).status_code
        ) == 503 and time.monotonic() < until:
            time.sleep(0.05)
        assert status == 200
    finally:
        service.put_policy({})
