"""What a request must show before its body is read, at every door: REST and MCP in both revisions."""

import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import Client, Response

from app import __version__
from app.core.access import ApiKey
from tests.integration.service import Service, running_service

MODERN = {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
DISCOVER = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "doors", "version": "1"},
    },
}
DOORS: list[tuple[str, str, dict[str, str]]] = [
    ("POST", "/api/v1/middleware/pii_redaction/invoke", {}),
    ("POST", "/api/v1/pii/explain", {}),
    ("PUT", "/api/v1/pipelines/any", {}),
    ("PATCH", "/api/v1/vault/scopes/a", {}),
    ("DELETE", "/api/v1/groups/any", {}),
    ("POST", "/api/v1/middleware/pii_restoration/stream", {"content-type": "application/x-ndjson"}),
    ("POST", "/api/v1/collections/any/documents", {"content-type": "application/pdf"}),
    ("POST", "/api/v1/groups/import", {"content-type": "application/yaml"}),
    ("POST", "/api/v1/no/such/route", {}),
    ("POST", "/mcp", {}),
    ("POST", "/mcp", MODERN),
    ("POST", "/mcp/interceptors", MODERN),
    ("POST", "/mcp/groups/any", {"mcp-protocol-version": "2025-11-25"}),
]
EIGHT_MB = 8 * 1024 * 1024 - 1024
HEAD = "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(Path(tmp_path_factory.mktemp("doors"))) as running:
        yield running


@pytest.fixture(scope="module")
def stranger(service: Service) -> Iterator[Client]:
    """Yield a client without a credential."""
    with Client(base_url=f"http://127.0.0.1:{service.port}", timeout=30) as http:
        yield http


def ask(http: Client, door: tuple[str, str, dict[str, str]], content: bytes, **headers: str) -> Response:
    method, path, own = door
    sent = {"content-type": "application/json", **own, **headers}
    return http.request(method, path, content=content, headers=sent)


def code_of(answer: Response) -> str:
    body = answer.json()
    code: str = body["error"]["data"]["code"] if "error" in body else body["code"]
    return code


def minted(service: Service, *roles: str) -> str:
    key: str = service.http.post("/api/v1/keys", json={"roles": [*roles]}).json()["key"]
    return key


@pytest.mark.parametrize(
    "door", DOORS, ids=lambda door: f"{door[1]} {door[2].get('mcp-protocol-version', '')}"
)
def test_nothing_of_a_body_is_parsed_before_the_key(
    service: Service, stranger: Client, door: tuple[str, str, dict[str, str]]
) -> None:
    wrong = str(ApiKey(ApiKey.parse(service.key).id, ApiKey.generate().secret))  # type: ignore[union-attr]
    for bearer in (
        None,
        f"Bearer {wrong}",
        f"Bearer {ApiKey.generate()}",
        "Basic eDp5",
        f"Bearer {service.key} x",
    ):
        headers = {"authorization": bearer} if bearer else {}
        for content, kind in ((b'{"a":', None), (b"{}", "text/csv"), (b"\xff" * 70_000, None)):
            told = {**headers, "content-type": kind} if kind else headers
            answer = ask(stranger, door, content, **told)
            assert (answer.status_code, code_of(answer)) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("door", [DOORS[0], DOORS[2], DOORS[9], DOORS[10]], ids=lambda door: door[1])
def test_with_the_key_a_body_is_parsed_and_its_faults_are_told(
    service: Service, door: tuple[str, str, dict[str, str]]
) -> None:
    assert ask(service.http, door, b'{"a":').status_code == 400
    assert ask(service.http, door, b"{}", **{"content-type": "text/csv"}).status_code == 415


def test_who_announces_a_body_without_a_key_is_answered_before_it_comes(service: Service) -> None:
    for method, path, _ in (DOORS[0], DOORS[2], DOORS[9]):
        for credential in ("", f"Authorization: Bearer {ApiKey.generate()}\r\n"):
            with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
                connection.sendall(HEAD.format(method, path, EIGHT_MB, credential).encode() + b'{"a')
                assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
                while connection.recv(65536):  # and then it is closed, whatever was announced
                    pass


