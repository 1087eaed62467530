"""What of a server's result is shown once, and what only machines read and no middleware sees."""

from typing import Any

import pytest

from app.core.content.hook_items import ResultParts


def free_of(kind: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the members that middlewares see beside the parts of the result."""
    return dict(ResultParts(kind, result).items[-1]["structuredContent"]["rest"])


@pytest.mark.parametrize(
    ("kind", "result", "rest"),
    [
        ("tool", {"content": [], "structuredContent": {"a": 1}, "x": "y"}, {"x": "y"}),
        ("prompt", {"messages": [], "description": "d"}, {"description": "d"}),
        ("resource", {"contents": [], "ttlMs": 5, "y": 1}, {"y": 1}),
        ("tool", {"content": [], "isError": True, "requestState": "s"}, {}),
        ("tool", {"content": [], "isError": "yes", "requestState": 7, "ttlMs": True},
         {"isError": "yes", "requestState": 7, "ttlMs": True}),
        ("tool", {"content": [], "resultType": "task", "cacheScope": "private"}, {}),
        ("tool", {"content": [], "resultType": "words", "cacheScope": ["private"]},
         {"resultType": "words", "cacheScope": ["private"]}),
        ("other", {"content": [1]}, {"content": [1]}),
        ("tool", {"content": "text"}, {"content": "text"}),
    ],
)  # fmt: skip
def test_what_has_its_own_place_is_not_shown_a_second_time(
    kind: str, result: dict[str, Any], rest: dict[str, Any]
) -> None:
    assert free_of(kind, result) == rest


def test_of_a_block_middlewares_read_its_own_members_and_the_rest_as_free_json() -> None:
    block = {
        "type": "resource",
        "resource": {"uri": "x://1", "text": "t", "_meta": {"m": 1}},
        "annotations": {"priority": 1},
    }
    shape = ResultParts("tool", {"content": [block, {"type": "text", "text": "t"}, "bare"]})
    (item, free) = shape.items
    assert item["content"] == [
        {"type": "resource", "resource": {"uri": "x://1", "text": "t"}},
        {"type": "text", "text": "t"},
        "bare",
    ]
    extras = {"annotations": {"priority": 1}, "resource": {"_meta": {"m": 1}}}
    assert free["structuredContent"]["parts"] == [extras, {}, {}]


def test_what_a_middleware_changes_in_the_free_json_is_written_back_where_it_stood() -> None:
    block = {"type": "resource", "resource": {"uri": "x://1", "text": "t", "_meta": {"m": 1}}, "note": "n"}
    shape = ResultParts("tool", {"content": [block], "x": "y"})
    item, free = shape.items
    changed = {
        "rest": {"x": "z"},
        "parts": [{"note": "changed", "resource": {"_meta": {"m": 2}}}],
    }
    made = shape.result([item, {**free, "structuredContent": changed}])
    assert made == {
        "content": [
            {
                "type": "resource",
                "resource": {"uri": "x://1", "text": "t", "_meta": {"m": 2}},
                "note": "changed",
            }
        ],
        "x": "z",
    }


def test_notes_have_a_place_in_results_that_have_no_other_and_none_where_there_are_none() -> None:
    shape = ResultParts("resource", {"contents": [], "_meta": {"a": 1}})
    note = {"type": "text", "text": "note"}
    assert shape.result(shape.items)["_meta"] == {"a": 1}
    assert shape.result([note, *shape.items])["_meta"] == {"a": 1, "dev.sluice/notes": ["note"]}
    bare = ResultParts("other", {"x": 1})
    assert bare.result([note, note, *bare.items]) == {"x": 1, "_meta": {"dev.sluice/notes": ["note", "note"]}}
    assert bare.result(bare.items) == {"x": 1}


def test_data_without_a_list_is_still_data() -> None:
    shape = ResultParts("tool", {"structuredContent": {"a": "b"}})
    item, free = shape.items
    made = shape.result([{**item, "structuredContent": {"a": "c"}}, free])
    assert made == {"structuredContent": {"a": "c"}}
