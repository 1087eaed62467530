"""The shared connection to a server: listing, loss, return, subscriptions and links of single clients."""

import asyncio
import logging

import pytest

from app.core.errors import UpstreamUnavailableError
from app.core.upstream import UpstreamError
from app.upstream import connection as connection_module
from app.upstream.connection import Connection
from tests.unit.upstream.links import SETTINGS, MemoryServer, connected, options, tool, until


async def test_a_lost_server_keeps_its_offers_refuses_calls_at_once_and_comes_back():
    server = MemoryServer()
    async with connected(server) as connection:
        server.close()
        await until(lambda: connection.status.state == "failed")
        assert [one.own_name for one in connection.offers] == ["get", "set"]
        with pytest.raises(UpstreamUnavailableError) as refused:
            await connection.request("tools/call", {"name": "get"})
        assert refused.value.details == {"server": "alpha"}
        assert refused.value.retry_after_s > 0
        server.up, server.tools = True, ["get", "new"]
        await until(lambda: connection.status.state == "ready")
        assert connection.status.generation == 2
        assert [one.own_name for one in connection.offers] == ["get", "new"]
        assert (await connection.request("tools/call", {"name": "new"}))["content"][0]["text"] == "new"


async def test_a_call_waits_for_a_connection_in_the_making():
    server = MemoryServer()
    opening = asyncio.Event()
    server.opening = opening.wait
    connection = Connection("alpha", SETTINGS, options(server))
    connection.start()
    call = asyncio.create_task(connection.request("tools/call", {"name": "get"}))
    await until(lambda: server.opened)
    assert not call.done()
    opening.set()
    assert (await call)["content"]
    await connection.stop()


async def test_a_server_that_never_answers_the_connection_is_given_up():
    server = MemoryServer()
    server.opening = asyncio.Event().wait
    async with connected(server, connect_timeout_s=0.05) as connection:
        await until(lambda: connection.status.state == "failed")
        assert connection.status.error == "Server 'alpha' timed out."


async def test_a_request_that_may_have_been_sent_is_never_sent_again():
    server = MemoryServer(tools__call=lambda _: asyncio.Event().wait())
    async with connected(server) as connection:
        call = asyncio.create_task(connection.request("tools/call", {"name": "get"}))
        await until(lambda: server.asked("tools/call"))
        server.close(up=True)
        with pytest.raises(UpstreamUnavailableError):
            await call
        await until(lambda: connection.status.generation == 2)
        assert server.asked("tools/call") == 1


async def test_a_caller_that_gives_up_harms_nobody():
    server = MemoryServer(
        tools__call=lambda params: asyncio.Event().wait() if params["name"] == "hang" else {}
    )
    async with connected(server) as connection:
        call = asyncio.create_task(connection.request("tools/call", {"name": "hang"}))
        await until(lambda: server.asked("tools/call"))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await connection.request("tools/call", {"name": "get"}) == {}
        assert connection.status.generation == 1


async def test_many_announcements_cause_one_listing_of_that_kind_only():
    server = MemoryServer(prompts__list={"prompts": []})
    server.capabilities = {"tools": {}, "prompts": {}}
    changes = []
    async with connected(server, on_change=changes.append) as connection:
        server.tools = ["get", "more"]
        changes.clear()
        for _ in range(20):
            server.announce()
        await until(lambda: [one.own_name for one in connection.offers] == ["get", "more"])
        assert server.asked("tools/list") == 2
        assert server.asked("prompts/list") == 1
        assert changes == ["alpha"]


async def test_a_change_announced_while_the_server_is_listed_is_not_lost():
    server = MemoryServer()
    names = iter([["old"], ["new"]])

    def listing(_params):
        rows = [tool(name) for name in next(names)]
        if server.asked("tools/list") == 1:
            server.announce()
        return {"tools": rows}

    server.answers["tools/list"] = listing
    async with connected(server) as connection:
        await until(lambda: [one.own_name for one in connection.offers] == ["new"])


async def test_other_notifications_go_to_whoever_follows_them():
    heard = []
    server = MemoryServer()
    async with connected(server, on_notification=lambda *one: heard.append(one)):
        server.announce("notifications/resources/updated", {"uri": "r://1"})
    assert heard == [("alpha", "notifications/resources/updated", {"uri": "r://1"})]


async def test_a_server_that_is_busy_with_a_call_and_cannot_be_listed_keeps_its_connection():
    server = MemoryServer(tools__call=lambda _: asyncio.Event().wait())
    async with connected(server, connect_timeout_s=0.1) as connection:
        call = asyncio.create_task(connection.request("tools/call", {"name": "get"}))
        await until(lambda: server.asked("tools/call"))
        never = asyncio.Event()
        server.answers["tools/list"] = server.answers["ping"] = lambda _: never.wait()
        server.announce()
        await until(lambda: server.asked("ping"))
        await until(lambda: connection.status.error is not None)
        await asyncio.sleep(0.2)
        assert connection.status.generation == 1
        assert not call.done()
        call.cancel()


