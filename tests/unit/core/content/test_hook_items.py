"""Results taken apart into context items and put together again."""

import copy

import pytest

from app.core.content.context import Context
from app.core.content.hook_items import ResultParts, free_items, free_value
from app.core.errors import InternalError, UpstreamUnavailableError

TOOL = {
    "content": [
        {"type": "text", "text": "a", "annotations": {"priority": 1}, "_meta": {"x": None}},
        {"type": "image", "data": "AA==", "mimeType": "image/png", "more": [1]},
        {"type": "resource_link", "uri": "x://1", "name": "n", "title": "t", "size": 5},
        {"type": "resource", "resource": {"uri": "x://2", "text": "b", "_meta": {"y": 1}}, "extra": "e"},
        {"type": "unheard", "of": ["c"]},
        {"type": ["no", "name"]},
        "not even an object",
        None,
    ],
    "structuredContent": {"d": [1, None, {"e": "f"}]},
    "isError": True,
    "_meta": {"g": "h"},
    "vendor": "i",
}
PROMPT = {
    "description": "d",
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "a", "_meta": {"x": 1}}, "extra": 1},
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ],
    "_meta": {},
}
RESOURCE = {
    "contents": [{"uri": "x://1", "text": "a", "_meta": {"b": 1}}, {"uri": "x://2", "blob": "AA=="}],
    "ttlMs": 5,
}
OTHERS = [
    ("tool", {}),
    ("tool", {"content": "no list", "structuredContent": 5}),
    ("tool", {"structuredContent": None}),
    ("tool", {"resultType": "input_required", "inputRequests": {"a": {"method": "m"}}, "requestState": "s"}),
    ("prompt", {"completion": {"values": ["a"]}}),
    ("resource", {"contents": {}, "x": 1}),
    ("template", {"contents": [1]}),
    ("prompt", {"messages": []}),
]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("tool", TOOL),
        ("prompt", PROMPT),
        ("resource", RESOURCE),
        *OTHERS,
    ],
)
def test_unchanged_items_give_the_result_back(kind, result):
    before = copy.deepcopy(result)
    shape = ResultParts(kind, result)

    assert shape.result(shape.items) == result == before


@pytest.mark.parametrize(
    ("kind", "result"), [("tool", TOOL), ("prompt", PROMPT), ("resource", RESOURCE), *OTHERS]
)
def test_the_items_are_a_context_that_can_be_read(kind, result):
    assert Context.parse(ResultParts(kind, result).items).to_json() is not None


def upper(value):
    """Change every text, as the most thorough of middlewares would."""
    if isinstance(value, str):
        return value.upper()
    if isinstance(value, dict):
        return {key: upper(one) for key, one in value.items()}
    return [upper(one) for one in value] if isinstance(value, list) else value


def test_every_text_of_a_result_is_among_the_items():
    shape = ResultParts("tool", TOOL)
    changed = [
        {**item, "type": item["type"], **{key: upper(item[key]) for key in item if key != "type"}}
        for item in shape.items
    ]
    made = shape.result(changed)

    assert made["content"][0]["text"] == "A"
    assert made["content"][3]["resource"] == {"uri": "X://2", "text": "B", "_meta": {"y": 1}}
    assert made["content"][3]["extra"] == "E"
    assert made["content"][6] == "NOT EVEN AN OBJECT"
    assert made["structuredContent"]["d"][2] == {"e": "F"}
    assert (made["_meta"], made["vendor"], made["isError"]) == ({"g": "H"}, "I", True)


@pytest.mark.parametrize("added", [{"type": "text", "text": "note"}, {"role": "user", "content": "note"}])
def test_what_a_middleware_adds_stands_in_front(added):
    block = {"type": "text", "text": "note"}
    tool, prompt, resource = (
        ResultParts("tool", TOOL),
        ResultParts("prompt", PROMPT),
        ResultParts("resource", RESOURCE),
    )

    assert tool.result([added, *tool.items])["content"][:2] == [block, TOOL["content"][0]]
    assert prompt.result([added, *prompt.items])["messages"][0] == {"role": "user", "content": block}
    made = resource.result([added, *resource.items])
    assert made["_meta"] == {"dev.sluice/notes": ["note"]}
    assert made["contents"] == RESOURCE["contents"]


def test_a_middleware_that_drops_items_gives_no_result():
    shape = ResultParts("tool", TOOL)

    with pytest.raises(InternalError):
        shape.result(shape.items[1:])


@pytest.mark.parametrize(
    ("kind", "result"), [("prompt", {"messages": [7]}), ("resource", {"contents": ["x"]})]
)
def test_a_result_of_another_form_is_withheld(kind, result):
    with pytest.raises(UpstreamUnavailableError):
        ResultParts(kind, result)


def test_any_value_makes_a_round_trip():
    for value in ({"a": [1]}, None, "x", [1]):
        assert free_value(free_items(value)) == value
