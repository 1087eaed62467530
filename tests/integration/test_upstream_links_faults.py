"""Servers that hang, drip, flood, lie or vanish: the call fails as promised and the connection goes on."""

import asyncio
import traceback

import pytest

from app.core.errors import (
    DeadlineExceededError,
    InvalidArgumentsError,
    ServiceError,
    TooLargeError,
    UpstreamUnavailableError,
)
from app.core.upstream import UpstreamError
from tests.upstreams.links import MIB, Client, Unasked, call, linked, until
from tests.upstreams.misbehaving import (
    SESSION,
    VERBATIM,
    after,
    cut,
    hang,
    initialize,
    method_not_found,
    misbehaving,
    sends_body,
    streams,
)
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer

BROKEN = [
    "garbage",
    "no_http",
    "nan",
    "array",
    "text",
    "wrong_id",
    "accepted",
    "zipped",
    "cut",
    "many_headers",
]
BROKEN += ["many_short_headers", "broken_stream", "fault", "denied", "redirect"]


async def test_members_that_no_revision_knows_and_long_integers_pass_to_the_letter():
    with misbehaving() as server:
        async with linked(server.url) as link:
            result = await call(link, "verbatim")
            assert link.capabilities["futureCapability"] == {"a": 1}
            assert link.server_info["futureMember"] is True
    assert result == {
        "content": [{"type": "text", "text": "hé", "unknown": [1, {"a": None}]}],
        "futureField": {"x": 1.5},
        "structuredContent": {"big": 123456789012345678901234567890},
        "isError": False,
    }
    assert "123456789012345678901234567890" in VERBATIM


@pytest.mark.parametrize("tool", BROKEN)
async def test_a_broken_answer_fails_the_call_alone_and_its_words_are_not_told(tool):
    with misbehaving() as server:
        async with linked(server.url) as link:
            with pytest.raises(UpstreamUnavailableError) as failed:
                await call(link, tool)
            assert "Server 'fixture'" in failed.value.message
            printed = "".join(traceback.format_exception(failed.value))
            assert "secret" not in printed and "127.0.0.1:9" not in printed
            assert (await call(link, "verbatim"))["isError"] is False
        sent = [body for body in server.requests if (body.get("params") or {}).get("name") == tool]
        assert len(sent) == 1, "nothing is ever sent twice"


async def test_a_redirect_is_not_followed():
    with misbehaving() as elsewhere:
        away = sends_body(b"", status=307, Location=elsewhere.url)
        with misbehaving(on={"redirect": away}) as server:
            async with linked(server.url) as link:
                with pytest.raises(UpstreamUnavailableError, match="redirects"):
                    await call(link, "redirect")
        assert elsewhere.requests == []


@pytest.mark.parametrize("tool", ["hang", "drip", "silent_stream"])
async def test_an_answer_that_does_not_end_in_time_is_given_up_and_cancelled(tool):
    with misbehaving() as server:
        async with linked(server.url) as link:
            with pytest.raises(DeadlineExceededError):
                await call(link, tool, timeout_s=0.3)
            await until(lambda: "notifications/cancelled" in server.methods())
            assert (await call(link, "verbatim"))["isError"] is False


@pytest.mark.parametrize("tool", ["huge", "huge_stream"])
async def test_a_gigabyte_is_not_read(tool):
    with misbehaving() as server:
        async with linked(server.url) as link:
            with pytest.raises(TooLargeError, match="MAX_RESULT_BYTES"):
                await call(link, tool)
            await until(lambda: server.hung_up == 1)
            assert (await call(link, "verbatim"))["isError"] is False


async def test_an_answer_of_the_size_that_is_allowed_is_read_and_parsed_beside_the_loop():
    filler = "x" * (6 * MIB)
    body = f'{{"content":[],"structuredContent":{{"x":"{filler}"}}}}'

    async def large(exchange):
        await exchange.raw_result(body)

    with misbehaving(on={"large": large}) as server:
        async with linked(server.url, max_result_bytes=8 * MIB) as link:
            assert len((await call(link, "large"))["structuredContent"]["x"]) == 6 * MIB
        async with linked(server.url, max_result_bytes=5 * MIB) as link:
            with pytest.raises(TooLargeError):
                await call(link, "large")


