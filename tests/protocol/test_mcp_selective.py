"""Selective loading, over the wire and in Python, on both revisions."""

import pytest

from app.upstream.aggregator import MCPAggregator
from app.upstream.registry import ServerRegistry
from tests.integration.upstream_setup import options, serving
from tests.protocol.aggregated_service import aggregated
from tests.protocol.mcp_wire import HANDSHAKE
from tests.protocol.passing_service import call, listed, opened, passing
from tests.protocol.requirements import covers
from tests.upstreams.misbehaving import misbehaving
from tests.upstreams.running import serving_http
from tests.upstreams.scripted import ScriptedServer


def script(name, *tools):
    made = ScriptedServer(name)
    made.tools.clear()
    for tool in tools:
        made.add_tool(tool)
    return made


@pytest.fixture
def memory():
    return script("memory", "get", "set", "delete")


@pytest.fixture
def github():
    return script("github", "list_repos", "create_issue")


@pytest.fixture
def reach(revision):
    """How the servers themselves are spoken to."""
    return "http handshake" if revision == HANDSHAKE else "http modern"


async def names(wire):
    return [one["name"] for one in await listed(wire, "tools/list")]


@covers("SL-SERVERS", "SL-SERVERS-MISSING", "SL-SERVERS-EMPTY", "SL-SERVER-NAMES", "SL-BOTH")
async def test_servers_that_are_filtered_out_are_never_connected_to(reach):
    with serving(reach, "memory") as memory, misbehaving() as other:
        registry = ServerRegistry.from_dict({"memory": memory.settings, "other": {"url": other.url}})
        with pytest.raises(ValueError, match=r"^Servers not found: a, b$"):
            registry.filter_servers(["a", "memory", "b"])
        assert registry.filter_servers([]).list_servers() == []
        with pytest.warns(DeprecationWarning, match="filter_servers"):
            old = MCPAggregator(registry, server_names=["memory"], options=options(reach))
        new = MCPAggregator(
            registry.filter_servers(["memory"]), tool_filter={"memory": ["add"]}, options=options(reach)
        )
        assert set(await old.list_tools(return_server_mapping=True)) == {"memory"}
        assert [one.name for one in (await new.list_tools()).tools] == ["memory__add"]
        assert (await new.call_tool("memory__add", {"a": 1, "b": 2})).content[0].text == "3"
        assert other.requests == []


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (["get", "set"], ["memory__get", "memory__set"]),
        (["-delete"], ["memory__get", "memory__set"]),
        ([], []),
        (None, ["memory__get", "memory__set", "memory__delete"]),
    ],
)
@covers("SL-TOOLS", "SL-TOOLS-ALL", "SL-NEGATIVE", "SL-REFUSED")
async def test_clients_see_and_call_the_tools_that_the_filter_leaves(
    chosen, left, revision, memory, github, tmp_path
):
    declared = {"toolFilter": {"memory": chosen}}
    async with (
        passing(tmp_path, memory, github, declared=declared) as (url, _),
        opened(url, revision) as wire,
    ):
        assert await names(wire) == ["github__list_repos", "github__create_issue", *left]
        for tool in ("get", "set", "delete", "absent"):
            reply = await call(wire, f"memory__{tool}", {"key": "test"})
            if f"memory__{tool}" in left:
                assert reply.result["structuredContent"] == {"key": "test"}
            else:
                assert reply.error["code"] == -32602
    assert [f"memory__{tool}" for _, tool in memory.calls] == left


@covers("SL-ALIAS", "SL-REFUSED")
async def test_clients_see_an_alias_in_place_of_the_name(revision, memory, tmp_path):
    declared = {"aliases": {"remember": "memory__set"}}
    async with passing(tmp_path, memory, declared=declared) as (url, _), opened(url, revision) as wire:
        assert await names(wire) == ["memory__get", "remember", "memory__delete"]
        assert (await call(wire, "remember", {"a": 1})).result["structuredContent"] == {"a": 1}
        assert (await call(wire, "memory__set")).error["code"] == -32602
    assert memory.calls == [("tools/call", "set")]


@covers("SL-LONGEST")
async def test_the_longest_server_name_wins(revision, tmp_path):
    short, long = script("a", "b__c", "d"), script("a__b", "c")
    async with passing(tmp_path, short, long) as (url, _), opened(url, revision) as wire:
        assert await names(wire) == ["a__d", "a__b__c"]
        await call(wire, "a__b__c")
    assert (short.calls, long.calls) == ([], [("tools/call", "c")])


@covers("SL-DOWN")
async def test_a_server_that_is_down_is_reported_and_the_others_work(revision, memory, tmp_path):
    with serving_http(memory) as reached:
        servers = {"memory": {"url": reached}, "down": {"url": "http://127.0.0.1:1/mcp"}}
        async with aggregated(tmp_path, servers) as (url, app), opened(url, revision) as wire:
            assert await names(wire) == ["memory__get", "memory__set", "memory__delete"]
            assert (await call(wire, "memory__get")).result
            status = app.state.services.upstreams.aggregator("default").connections["down"].status
            assert status.state == "failed"
            assert status.error == "Server 'down' cannot be reached: the connection is refused."