async def test_after_a_failed_call_the_server_is_asked_whether_it_lives():
    server = MemoryServer(tools__call=UpstreamUnavailableError("One answer was broken."))
    async with connected(server) as connection:
        with pytest.raises(UpstreamUnavailableError):
            await connection.request("tools/call", {"name": "get"})
        await until(lambda: server.asked("ping") == 1)
        assert connection.status.generation == 1
        server.answers["ping"] = UpstreamUnavailableError("Nobody there.")
        with pytest.raises(UpstreamUnavailableError):
            await connection.request("tools/call", {"name": "get"})
        await until(lambda: connection.status.generation == 2)


async def test_an_idle_server_is_asked_whether_it_lives(monkeypatch):
    monkeypatch.setattr(connection_module, "PROBE_S", 0.01)
    server = MemoryServer(modern=True)
    async with connected(server) as connection:
        await until(lambda: server.asked("server/discover") >= 2)
        server.answers["server/discover"] = UpstreamUnavailableError("Nobody there.")
        await until(lambda: connection.status.generation == 2)


async def test_a_list_that_failed_is_asked_for_again(monkeypatch):
    monkeypatch.setattr(connection_module, "PROBE_S", 0.01)
    server = MemoryServer(prompts__list=UpstreamError(-32603, "secret"))
    server.capabilities = {"tools": {}, "prompts": {}}
    async with connected(server) as connection:
        assert connection.status.error is not None
        server.answers["prompts/list"] = {"prompts": [{"name": "p"}]}
        await until(lambda: connection.status.error is None)
        assert [one.own_name for one in connection.offers] == ["get", "set", "p"]
        assert server.asked("tools/list") == 1


async def test_a_transport_that_cancels_its_task_is_a_lost_connection_and_no_more():
    server = MemoryServer()

    async def broken_scope():
        if server.opened < 3:
            raise asyncio.CancelledError

    server.opening = broken_scope
    async with connected(server) as connection:
        await until(lambda: connection.status.state == "ready")
        assert server.opened == 3


async def test_a_bug_of_a_transport_does_not_end_the_connection_and_shows_no_content(caplog):
    server = MemoryServer()

    async def bug():
        if server.opened < 3:
            raise RuntimeError("secret words")

    server.opening = bug
    with caplog.at_level(logging.INFO):
        async with connected(server) as connection:
            assert connection.status.error == "The connection to server 'alpha' broke (RuntimeError)."
            await until(lambda: connection.status.state == "ready")
    assert "secret" not in caplog.text


async def test_a_bug_of_a_listener_costs_nobody_the_connection(caplog):
    def fail(*_given):
        raise RuntimeError("secret words")

    server = MemoryServer()
    async with connected(server, on_change=fail, on_notification=fail) as connection:
        server.announce("notifications/message", {"data": "secret"})
        assert connection.status.state == "ready"
        assert (await connection.request("tools/call", {"name": "get"}))["content"]
    assert "a listener to server alpha failed: RuntimeError" in caplog.text
    assert "secret" not in caplog.text


async def test_failures_in_a_row_lengthen_the_pause_until_a_connection_was_stable(monkeypatch):
    server = MemoryServer()
    async with connected(server) as connection:
        for failures in (1, 2, 3):
            server.close(up=True)
            await until(lambda: connection.status.state == "failed")
            assert connection._failures == failures
            await until(lambda: connection.status.state == "ready")
        monkeypatch.setattr(connection_module, "STABLE_S", 0)
        server.close(up=True)
        await until(lambda: connection.status.state == "failed")
        assert connection._failures == 1


async def test_calls_do_not_wait_for_a_server_that_failed_more_than_once():
    server = MemoryServer()
    server.up = False
    async with connected(server, connect_timeout_s=1000) as connection:
        await until(lambda: connection._failures >= 2)
        server.opening = asyncio.Event().wait
        opened = server.opened
        await until(lambda: server.opened > opened)
        assert connection.status.state == "failed"
        with pytest.raises(UpstreamUnavailableError):
            await connection.request("tools/call", {"name": "get"})


async def test_stopping_leaves_the_connection_in_order_and_refuses_calls():
    server = MemoryServer()
    async with connected(server) as connection:
        assert len(server.links) == 1
    assert server.links == []
    assert server.left == 1
    assert connection.status.state == "stopped"
    with pytest.raises(UpstreamUnavailableError):
        await connection.request("tools/call", {"name": "get"})


async def test_stopping_does_not_wait_for_a_connection_in_the_making():
    server = MemoryServer()
    server.opening = asyncio.Event().wait
    connection = Connection("alpha", SETTINGS, options(server, connect_timeout_s=1000))
    connection.start()
    await until(lambda: server.opened)
    async with asyncio.timeout(5):
        await connection.stop()