async def test_while_servers_hang_others_answer():
    with misbehaving() as bad, misbehaving() as good:
        async with linked(bad.url) as hanging, linked(good.url) as answering:
            stuck = [asyncio.create_task(call(hanging, tool)) for tool in ("hang", "drip") * 5]
            for _ in range(20):
                assert (await call(answering, "verbatim"))["isError"] is False
            assert not any(task.done() for task in stuck)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)


async def test_a_session_that_the_server_has_forgotten_closes_the_link():
    with misbehaving() as server:
        async with linked(server.url) as link:
            assert f"mcp-session-id: {SESSION}" in server.heads[-1].lower()
            with pytest.raises(UpstreamUnavailableError):
                await call(link, "lost")
            async with asyncio.timeout(20):
                await link.wait_closed()
            with pytest.raises(UpstreamUnavailableError):
                await call(link, "verbatim")
        assert "DELETE" not in server.methods()


async def test_the_session_is_ended_with_the_link():
    with misbehaving() as server:
        async with linked(server.url) as link:
            await call(link, "verbatim")
        await until(lambda: "DELETE" in server.methods())
        heads = [head.lower() for head in server.heads]
        assert all("mcp-protocol-version: 2025-11-25" in head for head in heads[3:])
        assert server.methods()[:3] == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_method_that_a_server_does_not_know_is_no_lost_session():
    async def unknown(exchange):
        await exchange.error(-32601, "No such method", status=404)

    with misbehaving(on={"unknown": unknown}) as server:
        async with linked(server.url) as link:
            with pytest.raises(UpstreamError) as refused:
                await call(link, "unknown")
            assert refused.value.code == -32601
            assert (await call(link, "verbatim"))["isError"] is False


@pytest.mark.parametrize("revision", ["auto", "handshake"])
async def test_a_server_that_goes_away_closes_the_link_and_is_found_again_later(revision):
    script = ScriptedServer()
    with serving_http(script) as url:
        port = int(url.split(":")[2].split("/")[0])
        opened = linked(url, revision=revision)
        link = await opened.__aenter__()
        await call(link, "echo")
    try:
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "echo")
        async with asyncio.timeout(20):
            await link.wait_closed()
    finally:
        await opened.__aexit__(None, None, None)
    with serving_http(ScriptedServer(), port=port) as again:
        async with linked(again, revision=revision) as link:
            assert (await call(link, "echo", {"a": 1}))["structuredContent"] == {"a": 1}


async def test_a_server_that_is_started_again_has_forgotten_the_session():
    with serving_http(ScriptedServer()) as url:
        port = int(url.split(":")[2].split("/")[0])
        opened = linked(url, revision="handshake")
        link = await opened.__aenter__()
    with serving_http(ScriptedServer(), port=port):
        with pytest.raises(UpstreamUnavailableError):
            await call(link, "echo")
        async with asyncio.timeout(20):
            await link.wait_closed()
        await opened.__aexit__(None, None, None)


async def test_a_broken_stream_is_taken_up_where_it_broke():
    first = (
        'id: 41\nretry: 1\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}\n\n'
    )
    last_seen = []

    async def rest(exchange):
        head = exchange.server.heads[-1].lower()
        if "last-event-id" not in head:
            return await method_not_found(exchange)
        last_seen.append(head.split("last-event-id: ")[1].split("\r\n")[0])
        number = next(b["id"] for b in exchange.server.requests if b.get("method") == "tools/call")
        answer = f'id: 42\ndata: {{"jsonrpc":"2.0","id":{number},"result":{{"resumed":true}}}}\n\n'
        return await streams(answer)(exchange)

    client = Client()
    with misbehaving(on={"resumable": streams(first), "GET": rest}) as server:
        async with linked(server.url) as link:
            assert await call(link, "resumable", hooks=client.hooks()) == {"resumed": True}
    assert last_seen == ["41"]
    assert client.told == [("notifications/message", {"data": 1})]
    assert server.methods().count("tools/call") == 1


