"""Updates of resources reach those who asked for them and may see them, wherever their streams are."""

import asyncio
from typing import Any

import pytest

from tests.protocol.aggregated_service import OnlyHandshake, OnlyModern, aggregated, serving_era
from tests.protocol.answering import answering
from tests.protocol.mcp_service import KEY
from tests.protocol.mcp_wire import HANDSHAKE, MODERN
from tests.protocol.replicas import changed, keyed, methods_of, streaming
from tests.protocol.test_mcp_streams import getting
from tests.upstreams.scripted import ScriptedServer

UPDATED = "notifications/resources/updated"


async def announced(script: ScriptedServer, uri: str) -> None:
    await asyncio.to_thread(script.announce, uri)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.02)


def followed(app: Any) -> set[str]:
    """Return the URIs that streams of this process follow, once their servers have been told."""
    watches = app.state.services.subscriptions._watches
    return {uri for watch in watches if not watch.turn.locked() for uri in watch.followed}


@pytest.mark.parametrize("era", [None, OnlyHandshake, OnlyModern])
async def test_a_session_hears_of_what_it_subscribed_to_and_of_nothing_else(tmp_path, era):
    script = ScriptedServer()
    with serving_era(script, era) as upstream:
        async with (
            aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, app),
            keyed(url, HANDSHAKE) as wire,
            getting(wire) as stream,
        ):
            await stream.line()
            assert (await wire.call("resources/subscribe", uri="memo://one")).result == {}
            await until(lambda: followed(app) == {"memo://one"})
            await heard_upstream(app, "memo://one")
            await announced(script, "memo://two")
            await announced(script, "memo://one")
            assert await stream.message() == {
                "jsonrpc": "2.0",
                "method": UPDATED,
                "params": {"uri": "memo://one"},
            }
            assert (await wire.call("resources/unsubscribe", uri="memo://one")).result == {}
            await until(lambda: followed(app) == set())
            await announced(script, "memo://one")
            await app.state.services.catalogs.get("default")
            app.state.mcp.lists_changed("default", frozenset({"tool"}))
            assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def heard_upstream(app: Any, uri: str) -> None:
    """Wait until the server knows of the subscription, which it need not acknowledge at once."""
    await asyncio.sleep(0.3)


async def test_a_subscription_made_on_one_replica_holds_for_the_stream_on_another(replicas):
    async with keyed(replicas.two, HANDSHAKE) as wire, getting(wire) as stream:
        await stream.line()
        wire.url = replicas.one
        assert (await wire.call("resources/subscribe", uri="memo://one")).result == {}
        await until(lambda: followed(replicas.apps[-1]) == {"memo://one"})
        await announced(replicas.script, "memo://one")
        assert (await stream.message())["params"] == {"uri": "memo://one"}


async def test_a_stream_that_opens_later_follows_what_its_session_subscribed_to(replicas):
    async with keyed(replicas.one, HANDSHAKE) as wire:
        await wire.call("resources/subscribe", uri="memo://two")
        wire.url = replicas.two
        async with getting(wire) as stream:
            await stream.line()
            await until(lambda: followed(replicas.apps[-1]) == {"memo://two"})
            await announced(replicas.script, "memo://two")
            assert (await stream.message())["params"] == {"uri": "memo://two"}


async def test_listening_follows_the_resources_that_it_names(replicas):
    wanted = {"resourceSubscriptions": ["memo://one", "memo://absent/of/all"]}
    async with streaming(replicas.two, MODERN, **wanted) as stream:
        await until(lambda: "memo://one" in followed(replicas.apps[-1]))
        await announced(replicas.script, "memo://two")
        await announced(replicas.script, "memo://one")
        told = await stream.message()

    assert (told["method"], told["params"]["uri"]) == (UPDATED, "memo://one")
    await until(lambda: followed(replicas.apps[-1]) == set())


async def test_a_session_bound_to_its_process_hears_of_updates(replicas):
    async with answering(replicas.two, str(KEY)) as caller, caller.listening():
        await caller.call("resources/subscribe", uri="memo://one")
        await until(lambda: followed(replicas.apps[-1]) == {"memo://one"})
        await announced(replicas.script, "memo://one")
        assert (await caller.heard(UPDATED))["params"] == {"uri": "memo://one"}


