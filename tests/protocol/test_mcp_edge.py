"""Who may call, from where, and with which headers and bodies."""

from dataclasses import replace

import pytest

from app.core.contracts.policy import Limits
from app.services.access.traffic import Traffic
from tests.protocol.mcp_harness import ALICE, Access, build
from tests.protocol.mcp_wire import ENVELOPE, HANDSHAKE, MODERN, PREFIX, client, connected
from tests.protocol.requirements import covers


@covers("AUTH-401")
@pytest.mark.parametrize(
    "header", [None, "Bearer mallory", "Bearer", "Basic alice", "Bearer alice x", "alice"]
)
async def test_without_a_valid_token_nothing_is_served(revision, header):
    async with connected(build(), revision, key=None) as wire:
        given = {"authorization": header} if header else {}
        replies = [
            await wire.call("middleware/list", headers=given),
            await wire.call("server/discover", headers=given),
        ]
        others = [await wire.http.request(m, wire.url, headers=given) for m in ("GET", "DELETE")]

    for reply in replies:
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Bearer")
        assert reply.error["data"]["code"] == "unauthenticated"
        assert "mallory" not in reply.text
    assert {other.status_code for other in others} == {401}


async def test_two_credentials_are_none(wire):
    both = [("authorization", "Bearer alice"), ("authorization", "Bearer alice")]
    headers = [*both, *wire.headers("middleware/list").items()]

    response = await wire.http.post(wire.url, json=wire.body("middleware/list", {}), headers=headers)

    assert response.status_code == 401


async def test_where_authentication_is_off_nobody_needs_a_token(revision):
    async with connected(build(authenticator=Access(anonymous=ALICE)), revision, key=None) as wire:
        if not wire.modern:
            await wire.open()
        assert (await wire.call("middleware/list")).status == 200


