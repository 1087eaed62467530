"""The shared connection to a server: listing, loss, return, subscriptions and links of single clients."""

import asyncio
import logging

import pytest

from app.core.catalog import Kind
from app.core.errors import OverloadedError, UpstreamUnavailableError
from app.core.upstream import UpstreamError
from app.upstream import connection as connection_module
from app.upstream.connection import Connection
from app.upstream.dedicated import LinkBudget
from app.upstream.status import LONGEST_DELAY_S, delay_s
from tests.unit.upstream.links import SETTINGS, MemoryServer, connected, options, tool, until


async def test_a_server_is_listed_completely_page_by_page():
    pages = {None: ("a", "2"), "2": ("b", "3"), "3": ("c", None)}

    def page(params):
        name, following = pages[params.get("cursor")]
        return {"tools": [tool(name)], **({"nextCursor": following} if following else {})}

    server = MemoryServer(tools__list=page)
    async with connected(server) as connection:
        assert [one.own_name for one in connection.offers] == ["a", "b", "c"]
        assert connection.status.state == "ready"
        assert connection.status.error is None
        assert connection.status.generation == 1
        assert connection.status.offered == {Kind.TOOL: 3}


async def test_only_declared_lists_are_asked_for_and_all_kinds_come_in_order():
    server = MemoryServer(
        prompts__list={"prompts": [{"name": "p"}]},
        resources__list={"resources": [{"uri": "r://1", "name": "r"}]},
    )
    async with connected(server):
        assert server.asked("prompts/list") == server.asked("resources/list") == 0
    server.capabilities = {"resources": {}, "tools": {}, "prompts": {}}
    async with connected(server) as connection:
        assert [(one.kind.value, one.own_name) for one in connection.offers] == [
            ("tool", "get"),
            ("tool", "set"),
            ("prompt", "p"),
            ("resource", "r://1"),
        ]
        # The server does not know resources/templates/list, which is no fault: it offers none.
        assert connection.status.error is None


async def test_definitions_stay_as_they_are_and_what_is_none_is_left_out():
    odd = tool("get", title="T", futureMember={"x": 123456789012345678901234567890})
    rows = [
        odd,
        "text",
        {"name": 1},
        {"name": "no schema"},
        {"name": ""},
        tool("x" * 3000),
        tool("get", second=1),
    ]
    async with connected(MemoryServer(tools__list={"tools": rows})) as connection:
        assert [one.definition for one in connection.offers] == [odd]


@pytest.mark.parametrize(
    "fault",
    [
        UpstreamError(-32603, "secret"),
        {"prompts": "secret"},
        {"prompts": [], "nextCursor": 7},
        {"prompts": [], "nextCursor": "again"},
        {"prompts": [{"name": "x" * 2000}] * 600, "nextCursor": "more"},
    ],
)
async def test_a_list_that_fails_leaves_the_others_and_is_reported_in_our_words(fault):
    server = MemoryServer(prompts__list=fault)
    server.capabilities = {"tools": {}, "prompts": {}}
    async with connected(server, max_result_bytes=1_000_000) as connection:
        assert [one.own_name for one in connection.offers] == ["get", "set"]
        assert connection.status.state == "ready"
        assert connection.status.error == (
            "Server 'alpha' could not be asked for its prompts; what it offered before is kept."
        )


async def test_an_empty_cursor_ends_a_list():
    async with connected(MemoryServer(tools__list={"tools": [tool("a")], "nextCursor": ""})) as connection:
        assert [one.own_name for one in connection.offers] == ["a"]


async def test_a_long_list_leaves_turns_to_others():
    server = MemoryServer(tools__list={"tools": [tool(f"t{number}") for number in range(3200)]})
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(others())
    async with connected(server) as connection:
        assert len(connection.offers) == 3200
        assert turns >= 100
    counting.cancel()


async def test_a_server_of_which_nothing_can_be_listed_has_failed():
    server = MemoryServer(tools__list=UpstreamError(-32603, "secret"))
    async with connected(server) as connection:
        assert connection.status.state == "failed"
        assert connection.status.error == "Server 'alpha' refused the connection with JSON-RPC error -32603."
        assert connection.offers == ()
        server.answers["tools/list"] = {"tools": [tool("late")]}
        await until(lambda: connection.status.state == "ready")
        assert [one.own_name for one in connection.offers] == ["late"]


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