def test_a_body_that_drips_without_a_key_is_cut_off(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as drip:
        drip.sendall(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

        def dripping() -> None:
            for _ in range(400):
                drip.sendall(b"1\r\n \r\n")
                time.sleep(0.05)

        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            dripping()


def test_eight_megabytes_with_a_wrong_key_are_held_by_nobody(service: Service) -> None:
    body = memoryview(b"x" * EIGHT_MB)
    statuses: list[bytes] = []

    def flood(path: str) -> None:
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            credential = f"Authorization: Bearer {ApiKey.generate()}\r\n"
            connection.sendall(HEAD.format("POST", path, len(body), credential).encode())
            try:
                connection.sendall(body)
                statuses.append(connection.recv(12))
            except OSError:  # closed amid the body
                statuses.append(b"HTTP/1.1 401")

    paths = ["/mcp", "/api/v1/middleware/pii_redaction/invoke"] * 5
    threads = [threading.Thread(target=flood, args=(path,)) for path in paths]
    tracemalloc.start()
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert statuses == [b"HTTP/1.1 401"] * len(paths)
    assert peak < EIGHT_MB


def test_a_large_message_needs_a_role_that_uses_something(service: Service) -> None:
    large = {**DISCOVER, "params": {**DISCOVER["params"], "padding": "x" * 70_000}}  # type: ignore[dict-item]
    using = ["invoker", "restorer"]
    roles = (
        ("auditor", 403, sorted([*using, "operator"])),
        ("operator", 200, using),
        ("invoker", 200, None),
        ("restorer", 200, None),
    )
    for role, small, required in roles:
        bearer = {"authorization": f"Bearer {minted(service, role)}"}
        for path, message, headers in (("/mcp", INITIALIZE, {}), ("/mcp", DISCOVER, MODERN)):
            answer = service.http.post(path, json=message, headers={**headers, **bearer})
            assert answer.status_code == small, answer.text
        answer = service.http.post("/mcp", json=large, headers={**MODERN, **bearer})
        assert answer.status_code == (200 if required is None else 403)
        if required is not None:
            assert answer.json()["error"]["data"]["required"] == required


def test_two_credentials_are_refused_whichever_is_valid(service: Service, stranger: Client) -> None:
    valid, invalid = f"Bearer {service.key}", f"Bearer {ApiKey.generate()}"
    doors = [*DOORS, ("GET", "/api/v1/middleware", {}), ("GET", "/mcp", {}), ("DELETE", "/mcp", {})]
    for method, path, own in doors:
        for first, second in ((valid, invalid), (invalid, valid), (valid, valid)):
            headers = [*own.items(), ("authorization", first), ("authorization", second)]
            answer = stranger.request(method, path, headers=headers)
            assert (answer.status_code, code_of(answer)) == (400, "invalid_request"), path
    joined = {"authorization": f"{valid}, {valid}"}
    assert stranger.get("/api/v1/middleware", headers=joined).status_code == 401


def raw(service: Service, method: str, target: str) -> int:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.key}\r\n"
        connection.sendall(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        return int(connection.recv(65536).split(b" ")[1])


def test_a_slash_that_hides_in_a_path_is_refused(service: Service) -> None:
    for method in ("GET", "DELETE"):
        for slash in ("%2F", "%2f", "%5C", "%5c", "\\"):
            for place in (
                "/api/v1/vault/scopes/a{}b",
                "/mcp{}interceptors",
                "/mcp/groups/a{}b",
                "/api{}v1/keys",
            ):
                assert raw(service, method, place.format(slash)) == 400, place.format(slash)
    # No database stores NUL in a text: bodies that hold it are refused alike.
    for place in ("/api/v1/collections/a%00b", "/api/v1/middleware/a%00/invoke", "/mcp/groups/%00"):
        assert raw(service, "GET", place) == 400, place
    # Slashes as they are, and other escapes, are names like any other; so is a slash in a query.
    for target in (
        "/api/v1/vault/scopes/a/b",
        "/api/v1/vault/scopes/a%20b%25",
        "/api/v1/vault/scopes/%C3%A4",
    ):
        assert raw(service, "GET", target) in {404, 422}
    assert raw(service, "GET", "/api/v1/audit/events?action=a%2Fb") == 200


def test_what_routes_declare_reaches_the_guard_of_the_service(service: Service) -> None:
    for path in ("/api/v1/audit/events", "/api/v1/openapi.json"):
        assert service.http.get(path).status_code == 200
        assert service.http.get(path, params={"nonsense": "1"}).status_code == 422, path


def test_the_id_of_a_request_is_ours_and_the_callers_own_stands_beside_it(service: Service) -> None:
    theirs = f"order-{uuid4().hex}"
    first = service.http.get("/api/v1/keys", headers={"x-request-id": theirs})
    forged = service.http.post(
        "/mcp", json=DISCOVER, headers={**MODERN, "x-request-id": first.headers["x-request-id"]}
    )
    refused = service.http.put("/api/v1/pipelines/B", json={}, headers={"x-request-id": theirs})
    item = {"context": [{"type": "text", "text": "Hello"}]}
    invoked = service.http.post(
        "/api/v1/middleware/timestamp_injector/invoke", json=item, headers={"x-request-id": theirs}
    )
    answers = [first, forged, refused, invoked]
    ours = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ours)) == 4
    assert all(UUID(each).version == 7 for each in ours)
    assert forged.headers["x-client-request-id"] == first.headers["x-request-id"]
    assert refused.json()["request_id"] == refused.headers["x-request-id"]
    for answer in (first, refused, invoked):
        assert answer.headers["x-client-request-id"] == theirs
    found = events(service, client_request_id=theirs)
    assert invoked.headers["x-request-id"] in {event["request_id"] for event in found}
    assert theirs not in {event["request_id"] for event in events(service)}
    assert {event["details"]["client_request_id"] for event in found} == {theirs}
    for poor in (
        "123-45-6789-123-45-6789",
        "short",
        "x" * 65,
        "späße-und-mehr-davon",
        "a b c d e f g h i j k",
    ):
        answer = service.http.get("/livez", headers={"x-request-id": poor.encode()})  # type: ignore[dict-item]
        assert "x-client-request-id" not in answer.headers
        for path in ("/api/v1/audit/events", "/api/v1/audit/export"):
            asked = service.http.get(path, params={"client_request_id": poor})
            assert asked.status_code == 422
            assert asked.json()["pointer"] == "/client_request_id"
            assert "16 to 64" in asked.json()["detail"]
            assert poor not in asked.text


