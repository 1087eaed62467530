"""Listing a server: all pages, only what it declares, and lists that fail."""

import asyncio

import pytest

from app.core.catalog.primitives import PrimitiveKind
from app.core.upstream import UpstreamError
from tests.unit.upstream.links import MemoryServer, connected, tool, until


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
        assert connection.status.offered == {PrimitiveKind.TOOL: 3}


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
            "Server 'alpha' did not list its prompts; what it offered before is kept."
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
