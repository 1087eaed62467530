"""What a caller gives as tools, what is read of a definition, and what it costs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from app.core.errors import InvalidArgumentsError
from app.core.tools.definitions import candidate_of, tokens_of
from app.core.tools.offered import OfferedTools, VisibleTools, offered_by


def defined(name: str, description: str = "d", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, **more}


def names(offered: OfferedTools) -> list[str]:
    return [one.name for one in offered.candidates]


def test_a_name_stands_for_the_definition_beside_it_before_the_one_that_is_seen() -> None:
    seen = [defined("a", "seen"), defined("b", "seen"), defined("x", "seen")]
    for tools in (["a", defined("a", "given"), "b", "c"], [defined("a", "given"), "a", "b", "c"]):
        made = OfferedTools.of_caller(tools, seen)
        assert names(made) == ["a", "b", "c"]
        assert made.definitions == (defined("a", "given"), defined("b", "seen"), None)
        assert made.candidates[2].description == ""


def test_one_definition_twice_is_one_tool_and_two_different_ones_are_refused() -> None:
    assert names(OfferedTools.of_caller([defined("a"), defined("a"), "a"], [])) == ["a"]
    with pytest.raises(InvalidArgumentsError) as refused:
        OfferedTools.of_caller(["b", defined("a"), "a", defined("a", "other")], [])
    assert refused.value.details == {"pointer": "/arguments/availableTools/3/name"}


@pytest.mark.parametrize("name", ["a" * 257, "", "  ", "a\nb"])
def test_a_name_is_up_to_256_printable_characters(name: str) -> None:
    OfferedTools.of_caller(["a" * 256], [])
    for tool, pointer in ((name, "/0"), (defined(name), "/0/name")):
        with pytest.raises(InvalidArgumentsError) as refused:
            OfferedTools.of_caller([tool], [])
        assert refused.value.details == {"pointer": f"/arguments/availableTools{pointer}"}


def test_definitions_are_told_in_the_order_asked_as_far_as_they_are_known() -> None:
    made = OfferedTools.of_caller([defined("a"), "b", defined("c")], [])
    assert made.defined(["c", "b", "lost", "a"]) == [defined("c"), defined("a")]


def test_a_tool_of_which_only_the_name_is_known_costs_its_name() -> None:
    made = OfferedTools.of_caller([defined("a", "long " * 50), "b"], [])
    assert made.tokens(0) == tokens_of(defined("a", "long " * 50)) > 50
    assert made.tokens(1) == tokens_of({"name": "b"}) == 3


async def test_what_is_visible_is_asked_for_only_where_a_name_stands_alone() -> None:
    asked = 0

    async def visible() -> Sequence[Mapping[str, Any]]:
        nonlocal asked
        asked += 1
        return [defined("a", "seen")]

    assert (await offered_by([defined("a")], visible)).definitions == (defined("a"),)
    assert asked == 0
    assert (await offered_by([defined("b"), "a"], visible)).definitions[1] == defined("a", "seen")
    assert asked == 1


async def test_a_list_is_read_once_as_long_as_it_is_among_the_last_eight() -> None:
    memory = VisibleTools()
    lists = [[defined(f"t{number}")] for number in range(9)]
    first = await memory.offered(lists[0])
    for one in lists[1:8]:
        await memory.offered(one)
    assert await memory.offered(lists[0]) is first
    ninth = await memory.offered(lists[8])
    assert await memory.offered(lists[0]) is first, "what was asked for last stays"
    assert await memory.offered(lists[8]) is ninth, "the oldest goes, not the newest"
    second = await memory.offered(lists[1])
    assert names(second) == ["t1"]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"title": "T", "annotations": {"title": "A"}}, "T. d"),
        ({"title": 7, "annotations": {"title": "A"}}, "A. d"),
        ({"annotations": "A"}, "d"),
        ({"description": None}, ""),
        ({"description": "x" * 4001}, "x" * 4000),
    ],
)
def test_what_a_ranker_reads_of_a_definition(members: dict[str, Any], text: str) -> None:
    assert candidate_of({**defined("a"), **members}).description == text


def test_parameters_are_read_by_name_with_what_is_said_of_them() -> None:
    properties = {"a": {"description": "First"}, "b": {}, "c": 7, "d": {"description": 7}}
    schema = {"properties": properties}
    assert candidate_of(defined("t", inputSchema=schema)).parameters == ("a First", "b", "c", "d")
    many = {"properties": {f"p{number}": {} for number in range(65)}}
    assert len(candidate_of(defined("t", inputSchema=many)).parameters) == 64
    long = {"properties": {"p": {"description": "x" * 400}}}
    assert len(candidate_of(defined("t", inputSchema=long)).parameters[0]) == 300
    for odd in (None, [], {"properties": []}):
        assert candidate_of(defined("t", inputSchema=odd)).parameters == ()


def test_a_title_that_is_no_text_makes_room_for_the_next() -> None:
    shown = candidate_of(defined("t", title=5, annotations={"title": "Find"}, description="Finds."))
    assert shown.description == "Find. Finds."
