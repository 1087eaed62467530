"""Virtual sessions of the handshake revision."""

import re

from tests.protocol.conformance_primitives import ConformancePrimitives
from tests.protocol.mcp_harness import Sessions, build, serving
from tests.protocol.mcp_wire import HANDSHAKE, client, connected
from tests.protocol.requirements import covers

OLDER = ["2024-11-05", "2025-03-26", "2025-06-18"]


@covers("HS-SESSION-ID")
async def test_a_session_id_is_visible_ascii_and_long_enough_not_to_be_guessed():
    async with connected(build(), HANDSHAKE) as wire:
        ids = {(await wire.open()).headers["mcp-session-id"] for _ in range(5)}

    assert len(ids) == 5
    assert all(re.fullmatch(r"[\x21-\x7e]{22,}", found) for found in ids)


@covers("HS-VERSION")
async def test_the_version_that_a_client_asks_for_is_served_if_it_is_known():
    async with connected(build(), HANDSHAKE) as wire:
        for version in [*OLDER, HANDSHAKE]:
            assert (await wire.open(version=version)).result["protocolVersion"] == version
        for version in ("1999-01-01", "2026-07-28"):
            assert (await wire.open(version=version)).result["protocolVersion"] == HANDSHAKE


async def test_a_client_of_an_older_revision_needs_no_version_header():
    async with connected(build(), HANDSHAKE) as wire:
        for version in OLDER:
            await wire.open(version=version)
            body = wire.body("middleware/invoke", {"name": "timestamp_injector", "context": ["x"]})
            reply = await wire.post(body, {"mcp-session-id": wire.session})
            assert reply.result == {"content": ["x"]}


async def test_a_failed_handshake_begins_no_session():
    sessions = Sessions()
    async with serving(build(sessions=sessions)) as url, client(url, HANDSHAKE) as wire:
        sessions.rows.clear()
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": HANDSHAKE}}
        reply = await wire.post(body)

    assert reply.error["code"] == -32602
    assert "mcp-session-id" not in reply.headers
    assert not sessions.rows


@covers("HS-SESSION-MISSING")
async def test_a_request_without_its_session_is_a_bad_request():
    async with connected(build(), HANDSHAKE) as wire:
        wire.session = None
        reply = await wire.call("middleware/list")
        stream = await wire.http.get(wire.url)
        ended = await wire.http.delete(wire.url)

    assert (reply.status, stream.status_code, ended.status_code) == (400, 400, 400)
    assert reply.error["code"] == -32600


@covers("HS-SESSION-GONE", "HS-DELETE")
async def test_an_ended_session_is_gone_for_every_method():
    async with connected(build(), HANDSHAKE) as wire:
        headers = {"mcp-session-id": wire.session}
        ended = await wire.http.delete(wire.url, headers=headers)
        after = [
            (await wire.call("middleware/list")).status,
            (await wire.notify("notifications/initialized")).status,
            (await wire.http.get(wire.url, headers=headers)).status_code,
            (await wire.http.delete(wire.url, headers=headers)).status_code,
        ]

    assert ended.status_code == 204
    assert after == [404, 404, 404, 404]


@covers("AUTH-PRINCIPAL")
async def test_the_session_of_another_principal_looks_like_none():
    async with connected(build(), HANDSHAKE) as alice, client(alice.url, HANDSHAKE, "bob") as bob:
        invented, bob.session = bob.session + "x", alice.session
        stolen = await bob.call("middleware/list")
        headers = {"mcp-session-id": alice.session}
        stream = await bob.http.get(bob.url, headers=headers)
        ended = await bob.http.delete(bob.url, headers=headers)
        bob.session = invented
        unknown = await bob.call("middleware/list")
        still = await alice.call("middleware/list")

    assert (stolen.status, stream.status_code, ended.status_code) == (404, 404, 404)
    assert stolen.error["message"] == unknown.error["message"]
    assert stolen.error["code"] == unknown.error["code"]
    assert still.status == 200


@covers("HS-ACCEPTED")
async def test_notifications_and_responses_are_accepted_without_a_body():
    async with connected(build(), HANDSHAKE) as wire:
        headers = wire.headers("")
        replies = [
            await wire.notify("notifications/initialized"),
            await wire.notify("notifications/roots/list_changed"),
            await wire.notify("notifications/unheard_of"),
            await wire.post({"jsonrpc": "2.0", "id": 5, "result": {}}, headers),
            await wire.post({"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "no"}}, headers),
        ]

    assert [(reply.status, reply.text) for reply in replies] == [(202, "")] * 5


@covers("HS-PING")
async def test_a_ping_is_answered_with_nothing():
    async with connected(build(), HANDSHAKE) as wire:
        assert (await wire.call("ping")).result == {}


@covers("HS-REPLICAS")
async def test_another_process_with_the_same_database_serves_the_session():
    shared = Sessions()
    async with (
        serving(build(sessions=shared)) as one,
        serving(build(sessions=shared)) as two,
        client(one, HANDSHAKE) as wire,
    ):
        for n in range(6):
            wire.url = (one, two)[n % 2]
            assert (await wire.invoke(n)).result["content"] == [n]
        assert (await wire.http.delete(two, headers={"mcp-session-id": wire.session})).status_code == 204
        wire.url = one
        assert (await wire.call("middleware/list")).status == 404


async def test_a_client_that_could_be_asked_things_still_gets_a_session_for_every_replica():
    async with connected(build(), HANDSHAKE) as wire:
        await wire.open(capabilities={"sampling": {}, "elicitation": {}, "roots": {}})

        assert not re.fullmatch(r"[0-9a-f]{32}", wire.session)
        assert (await wire.invoke("x")).status == 200


async def test_a_client_that_a_tool_may_ask_gets_a_session_bound_to_its_process():
    def with_tools():
        return build(primitives=ConformancePrimitives())

    async with (
        serving(with_tools()) as one,
        serving(with_tools()) as two,
        client(one, HANDSHAKE) as wire,
        client(one, HANDSHAKE, "bob") as bob,
    ):
        assert not re.fullmatch(r"[0-9a-f]{32}", wire.session)
        await wire.open(capabilities={"elicitation": {}})
        assert re.fullmatch(r"[0-9a-f]{32}", wire.session)
        assert (await wire.invoke("x")).result["content"] == ["x"]
        bob.session = wire.session
        assert (await bob.call("middleware/list")).status == 404
        wire.url = two
        assert (await wire.call("middleware/list")).status == 404
        headers = {"mcp-session-id": wire.session}
        assert (await bob.http.delete(one, headers=headers)).status_code == 404
        assert (await wire.http.delete(one, headers=headers)).status_code == 200
        wire.url = one
        assert (await wire.call("middleware/list")).status == 404
