"""Servers of the modern revision: no session, no frames beside requests, one stream to hear on."""

import asyncio

import pytest

from app.core.errors import UpstreamUnavailableError
from app.core.upstream import UpstreamError
from tests.upstreams.links import Unasked, call, linked, until
from tests.upstreams.misbehaving import after, cut, hang, misbehaving, sends_body, streams

VERSION = "io.modelcontextprotocol/protocolVersion"
FRAME = (
    'data: {"jsonrpc":"2.0","method":"notifications/%s",'
    '"params":{"_meta":{"io.modelcontextprotocol/subscriptionId":{id}}%s}}\n\n'
)
ACKNOWLEDGED = FRAME % ("subscriptions/acknowledged", ',"notifications":{}')
CHANGED = FRAME % ("tools/list_changed", "")
ENDED = 'data: {"jsonrpc":"2.0","id":{id},"result":{}}\n\n'


async def discover(exchange):
    await exchange.answer(
        {
            "supportedVersions": ["2026-07-28", "2031-01-01"],
            "capabilities": {"tools": {"listChanged": True}},
            "futureMember": 1,
        }
    )


async def outdated(exchange):
    version = exchange.body["params"]["_meta"][VERSION]
    data = f'{{"supported":["2026-07-28"],"requested":"{version}"}}'
    await exchange.send(
        400,
        f'{{"jsonrpc":"2.0","id":{exchange.body["id"]},"error":{{"code":-32022,"message":"No","data":{data}}}}}'.encode(),
    )


def modern(**on):
    methods = {"listen": "subscriptions/listen"}
    return misbehaving(on={"server/discover": discover, **{methods.get(k, k): v for k, v in on.items()}})


async def test_results_pass_to_the_letter_and_there_is_no_session():
    with modern() as server:
        async with linked(server.url) as link:
            assert link.protocol_version == "2026-07-28" and link.server_info == {}
            result = await call(link, "verbatim")
            await link.notify("notifications/roots/list_changed")
        assert result["structuredContent"]["big"] == 123456789012345678901234567890
        assert result["futureField"] == {"x": 1.5}
        assert set(server.methods()) == {"server/discover", "subscriptions/listen", "tools/call"}
        assert all("mcp-session-id" not in head.lower() for head in server.heads)


async def test_a_call_is_cancelled_by_closing_its_stream():
    with modern() as server:
        async with linked(server.url) as link:
            task = asyncio.create_task(call(link, "drip"))
            await until(lambda: "tools/call" in server.methods())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await until(lambda: server.hung_up == 1)
        assert "notifications/cancelled" not in server.methods()


async def test_a_server_that_no_longer_speaks_the_revision_closes_the_link():
    with modern(other=outdated) as server:
        async with linked(server.url) as link:
            with pytest.raises(UpstreamError):
                await call(link, "other")
            async with asyncio.timeout(20):
                await link.wait_closed()
            with pytest.raises(UpstreamUnavailableError):
                await call(link, "verbatim")


@pytest.mark.parametrize("refusal", [sends_body(b"", status=405), sends_body(b"{}"), cut, streams(ENDED)])
async def test_a_server_that_announces_nothing_is_used_all_the_same(refusal):
    with modern(listen=refusal) as server:
        async with linked(server.url) as link:
            assert (await call(link, "verbatim"))["isError"] is False


async def test_a_server_that_hesitates_to_announce_holds_nobody_up():
    with modern(listen=hang) as server:
        async with linked(server.url) as link:
            assert (await call(link, "verbatim"))["isError"] is False


async def test_following_a_resource_that_the_server_refuses_is_told():
    with modern() as server:
        async with linked(server.url) as link:
            with pytest.raises(UpstreamError) as refused:
                await link.listen({"memo://one"})
            assert refused.value.code == -32601


@pytest.mark.parametrize("end", [(), (ENDED,)])
async def test_a_stream_that_ends_is_opened_again_and_what_may_be_missed_is_announced(end):
    unasked = Unasked()
    with modern(listen=streams(ACKNOWLEDGED, *end)) as server:
        async with linked(server.url, on_notification=unasked):
            await until(lambda: server.methods().count("subscriptions/listen") >= 2)
            await until(lambda: unasked.heard == [("notifications/tools/list_changed", {})])


async def test_a_stream_that_opens_after_the_first_listing_reports_what_may_be_missed():
    late, in_time = Unasked(), Unasked()
    acknowledge = streams(ACKNOWLEDGED, end=False)
    with modern(listen=after(1, acknowledge)) as slow, modern(listen=acknowledge) as quick:
        async with (
            linked(quick.url, on_notification=in_time),
            linked(slow.url, on_notification=late),
        ):
            await until(lambda: late.heard)
    assert late.heard == [("notifications/tools/list_changed", {})]
    assert in_time.heard == []


async def test_announcements_come_without_what_belongs_to_the_stream():
    unasked = Unasked()
    with modern(listen=streams(ACKNOWLEDGED, CHANGED, end=False)) as server:
        async with linked(server.url, on_notification=unasked):
            await until(lambda: unasked.heard)
    assert unasked.heard == [("notifications/tools/list_changed", {})]


async def test_the_probe_is_sent_again_in_the_revision_that_the_server_names():
    seen = []

    async def picky(exchange):
        seen.append(exchange.body["params"]["_meta"][VERSION])
        await (outdated if len(seen) == 1 else discover)(exchange)

    with misbehaving(on={"server/discover": picky}) as server:
        async with linked(server.url) as link:
            assert link.modern
    assert seen == ["2026-07-28", "2026-07-28"]