async def test_questions_and_progress_come_on_the_stream_of_the_call_and_a_ping_is_always_answered():
    events = (
        'data: {"jsonrpc":"2.0","id":"p1","method":"ping"}\n\n',
        'data: {"jsonrpc":"2.0","id":"x1","method":"vendor/strange","params":{}}\n\n',
        'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"{id}","progress":1}}\n\n',
        'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other","progress":2}}\n\n',
    )
    client = Client()
    with misbehaving(on={"talking": streams(*events, end=False)}) as server:
        async with linked(server.url) as link:
            task = asyncio.create_task(
                call(link, "talking", hooks=client.hooks(ask=None, progress_token="t"))
            )
            await until(lambda: {"p1", "x1"} <= {body.get("id") for body in server.requests})
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    answers = {body["id"]: body for body in server.requests if body.get("id") in {"p1", "x1"}}
    assert answers["p1"] == {"jsonrpc": "2.0", "id": "p1", "result": {}}
    assert answers["x1"]["error"]["code"] == -32601
    assert client.told == [("notifications/progress", {"progressToken": "t", "progress": 1})]


async def test_messages_outside_a_call_come_on_the_stream_of_the_session():
    events = (
        'id: 1\nretry: 20\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n',
        'data: {"jsonrpc":"2.0","id":9,"method":"roots/list"}\n\n',
    )
    unasked, owner = Unasked(), Client()
    with misbehaving(on={"GET": streams(*events, end=False)}) as server:
        async with linked(server.url, on_notification=unasked, on_request=owner.ask):
            await until(lambda: any(body.get("id") == 9 and "result" in body for body in server.requests))
    assert unasked.heard == [("notifications/tools/list_changed", {})]
    assert owner.asked == [("roots/list", {})]


async def test_a_stream_of_the_session_that_opens_after_the_first_listing_reports_what_may_be_missed():
    late, in_time = Unasked(), Unasked()
    silent = streams(": here\n\n", end=False)
    with misbehaving(on={"GET": after(1, silent)}) as slow, misbehaving(on={"GET": silent}) as quick:
        async with linked(quick.url, on_notification=in_time), linked(slow.url, on_notification=late):
            await until(lambda: late.heard)
    assert late.heard == [("notifications/tools/list_changed", {})]
    assert in_time.heard == []


async def test_a_stream_of_the_session_that_ends_is_opened_again_and_what_may_be_missed_is_announced():
    unasked = Unasked()
    with misbehaving(on={"GET": streams(": hello\n\n")}) as server:
        async with linked(server.url, on_notification=unasked):
            await until(lambda: server.methods().count("GET") >= 2)
            await until(lambda: unasked.methods() == ["notifications/tools/list_changed"])


@pytest.mark.parametrize(
    "answer", [hang, sends_body(b"<html>", "text/html", 500), sends_body(b"", status=202), cut]
)
async def test_whatever_a_server_makes_of_the_probe_an_older_one_is_found(answer):
    with misbehaving(on={"server/discover": answer}) as server:
        async with linked(server.url, connect_timeout_s=2.0) as link:
            assert link.protocol_version == "2025-11-25"


async def older(exchange):
    await exchange.answer({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {}})


async def unheard_of(exchange):
    await exchange.answer({"protocolVersion": "2031-01-01", "capabilities": {}, "serverInfo": {}})


async def modern_only(exchange):
    message = (
        '{"jsonrpc":"2.0","id":%d,"error":{"code":-32022,"message":"No","data":{"supported":["2031-01-01"]}}}'
    )
    await exchange.send(400, (message % exchange.body["id"]).encode())


async def test_a_server_of_an_older_revision_is_spoken_to_in_its_own():
    with misbehaving(on={"initialize": older}) as server:
        async with linked(server.url) as link:
            assert link.protocol_version == "2025-03-26"
            await call(link, "verbatim")
        assert "mcp-protocol-version: 2025-03-26" in server.heads[-1].lower()