def events(service: Service, **filters: Any) -> list[dict[str, Any]]:
    answer = service.http.get("/api/v1/audit/events", params={"limit": 1000, **filters})
    found: list[dict[str, Any]] = json.loads(answer.text)["items"]
    return found


DELEGATED: list[tuple[str, str, dict[str, str], Any]] = [
    ("GET", "/api/v1/middleware", {}, None),
    (
        "POST",
        "/api/v1/middleware/timestamp_injector/invoke",
        {},
        {"context": [{"type": "text", "text": "a"}]},
    ),
    ("POST", "/mcp", {}, INITIALIZE),
    ("POST", "/mcp", MODERN, DISCOVER),
    ("POST", "/mcp/interceptors", {}, INITIALIZE),
    ("POST", "/mcp/groups/any", MODERN, DISCOVER),
    ("GET", "/openai/v1/models", {}, None),
    ("GET", "/mcp", {"mcp-session-id": "none", "accept": "text/event-stream"}, None),
]


@pytest.mark.parametrize(
    "door", DELEGATED, ids=lambda door: f"{door[0]} {door[1]} {door[2].get('mcp-protocol-version', '')}"
)
def test_only_a_delegate_names_an_end_user_at_any_door(
    service: Service, door: tuple[str, str, dict[str, str], Any]
) -> None:
    method, path, own, body = door

    def status(key: str, *users: bytes) -> tuple[int, str]:
        headers = [(name.encode(), value.encode()) for name, value in own.items()]
        headers += [
            (b"authorization", f"Bearer {key}".encode()),
            *((b"x-sluice-user", user) for user in users),
        ]
        answer = service.http.request(method, path, json=body, headers=headers)
        assert "gr\u00e4fin" not in answer.text
        return answer.status_code, answer.text

    plain, delegate = minted(service, "invoker", "restorer"), minted(service, "invoker", "delegate")
    user = "gr\u00e4fin ".encode() + b"x" * 249
    without = status(plain)[0]
    assert without not in {400, 401, 403}
    before = len(events(service, action="access.delegate"))
    refused, text = status(plain, user)
    assert (refused, "delegate" in text) == (403, True)
    assert status(str(ApiKey.generate()), user)[0] == 401
    assert status(delegate, user)[0] == without
    assert status(delegate)[0] == without
    for wrong in ((b"",), (user + b"x",), (b"a\xff",), ("a\u2028b".encode(),), (b"a", b"a")):
        assert status(delegate, *wrong)[0] == 400, wrong
    refusals = events(service, action="access.delegate")
    assert [(event["outcome"], event["error_code"]) for event in refusals[: len(refusals) - before]] == [
        *[("refused", "invalid_request")] * 5,
        ("refused", "forbidden"),
    ]