async def test_updates_come_under_the_name_that_was_subscribed_to(tmp_path):
    one, two = ScriptedServer("one"), ScriptedServer("two")
    with serving_era(one) as first, serving_era(two) as second:
        async with (
            aggregated(tmp_path, {"one": {"url": first}, "two": {"url": second}}) as (url, app),
            keyed(url, HANDSHAKE) as wire,
            getting(wire) as stream,
        ):
            await stream.line()
            ambiguous = await wire.call("resources/subscribe", uri="memo://one")
            assert ambiguous.error["code"] == -32602
            await wire.call("resources/subscribe", uri="sluice://two/memo://one")
            await until(lambda: followed(app) == {"sluice://two/memo://one"})
            await heard_upstream(app, "memo://one")
            await announced(one, "memo://one")
            await announced(two, "memo://one")
            assert (await stream.message())["params"] == {"uri": "sluice://two/memo://one"}


async def test_who_may_no_longer_see_a_resource_hears_no_more_of_it(replicas):
    async with keyed(replicas.two, HANDSHAKE) as wire, getting(wire) as stream:
        await stream.line()
        await wire.call("resources/subscribe", uri="memo://one")
        await until(lambda: followed(replicas.apps[-1]) == {"memo://one"})
        tools_only = [{"members": [{"kind": "tool", "name": "*"}]}]
        await replicas.rest("PUT", "/policies?expected_version=0", {"grants": tools_only})
        await until(lambda: followed(replicas.apps[-1]) == set())
        assert await methods_of(stream, 4) == changed("tools", "prompts", "resources", "groups")


async def test_what_is_unknown_or_belongs_to_no_session_is_refused(tmp_path):
    with serving_era(ScriptedServer()) as upstream:
        async with (
            aggregated(tmp_path, {"alpha": {"url": upstream}}) as (url, _),
            keyed(url, HANDSHAKE) as wire,
        ):
            unknown = await wire.call("resources/subscribe", uri="file:///etc/passwd")
            never = await wire.call("resources/unsubscribe", uri="memo://one")

            async with keyed(url, MODERN) as modern:
                gone = await modern.call("resources/subscribe", uri="memo://one")

    assert gone.error["code"] == -32601, "the modern revision follows resources by subscriptions/listen alone"
    assert unknown.error["code"] == -32602
    assert unknown.error["data"]["pointer"] == "/uri"
    assert never.result == {}


async def test_a_stream_follows_what_its_server_offers_only_later(replicas):
    wanted = {"resourceSubscriptions": ["memo://later/by/far"]}
    async with streaming(replicas.two, MODERN, **wanted) as stream:
        replicas.script.resources["memo://later/by/far"] = {"uri": "memo://later/by/far", "name": "late"}
        await asyncio.to_thread(replicas.script.announce, "resources")
        await until(lambda: followed(replicas.apps[-1]) == {"memo://later/by/far"})
        await announced(replicas.script, "memo://later/by/far")
        assert (await stream.message())["params"]["uri"] == "memo://later/by/far"


async def test_at_the_endpoint_of_a_group_nothing_outside_it_is_followed(tmp_path):
    script = ScriptedServer()
    members = [{"kind": "resource", "name": "memo://one"}]
    with serving_era(script) as upstream:
        async with (
            aggregated(
                tmp_path,
                {"alpha": {"url": upstream}},
                declared={"groups": [{"name": "first", "members": members}]},
            ) as (url, app),
            keyed(f"{url}/groups/first", HANDSHAKE) as wire,
            getting(wire) as stream,
        ):
            await stream.line()
            refused = await wire.call("resources/subscribe", uri="memo://two")
            assert (refused.error["code"], refused.error["data"]["pointer"]) == (-32602, "/uri")
            assert (await wire.call("resources/subscribe", uri="memo://one")).result == {}
            await until(lambda: followed(app) == {"memo://one"})
            wanted = {"resourceSubscriptions": ["memo://one", "memo://two"]}
            async with streaming(f"{url}/groups/first", MODERN, **wanted):
                await until(lambda: len(app.state.services.subscriptions._watches) == 2)
                await until(lambda: all(one.followed for one in app.state.services.subscriptions._watches))
                assert followed(app) == {"memo://one"}
