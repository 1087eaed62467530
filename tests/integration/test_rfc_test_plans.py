"""The two test plans of the RFC, with real servers: three from npm, and our own over stdio and HTTP.

Phase 1, point 4 (the ``serve`` command) stands in tests/e2e with the other tests of that command.
"""

import json
from contextlib import ExitStack, contextmanager

import pytest

from app.upstream.aggregator import MCPAggregator, UnknownToolError
from app.upstream.registry import ServerRegistry
from tests.integration.upstream_setup import CUT_STREAMS, REACHES, options, serving
from tests.upstreams.misbehaving import misbehaving
from tests.upstreams.npm import everything_over_http, npm_servers
from tests.upstreams.warm import warm_settings

pytestmark = pytest.mark.filterwarnings(CUT_STREAMS)

MEMORY_TOOLS = [
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "read_graph",
    "search_nodes",
    "open_nodes",
]
ENTITIES = {"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes programs"]}]}


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Return five servers as a file would hold them."""
    folder = tmp_path_factory.mktemp("npm")
    (folder / "hello.txt").write_text("hello")
    with ExitStack() as stack:
        entries = npm_servers(folder)
        entries["http-everything"] = stack.enter_context(everything_over_http())
        entries["scripted"] = warm_settings("scripted")
        yield entries


@pytest.fixture
def config_path(servers, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@contextmanager
def nobody_comes():
    """Give a server of which no connection may be made while the body runs."""
    with misbehaving() as server:
        yield {"url": server.url}
        assert server.requests == []


async def exposed(aggregator):
    mapping = await aggregator.list_tools(return_server_mapping=True)
    return {server: [tool.name for tool in tools] for server, tools in mapping.items()}


# Phase 1: filtering servers


async def test_1_1_filter_servers_with_valid_names_leaves_these_and_connects_to_no_other(servers):
    with nobody_comes() as untouched:
        registry = ServerRegistry.from_dict({**servers, "untouched": untouched})
        filtered = registry.filter_servers(["memory", "http-everything"])
        assert filtered.list_servers() == ["memory", "http-everything"]
        async with MCPAggregator(filtered) as aggregator:
            found = await exposed(aggregator)
        assert found["memory"] == MEMORY_TOOLS
        assert {"echo", "get-sum"} <= set(found["http-everything"])
        assert list(found) == ["http-everything", "memory"]


def test_1_2_filter_servers_with_missing_names_raises_a_value_error(servers):
    registry = ServerRegistry.from_dict(servers)
    with pytest.raises(ValueError) as refused:
        registry.filter_servers(["absent", "memory", "gone"])
    assert str(refused.value) == "Servers not found: absent, gone"


async def test_1_3_filter_servers_with_an_empty_list_gives_an_empty_registry():
    with nobody_comes() as untouched:
        filtered = ServerRegistry.from_dict({"untouched": untouched}).filter_servers([])
        assert filtered.registry == {}
        async with MCPAggregator(filtered) as aggregator:
            assert (await aggregator.list_tools()).tools == []
            assert await aggregator.list_tools(return_server_mapping=True) == {}
            with pytest.raises(UnknownToolError):
                await aggregator.call_tool("untouched__echo")


async def test_1_5_a_filtered_registry_is_used_as_the_rfc_shows(config_path):
    full_registry = ServerRegistry.from_config(config_path)
    filtered_registry = full_registry.filter_servers(["memory", "filesystem"])
    aggregator = MCPAggregator(filtered_registry)

    tools = await aggregator.list_tools()
    names = [tool.name for tool in tools.tools]
    assert [f"memory__{name}" for name in MEMORY_TOOLS] == [
        one for one in names if one.startswith("memory__")
    ]
    assert "filesystem__list_directory" in names
    result = await aggregator.call_tool("memory__create_entities", ENTITIES)
    assert not result.is_error
    graph = await aggregator.call_tool("memory__read_graph")
    assert graph.structured_content["entities"][0]["name"] == "Ada"


# Phase 2: filtering tools


async def test_2_1_specific_tools_of_specific_servers_are_exposed_and_no_others(servers):
    registry = ServerRegistry.from_dict(servers).filter_servers(["memory", "scripted"])
    tool_filter = {"memory": ["read_graph", "open_nodes"], "scripted": ["echo", "add"]}
    async with MCPAggregator(registry, tool_filter=tool_filter) as aggregator:
        assert await exposed(aggregator) == {
            "memory": ["read_graph", "open_nodes"],
            "scripted": ["echo", "add"],
        }
        sum_ = await aggregator.call_tool("scripted__add", {"a": 2, "b": 3})
        assert sum_.content[0].text == "5"
        for name in ("memory__delete_entities", "scripted__crash"):
            with pytest.raises(UnknownToolError):
                await aggregator.call_tool(name, {"entityNames": ["Ada"]})
        # The child that the forbidden tool would have killed is the one that answers.
        assert aggregator.connections["scripted"].status.generation == 1


async def test_2_2_none_for_a_server_includes_all_its_tools(servers):
    registry = ServerRegistry.from_dict(servers).filter_servers(["memory"])
    async with MCPAggregator(registry, tool_filter={"memory": None}) as aggregator:
        assert await exposed(aggregator) == {"memory": MEMORY_TOOLS}


async def test_2_3_an_empty_list_for_a_server_includes_none_of_its_tools(servers):
    registry = ServerRegistry.from_dict(servers).filter_servers(["memory", "http-everything"])
    async with MCPAggregator(registry, tool_filter={"memory": []}) as aggregator:
        assert list(await exposed(aggregator)) == ["http-everything"]
        with pytest.raises(UnknownToolError):
            await aggregator.call_tool("memory__read_graph")


async def test_2_4_servers_that_the_filter_does_not_name_include_all_their_tools(servers):
    registry = ServerRegistry.from_dict(servers).filter_servers(["memory", "filesystem", "scripted"])
    tool_filter = {"filesystem": ["list_directory"], "scripted": ["-crash", "-slow"]}
    async with MCPAggregator(registry, tool_filter=tool_filter) as aggregator:
        found = await exposed(aggregator)
    assert found["memory"] == MEMORY_TOOLS
    assert found["filesystem"] == ["list_directory"]
    assert "echo" in found["scripted"]
    assert not {"crash", "slow"} & set(found["scripted"])


async def test_2_5_both_mechanisms_work_together(config_path, servers):
    with nobody_comes() as untouched:
        config_path.write_text(json.dumps({"mcpServers": {**servers, "untouched": untouched}}))
        filtered_registry = ServerRegistry.from_config(config_path).filter_servers(
            ["memory", "filesystem", "http-everything"]
        )
        tool_filter = {"memory": ["read_graph"], "filesystem": ["read_text_file", "list_directory"]}
        aggregator = MCPAggregator(filtered_registry, tool_filter=tool_filter)
        async with aggregator:
            tools = [tool.name for tool in (await aggregator.list_tools()).tools]
            assert [name for name in tools if not name.startswith("http-everything")] == [
                "filesystem__read_text_file",
                "filesystem__list_directory",
                "memory__read_graph",
            ]
            folder = servers["filesystem"]["args"][-1]
            listing = await aggregator.call_tool("filesystem__list_directory", {"path": folder})
            assert "hello.txt" in listing.content[0].text
            echoed = await aggregator.call_tool("http-everything__echo", {"message": "hi"})
            assert echoed.content[0].text == "Echo: hi"
            for name in ("memory__create_entities", "filesystem__write_file", "untouched__echo"):
                with pytest.raises(UnknownToolError):
                    await aggregator.call_tool(name, {})


# The examples of the RFC to the letter, on every transport and both revisions


@pytest.mark.parametrize("reach", [reach for reach in REACHES if reach != "stdio"])
async def test_the_examples_of_the_rfc_work_on_every_revision(reach, tmp_path):
    with serving(reach, "memory") as memory, serving(reach, "github") as github, nobody_comes() as untouched:
        for script, names in (
            (memory.script, ("get", "set")),
            (github.script, ("list_repos", "create_issue")),
        ):
            for name in names:
                script.add_tool(name)
        config_path = tmp_path / "mcp.json"
        entries = {
            name: {"type": one.settings.type, "url": one.settings.url}
            for name, one in (("memory", memory), ("github", github))
        }
        config_path.write_text(json.dumps({"mcpServers": {**entries, "other": untouched}}))

        full_registry = ServerRegistry.from_config(config_path)
        filtered_registry = full_registry.filter_servers(["memory", "github"])
        tool_filter = {
            "memory": ["get", "set"],
            "github": ["list_repos", "create_issue"],
        }
        aggregator = MCPAggregator(filtered_registry, tool_filter=tool_filter, options=options(reach))
        tools = await aggregator.list_tools()
        result = await aggregator.call_tool("memory__get", {"key": "test"})

        assert [tool.name for tool in tools.tools] == [
            "github__list_repos",
            "github__create_issue",
            "memory__get",
            "memory__set",
        ]
        assert result.structured_content == {"key": "test"}
        assert memory.script.calls == [("tools/call", "get")]
        assert github.script.calls == []


async def test_a_client_of_one_server_is_the_sdks_own(servers):
    registry = ServerRegistry.from_dict(servers)
    for name in ("memory", "http-everything", "scripted"):
        async with registry.get_client(name) as client:
            assert (await client.list_tools()).tools
    with serving("sse", "old") as old:
        async with ServerRegistry({"old": old.settings}).get_client("old") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 1})).content[0].text == "2"