def test_an_event_says_for_whom_under_which_name_and_by_what_at_every_door(service: Service) -> None:
    user = f"ada-{uuid4().hex}"
    asked = {"name": f"desk-{uuid4().hex}", "roles": ["invoker", "delegate"]}
    key = service.http.post("/api/v1/keys", json=asked).json()["key"]
    params = {"name": "timestamp_injector", "context": ["Hello"]}
    headers = {"authorization": f"Bearer {key}", "x-sluice-user": user}
    rest = {"context": [{"type": "text", "text": "Hello"}]}
    service.http.post("/api/v1/middleware/timestamp_injector/invoke", json=rest, headers=headers)
    opened = service.http.post("/mcp", json=INITIALIZE, headers=headers)
    called = {"jsonrpc": "2.0", "id": 2, "method": "middleware/invoke", "params": params}
    handshake = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    modern = {**MODERN, "mcp-method": "middleware/invoke"}
    stateless = {**called, "params": {**params, **DISCOVER["params"]}}  # type: ignore[dict-item]
    answers = [
        service.http.post("/mcp", json=called, headers={**headers, **handshake}),
        service.http.post("/mcp", json=stateless, headers={**headers, **modern}),
    ]
    assert all("result" in answer.json() for answer in answers), [answer.text for answer in answers]
    found = events(service, user=user, action="middleware.invoke")
    assert len(found) == 3
    assert {event["on_behalf_of"] for event in found} == {found[0]["on_behalf_of"]}
    for event in found:
        assert (event["key_name"], event["address_class"]) == (asked["name"], "loopback")
        assert (event["decision"], event["versions"]) == ("change", {"sluice": __version__})
    assert events(service, user=f"{user}x") == []
    plain = minted(service, "invoker")
    service.http.post(
        "/api/v1/middleware/timestamp_injector/invoke",
        json=rest,
        headers={"authorization": f"Bearer {plain}"},
    )
    (nobody, *_) = events(service, action="middleware.invoke", limit=1)
    assert (nobody["on_behalf_of"], nobody["key_name"]) == (None, None)
    stored = b"".join(file.read_bytes() for file in service.directory.glob("sluice.db*"))
    assert asked["name"].encode() in stored
    assert user.encode() not in stored
    assert user not in service.log.getvalue()
