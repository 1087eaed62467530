"""Many servers as one: names, both levels of filtering, aliases, refusals, and changes while it runs."""

import warnings
from contextlib import asynccontextmanager

import pytest

from app.core.errors import NotFoundError, UpstreamUnavailableError
from app.core.upstream import UpstreamError
from app.upstream.aggregator import MCPAggregator, UnknownToolError
from app.upstream.registry import ServerRegistry
from tests.unit.upstream.links import SETTINGS, MemoryServer, options, tool, until


def registry_of(*servers, plain=()):
    return ServerRegistry(
        {one.name: SETTINGS.model_copy(update={"namespace": one.name not in plain}) for one in servers}
    )


def three():
    return (
        MemoryServer("memory", tools=["get", "set", "delete"]),
        MemoryServer("github", tools=["list_repos", "create_issue"]),
        MemoryServer("time", tools=["now"]),
    )


@asynccontextmanager
async def aggregated(*servers, plain=(), **more):
    async with MCPAggregator(
        registry_of(*servers, plain=plain), options=options(*servers), **more
    ) as aggregator:
        yield aggregator


async def names(aggregator):
    return [tool.name for tool in (await aggregator.list_tools()).tools]


EVERYTHING = [
    "github__list_repos",
    "github__create_issue",
    "memory__get",
    "memory__set",
    "memory__delete",
    "time__now",
]


async def test_all_tools_are_listed_by_server_name_then_in_the_servers_order():
    async with aggregated(*three()) as aggregator:
        assert await names(aggregator) == EVERYTHING


async def test_the_mapping_holds_the_servers_own_names():
    async with aggregated(*three(), tool_filter={"time": []}) as aggregator:
        mapping = await aggregator.list_tools(return_server_mapping=True)
        assert {server: [one.name for one in tools] for server, tools in mapping.items()} == {
            "github": ["list_repos", "create_issue"],
            "memory": ["get", "set", "delete"],
        }


@pytest.mark.parametrize(
    ("tool_filter", "left"),
    [
        (None, EVERYTHING),
        ({}, EVERYTHING),
        ({"memory": None}, EVERYTHING),
        ({"memory": []}, [name for name in EVERYTHING if not name.startswith("memory")]),
        ({"memory": ["get", "set"]}, [name for name in EVERYTHING if name != "memory__delete"]),
        ({"memory": ["-delete"]}, [name for name in EVERYTHING if name != "memory__delete"]),
        (
            {"memory": ["get"], "github": ["create_issue", "absent"], "time": None},
            ["github__create_issue", "memory__get", "time__now"],
        ),
        ({"unregistered": ["x"]}, EVERYTHING),
    ],
)
async def test_a_filter_exposes_what_it_says(tool_filter, left):
    async with aggregated(*three(), tool_filter=tool_filter) as aggregator:
        assert await names(aggregator) == left


@pytest.mark.parametrize("wrong", [["get", "-set"], "get", [1]])
def test_a_filter_that_is_no_list_or_mixes_signs_is_refused_with_the_servers_name(wrong):
    with pytest.raises(ValueError, match="memory"):
        MCPAggregator(registry_of(*three()), tool_filter={"memory": wrong})


async def test_server_names_still_narrows_and_says_that_it_is_deprecated():
    servers = three()
    with pytest.warns(DeprecationWarning, match="filter_servers"):
        aggregator = MCPAggregator(registry_of(*servers), ["time"], options=options(*servers))
    assert aggregator.server_names == ["time"]
    assert await names(aggregator) == ["time__now"]
    assert servers[0].opened == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MCPAggregator(registry_of(*servers)).server_names == ["memory", "github", "time"]


async def test_unknown_server_names_are_refused():
    with (
        pytest.warns(DeprecationWarning, match="deprecated"),
        pytest.raises(ValueError, match=r"^Servers not found: x, y$"),
    ):
        MCPAggregator(registry_of(*three()), ["x", "time", "y"])


async def test_a_registry_that_was_filtered_connects_to_no_other_server():
    servers = three()
    registry = registry_of(*servers).filter_servers(["time"])
    async with MCPAggregator(registry, options=options(*servers)) as aggregator:
        assert await names(aggregator) == ["time__now"]
    assert [one.opened for one in servers] == [0, 0, 1]


async def test_the_separator_is_free_but_never_empty():
    async with aggregated(*three(), separator="/") as aggregator:
        assert "time/now" in await names(aggregator)
        assert (await aggregator.call_tool("time/now")).content[0].text == "now"
    with pytest.raises(ValueError, match="separator"):
        MCPAggregator(registry_of(*three()), separator="")