@pytest.mark.parametrize(
    ("on", "error"),
    [
        ({"initialize": unheard_of}, UpstreamUnavailableError),
        ({"initialize": sends_body(b"[]")}, UpstreamUnavailableError),
        ({"initialize": sends_body(b"{}", status=401)}, UpstreamUnavailableError),
        ({"initialize": hang}, DeadlineExceededError),
        ({"initialize": cut}, UpstreamUnavailableError),
        ({"server/discover": modern_only}, UpstreamError),
    ],
)
async def test_a_server_that_cannot_be_agreed_with_is_not_connected_to(on, error):
    with misbehaving(on=on) as server, pytest.raises(error):
        async with asyncio.timeout(40), linked(server.url, connect_timeout_s=2.0):
            pass


async def test_nobody_there_is_said_at_once():
    with misbehaving() as server:
        url = server.url
    with pytest.raises(UpstreamUnavailableError, match="connection is refused"):
        async with linked(url):
            pass


async def test_credentials_go_to_the_server_with_every_request():
    with misbehaving() as server:
        async with linked({"url": server.url, "headers": {"Authorization": "Bearer s3cret"}}) as link:
            await call(link, "verbatim")
        assert all("authorization: bearer s3cret" in head.lower() for head in server.heads)


async def test_settings_given_over_rest_do_not_reach_loopback_unless_it_is_allowed():
    with misbehaving() as server:
        with pytest.raises(InvalidArgumentsError, match="ALLOWED_NETWORKS"):
            async with linked(server.url, allowed_networks=()):
                pass
        local = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(InvalidArgumentsError, match="ALLOWED_NETWORKS"):
            async with linked(local, allowed_networks=("10.0.0.0/8",)):
                pass
        assert server.requests == []
        for networks in (None, ("127.0.0.0/8", "::1/128")):
            async with linked(local, allowed_networks=networks) as link:
                await call(link, "verbatim")


async def test_environment_does_not_send_traffic_elsewhere(monkeypatch):
    with misbehaving() as proxy, misbehaving() as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        async with linked(server.url) as link:
            await call(link, "verbatim")
        assert proxy.requests == []


async def test_a_client_that_cannot_be_told_fails_its_own_call_only():
    async def gone(_method, _params):
        raise ConnectionResetError

    params = '{"progressToken":{id},"progress":1}'
    progress = f'data: {{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}\n\n'
    with misbehaving(on={"telling": streams(progress, end=False)}) as server:
        async with linked(server.url) as link:
            with pytest.raises((ConnectionResetError, ServiceError)):
                await call(link, "telling", hooks=Client().hooks(notify=gone, progress_token="t"))
            assert (await call(link, "verbatim"))["isError"] is False


async def test_a_modern_server_is_told_in_headers_what_the_body_says():
    script = ScriptedServer()
    schema = script.tools["region"]["inputSchema"]
    with serving_http(script) as url:
        async with linked(url, schema_of=lambda tool: schema if tool == "region" else None) as link:
            seen = (await call(link, "region", {"region": "eu ü", "count": 1}))["structuredContent"]
    assert seen["mcp-method"] == "tools/call" and seen["mcp-name"] == "region"
    assert seen["mcp-protocol-version"] == "2026-07-28"
    assert seen["mcp-param-region"].startswith("=?base64?")


async def test_a_server_that_asks_for_input_is_passed_on_as_it_is():
    script = ScriptedServer()
    wanted = {"q": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    raw = {"resultType": "input_required", "inputRequests": wanted, "requestState": "s", "futureMember": 1}
    script.verbatim["tools/call:echo"] = raw
    with serving_http(script) as url:
        async with linked(url) as link:
            result = await call(link, "echo")
    assert {key: result[key] for key in raw} == raw


async def test_initialize_is_sent_once_even_by_a_patient_client():
    with misbehaving(on={"initialize": initialize}) as server:
        async with linked(server.url, revision="handshake"):
            pass
        assert server.methods().count("initialize") == 1
        assert "server/discover" not in server.methods()