async def test_subscriptions_are_counted_and_renewed_after_a_loss():
    server = MemoryServer(resources__subscribe={}, resources__unsubscribe={})
    async with connected(server) as connection:
        for uri in ("r://1", "r://1", "r://2"):
            await connection.subscribe(uri)
        assert server.asked("resources/subscribe") == 2
        await connection.unsubscribe("r://1")
        await connection.unsubscribe("r://unknown")
        assert server.asked("resources/unsubscribe") == 0
        server.requests.clear()
        server.close(up=True)
        await until(lambda: server.asked("resources/subscribe") == 2)
        await connection.unsubscribe("r://1")
        assert server.requests[-1] == ("resources/unsubscribe", {"uri": "r://1"})


async def test_a_subscription_that_the_server_refuses_counts_for_nothing():
    server = MemoryServer(resources__subscribe=UpstreamError(-32602, "no"))
    async with connected(server) as connection:
        with pytest.raises(UpstreamError):
            await connection.subscribe("r://1")
        await connection.unsubscribe("r://1")
        assert server.asked("resources/unsubscribe") == 0


async def test_a_modern_server_is_told_the_whole_set():
    server = MemoryServer(modern=True)
    async with connected(server) as connection:
        await connection.subscribe("r://1")
        await connection.subscribe("r://2")
        await connection.unsubscribe("r://1")
        assert [params for method, params in server.requests if method == "listen"] == [
            ["r://1"],
            ["r://1", "r://2"],
            ["r://2"],
        ]
        server.close(up=True)
        await until(lambda: server.links and server.links[0].listening == ["r://2"])


async def test_a_client_gets_a_connection_of_its_own_in_the_handshake_revision():
    server = MemoryServer(modern=True)
    heard = []
    async with connected(server) as connection:
        assert connection.modern
        async with connection.dedicated(
            {"sampling": {}}, on_notification=lambda *one: heard.append(one)
        ) as link:
            assert not link.modern
            assert link.options.capabilities == {"sampling": {}}
            assert len(server.links) == 2
            link.options.on_notification("notifications/message", {})
        assert len(server.links) == 1
        assert heard == [("notifications/message", {})]


async def test_a_server_without_handshake_gets_the_revision_it_speaks():
    server = MemoryServer(modern=True)
    opened = []

    def opener(name, settings, given):
        opened.append(given.revision)
        if given.revision == "handshake":
            raise UpstreamError(-32601, "no initialize here")
        return server.open(name, settings, given)

    async with (
        connected(server, opener=opener) as connection,
        connection.dedicated({}, on_notification=lambda *_: None) as link,
    ):
        assert link.modern
        assert opened == ["auto", "handshake", "auto"]


async def test_connections_of_single_clients_are_limited_in_number():
    server, budget = MemoryServer(), LinkBudget(1)
    async with connected(server, dedicated=budget) as connection:
        async with connection.dedicated({}, on_notification=lambda *_: None):
            with pytest.raises(OverloadedError):
                async with connection.dedicated({}, on_notification=lambda *_: None):
                    pass
        async with connection.dedicated({}, on_notification=lambda *_: None) as link:
            assert not link.gone.is_set()
        assert budget.taken == 0


async def test_stopping_a_server_ends_the_connections_of_single_clients_too():
    server = MemoryServer()
    async with connected(server) as connection:
        async with connection.dedicated({}, on_notification=lambda *_: None) as link:
            await connection.stop()
            async with asyncio.timeout(5):
                await link.wait_closed()
        assert server.links == []


def test_pauses_between_attempts_double_up_to_a_bound_and_differ():
    assert all(0.05 <= delay_s(1) <= 0.1 for _ in range(50))
    assert all(LONGEST_DELAY_S / 2 <= delay_s(failures) <= LONGEST_DELAY_S for failures in (12, 100, 10_000))
    assert len({delay_s(3) for _ in range(50)}) > 1