async def test_a_tool_is_called_by_its_exposed_name_or_by_server_and_own_name():
    memory, *others = three()
    async with aggregated(memory, *others) as aggregator:
        assert (await aggregator.call_tool("memory__get", {"key": 1})).content[0].text == "get"
        assert (await aggregator.call_tool("set", server_name="memory")).content[0].text == "set"
    assert [params for method, params in memory.requests if method == "tools/call"] == [
        {"name": "get", "arguments": {"key": 1}},
        {"name": "set", "arguments": {}},
    ]


@pytest.mark.parametrize(
    ("tool_name", "server_name"),
    [
        ("memory__delete", None),
        ("delete", "memory"),
        ("memory__absent", None),
        ("absent", "memory"),
        ("absent__get", None),
        ("get", None),
        ("get", "absent"),
        ("", None),
        ("memory__", None),
        ("__get", None),
        ("memory__get", "memory"),
    ],
)
@pytest.mark.parametrize("entered", [True, False])
async def test_what_is_not_exposed_is_refused_here_and_never_reaches_a_server(
    tool_name, server_name, entered
):
    servers = three()
    aggregator = MCPAggregator(
        registry_of(*servers), tool_filter={"memory": ["get", "set"]}, options=options(*servers)
    )
    if entered:
        async with aggregator:
            with pytest.raises(UnknownToolError):
                await aggregator.call_tool(tool_name, {}, server_name)
    else:
        with pytest.raises(NotFoundError):
            await aggregator.call_tool(tool_name, {}, server_name)
    assert sum(one.asked("tools/call") for one in servers) == 0


async def test_a_filtered_name_alone_connects_to_nothing():
    servers = three()
    aggregator = MCPAggregator(registry_of(*servers), tool_filter={"memory": []}, options=options(*servers))
    with pytest.raises(ValueError, match="memory__get"):
        await aggregator.call_tool("memory__get")
    assert [one.opened for one in servers] == [0, 0, 0]


async def test_the_longest_registered_server_name_wins():
    short, long = MemoryServer("a", tools=["b__c", "d"]), MemoryServer("a__b", tools=["c"])
    async with aggregated(short, long) as aggregator:
        assert await names(aggregator) == ["a__d", "a__b__c"]
        await aggregator.call_tool("a__b__c")
    assert (short.asked("tools/call"), long.asked("tools/call")) == (0, 1)


@pytest.mark.parametrize(
    "aliases", [{"remember": "memory__set"}, {"memory": {"remember": "set"}}], ids=["flat", "by server"]
)
@pytest.mark.parametrize("entered", [True, False])
async def test_an_alias_replaces_the_name_and_leads_to_the_tool(aliases, entered):
    servers = three()
    aggregator = MCPAggregator(
        registry_of(*servers), tool_filter={"github": []}, aliases=aliases, options=options(*servers)
    )
    if entered:
        await aggregator.__aenter__()
    assert await names(aggregator) == ["memory__get", "remember", "memory__delete", "time__now"]
    assert (await aggregator.call_tool("remember")).content[0].text == "set"
    with pytest.raises(UnknownToolError):
        await aggregator.call_tool("memory__set")
    if entered:
        await aggregator.__aexit__(None, None, None)


async def test_an_alias_of_a_filtered_tool_exposes_nothing():
    async with aggregated(
        *three(), tool_filter={"memory": ["get"]}, aliases={"remove": "memory__delete"}
    ) as aggregator:
        assert "remove" not in await names(aggregator)
        with pytest.raises(UnknownToolError):
            await aggregator.call_tool("remove")


@pytest.mark.parametrize("entered", [True, False])
async def test_a_server_without_namespace_is_called_by_its_own_names(entered):
    servers = three()
    aggregator = MCPAggregator(registry_of(*servers, plain={"time"}), options=options(*servers))
    if entered:
        await aggregator.__aenter__()
    assert "now" in await names(aggregator)
    assert (await aggregator.call_tool("now")).content[0].text == "now"
    if entered:
        await aggregator.__aexit__(None, None, None)


async def test_outside_the_context_each_question_connects_to_what_it_needs_and_leaves():
    servers = three()
    aggregator = MCPAggregator(registry_of(*servers), options=options(*servers))
    assert await names(aggregator) == EVERYTHING
    assert (await aggregator.call_tool("memory__get")).content[0].text == "get"
    assert [(one.opened, one.left, one.links) for one in servers] == [(2, 2, []), (1, 1, []), (1, 1, [])]