@covers("EDGE-ORIGIN", "EDGE-HOST")
async def test_foreign_hosts_and_origins_are_refused(wire):
    for headers, status in [
        ({"host": "evil.example.com"}, 421),
        ({"origin": "http://evil.example.com"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example.com"}, 403),
        ({"host": "127.0.0.1.evil.example.com"}, 421),
    ]:
        reply = await wire.call("middleware/list", headers=headers)
        assert reply.status == status, headers
        assert reply.error["data"]["requestId"]
        for method in ("GET", "DELETE"):
            assert (await wire.http.request(method, wire.url, headers=headers)).status_code == status
    for origin in ("http://localhost", "http://localhost:5173", "http://127.0.0.1:1"):
        assert (await wire.call("middleware/list", headers={"origin": origin})).status == 200


async def test_other_http_methods_are_not_served(wire):
    response = await wire.http.request("PUT", wire.url)

    assert response.status_code == 405


@covers("MO-HEADERS")
async def test_headers_that_contradict_the_body_are_refused():
    async with connected(build(), MODERN) as wire:
        for headers in (
            {"mcp-method": "tools/list"},
            {"mcp-method": "MIDDLEWARE/INVOKE"},
            {"mcp-name": "pii_redaction"},
            {"mcp-name": "=?base64?bm9wZQ==?="},
            {"mcp-name": "=?base64?!!!?="},
        ):
            reply = await wire.invoke("x", headers=headers)
            assert (reply.status, reply.error["code"]) == (400, -32020), headers
        body = wire.body("middleware/list", {})
        for missing in ({"mcp-method": "middleware/list"}, {"mcp-protocol-version": MODERN}):
            reply = await wire.post(body, missing)
            assert (reply.status, reply.error["code"]) == (400, -32020), missing
        for agreeing in ("timestamp_injector", "=?base64?dGltZXN0YW1wX2luamVjdG9y?="):
            assert (await wire.invoke("x", headers={"mcp-name": agreeing})).status == 200


@covers("MO-HEADERS")
async def test_a_header_of_the_handshake_contradicts_the_envelope_of_the_modern_revision():
    async with connected(build(), MODERN) as wire:
        reply = await wire.call("middleware/list", headers={"mcp-protocol-version": HANDSHAKE})

    assert (reply.status, reply.error["code"]) == (400, -32020)
    assert reply.error["data"]["requestId"]


async def test_a_session_that_names_an_unknown_revision_is_told_which_are_served():
    async with connected(build(), HANDSHAKE) as wire:
        await wire.open()
        reply = await wire.call("ping", headers={"mcp-protocol-version": "1999-01-01"})

    assert reply.status == 400
    assert HANDSHAKE in reply.error["message"]
    assert MODERN in reply.error["message"]
    assert reply.error["data"]["requestId"]


@covers("MO-ENVELOPE")
async def test_a_modern_request_without_its_envelope_is_refused():
    async with connected(build(), MODERN) as wire:
        for missing in ("protocolVersion", "clientCapabilities"):
            body = wire.body("middleware/list", {})
            del body["params"]["_meta"][PREFIX + missing]
            reply = await wire.post(body, wire.headers("middleware/list"))
            assert (reply.status, reply.error["code"]) == (400, -32602)
        body = wire.body("middleware/list", {})
        del body["params"]["_meta"][PREFIX + "clientInfo"]
        assert (await wire.post(body, wire.headers("middleware/list"))).status == 200


@covers("MO-VERSION")
async def test_a_version_that_is_not_served_is_refused_with_those_that_are():
    async with connected(build(), MODERN) as wire:
        meta = {**ENVELOPE, f"{PREFIX}protocolVersion": "2099-01-01"}
        reply = await wire.call("middleware/list", meta=meta, headers={"mcp-protocol-version": "2099-01-01"})

    assert (reply.status, reply.error["code"]) == (400, -32022)
    assert reply.error["data"]["supported"] == [MODERN]
    assert reply.error["data"]["requested"] == "2099-01-01"


@covers("MO-NOT-FOUND")
async def test_methods_of_the_handshake_are_unknown_to_the_modern_revision():
    async with connected(build(), MODERN) as wire:
        for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "tools/list"):
            reply = await wire.call(method)
            assert (reply.status, reply.error["code"]) == (404, -32601), method


@covers("RPC-FRAMING")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b'{"a":NaN}', -32700),
        (b'{"a":1,"a":2}', -32700),
        (b'"\\ud800"', -32700),
        (b"\xff", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"canary-4711"', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"canary-4711"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"canary-4711"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"canary-4711"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"canary-4711"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":["canary-4711"]}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":["canary-4711"]}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b"{}", -32600),
    ],
)
async def test_what_is_no_message_is_refused_and_not_quoted(wire, body, code):
    headers = {**wire.headers("ping"), "content-type": "application/json"}

    response = await wire.http.post(wire.url, content=body, headers=headers)

    assert response.status_code == 400
    assert response.json()["error"]["code"] == code
    assert "canary" not in response.text


async def test_a_body_of_another_type_is_refused(wire):
    for kind in ("text/plain", "application/jsonx", "application/json, text/plain", ""):
        headers = {**wire.headers("ping"), "content-type": kind}
        response = await wire.http.post(wire.url, content=b"{}", headers=headers)
        assert response.status_code == 415, kind


@covers("ERR-ID")
async def test_an_error_carries_the_id_of_its_request(wire):
    wrong = {"no/such": {}, "middleware/invoke": {"name": 1}, "middleware/list": {"cursor": "x"}}
    for given in (7, "seven", 0, -1):
        for method, params in wrong.items():
            body = {**wire.body(method, params), "id": given}
            reply = await wire.post(body, wire.headers(method))
            assert reply.message["id"] == given
            assert "error" in reply.message


async def test_a_session_header_means_nothing_to_the_modern_revision():
    async with connected(build(), MODERN) as wire, client(wire.url, HANDSHAKE) as old:
        for session in (old.session, "nonsense"):
            reply = await wire.call("middleware/list", headers={"mcp-session-id": session})
            assert reply.status == 200


async def test_requests_that_invoke_nothing_are_held_to_a_rate_per_tenant(revision):
    mcp = build()
    few = Traffic(plain=Limits(requests_per_second=0.01, burst=4))
    async with connected(replace(mcp, app=replace(mcp.app.general, requests=few)), revision) as wire:
        replies = [await wire.call("middleware/list") for _ in range(5)]
        invoked = await wire.invoke({"type": "text", "text": "hello"})

    assert replies[0].status == 200
    assert (replies[-1].status, replies[-1].error["data"]["code"]) == (429, "rate_limited")
    assert replies[-1].headers["retry-after"]
    assert invoked.status == 200