async def test_inside_the_context_connections_are_kept():
    servers = three()
    async with aggregated(*servers) as aggregator:
        for _ in range(3):
            await aggregator.list_tools()
            await aggregator.call_tool("memory__get")
        with pytest.raises(RuntimeError):
            await aggregator.__aenter__()
    assert [(one.opened, one.left) for one in servers] == [(1, 1)] * 3


async def test_everything_of_a_tool_is_kept():
    whole = tool(
        "get",
        title="Get",
        description="Gets.",
        outputSchema={"type": "object"},
        annotations={"readOnlyHint": True},
        icons=[{"src": "https://example.com/i.png"}],
        _meta={"a": 1},
    )
    async with aggregated(MemoryServer("memory", tools__list={"tools": [whole]})) as aggregator:
        (listed,) = (await aggregator.list_tools()).tools
    given = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert given == {**whole, "name": "memory__get"}


async def test_results_and_errors_of_tools_come_back_whole():
    answer = {
        "content": [{"type": "text", "text": "It broke."}],
        "isError": True,
        "structuredContent": {"n": 123456789012345678901234567890},
        "_meta": {"a": 1},
    }
    async with aggregated(MemoryServer("memory", tools__call=answer)) as aggregator:
        result = await aggregator.call_tool("memory__get")
    assert result.is_error
    assert result.content[0].text == "It broke."
    assert result.structured_content == answer["structuredContent"]
    assert result.meta == {"a": 1}


async def test_an_answer_that_is_no_result_and_a_json_rpc_error_are_told_apart():
    async with aggregated(MemoryServer("memory", tools__call={"content": "secret"})) as aggregator:
        with pytest.raises(UpstreamUnavailableError, match="broke the protocol") as broken:
            await aggregator.call_tool("memory__get")
        assert "secret" not in str(broken.value)
        assert broken.value.__cause__ is broken.value.__context__ is None
    async with aggregated(MemoryServer("memory", tools__call=UpstreamError(-32050, "No."))) as aggregator:
        with pytest.raises(UpstreamError) as refused:
            await aggregator.call_tool("memory__get")
        assert (refused.value.code, refused.value.message) == (-32050, "No.")


async def test_a_server_that_is_down_hides_none_of_the_others():
    memory, *others = three()
    memory.up = False
    async with aggregated(memory, *others) as aggregator:
        assert await names(aggregator) == ["github__list_repos", "github__create_issue", "time__now"]
        assert (await aggregator.call_tool("time__now")).content
        with pytest.raises(UpstreamUnavailableError, match="refused the connection"):
            await aggregator.call_tool("memory__get")
        memory.up = True
        await until(lambda: aggregator.connections["memory"].status.state == "ready")
        assert (await aggregator.call_tool("memory__get")).content


async def test_a_call_waits_for_its_own_server_only():
    memory, *others = three()

    async def never():
        await until(lambda: False, seconds=100)

    memory.opening = never
    async with aggregated(memory, *others) as aggregator:
        assert (await aggregator.call_tool("time__now")).content
        assert aggregator.connections["memory"].status.state == "connecting"


async def test_an_update_starts_restarts_and_stops_what_changed_and_disturbs_nothing_else():
    memory, github, time = three()
    late = MemoryServer("late", tools=["x"])
    changes = []
    registry = registry_of(memory, github, time)
    given = options(memory, github, time, late, on_change=changes.append)
    async with MCPAggregator(registry, options=given) as aggregator:
        await aggregator.settled()
        kept = aggregator.connections["memory"]
        changed = SETTINGS.model_copy(update={"args": ["other"]})
        await aggregator.update(
            ServerRegistry({"late": SETTINGS, "memory": SETTINGS, "time": changed}), {"memory": ["get"]}, {}
        )
        await aggregator.settled()
        assert list(aggregator.connections) == ["late", "memory", "time"]
        assert aggregator.connections["memory"] is kept
        assert (memory.opened, github.opened, time.opened, late.opened) == (1, 1, 2, 1)
        assert (memory.left, github.left, time.left) == (0, 1, 1)
        assert await names(aggregator) == ["late__x", "memory__get", "time__now"]
        assert [offer.own_name for offer in aggregator.offers()] == ["x", "get", "now"]
        assert set(changes) == {"memory", "github", "time", "late"}


async def test_a_change_of_a_servers_list_is_seen_by_the_next_question():
    memory, *others = three()
    async with aggregated(memory, *others) as aggregator:
        await aggregator.settled()
        memory.tools = ["renamed"]
        memory.announce()
        await until(lambda: len(aggregator.connections["memory"].offers) == 1)
        assert "memory__renamed" in await names(aggregator)
        with pytest.raises(UnknownToolError):
            await aggregator.call_tool("memory__get")
