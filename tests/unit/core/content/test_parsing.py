"""Nothing passes a reading unseen: every string is a leaf, or what holds it is counted."""

from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.leaves import REPORTED_PLACES, LeafPlace
from app.core.content.text_edits import Conceal, Edit

WHO = "jane.smith@example.com"


def _call(**members: Any) -> list[Any]:
    return [{"role": "assistant", "content": None, **members}]


def _result(content: Any) -> list[Any]:
    return [{"type": "tool_result", "tool_use_id": "t", "content": content}]


@pytest.mark.parametrize(
    "item",
    [
        {"type": []},
        {"type": {}},
        {"type": ["text"], "role": "user", "content": "x"},
        {"role": "user", "content": [{"type": {"a": 1}}]},
        {"type": "tool_result", "content": {"type": []}},
        {"type": "tool_result", "content": {"a": {"type": [], "id": "x"}}},
    ],
)
def test_a_type_that_is_no_string_is_an_unknown_type(item: dict[str, Any]) -> None:
    assert Context.parse([item]).to_json() == [item]


@pytest.mark.parametrize(
    "items",
    [
        _result({"data": {"email": WHO}}),
        _result({"data": WHO}),
        _result([{"id": WHO}]),
        _result({"users": [{"role": WHO, "type": "contact"}]}),
        _result({"source": {"type": "text", "media_type": "text/plain", "data": WHO}}),
        _call(tool_calls=[{"id": "c", "type": "function", "function": {"name": "n", "arguments": WHO}}]),
        _call(tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "n", "input": WHO}}]),
        _call(function_call={"name": "n", "arguments": WHO}),
    ],
)
def test_strings_of_tool_calls_and_tool_results_are_changed_whatever_their_member_is_called(
    items: list[Any],
) -> None:
    context = Context.parse(items)
    [leaf] = [leaf for leaf in context.leaves if leaf.text == WHO]
    assert leaf.place in {LeafPlace.TOOL_INPUT, LeafPlace.TOOL_RESULT}
    changed = context.edited([Edit(leaf, 0, len(WHO), Conceal("EMAIL"))])
    assert len(changed.conceals) == 1


@pytest.mark.parametrize(
    "items",
    [
        [{"type": "text", "text": "x", "data": WHO}],
        [{"type": "text", "text": "x", "id": {"of": WHO}}],
        [{"type": "resource", "resource": {"uri": "a:b", "text": {"of": WHO}}}],
        [{"type": "resource_link", "name": "x", "uri": {"of": WHO}}],
        _call(tool_calls={"of": WHO}),
        _call(tool_calls=[WHO]),
        _call(tool_calls=[{"id": "c", "note": WHO}]),
        _call(tool_calls=[{"id": "c", "function": {"name": "n", "note": WHO}}]),
        _call(function_call=WHO),
        [{"type": "text", "text": "x", "annotations": [{"title": WHO}]}],
        [{"role": "user", "content": "x", "name": WHO}],
        [{"type": "hologram", "caption": WHO}],
    ],
)
def test_strings_where_none_belong_are_read_and_changed(items: list[Any]) -> None:
    context = Context.parse(items)
    [leaf] = [leaf for leaf in context.leaves if leaf.text == WHO]
    assert leaf.place not in REPORTED_PLACES
    assert WHO not in str(context.edited([Edit(leaf, 0, len(WHO), "X")]).to_json())


@pytest.mark.parametrize(
    "items",
    [
        _result({"mimeType": WHO}),
        [{"type": "text", "text": "x", "id": WHO}],
        [{"type": "hologram", "deep": {"type": WHO}}],
        [{"type": "image", "data": "aGk=", "mimeType": WHO}],
        [{"type": "tool_use", "id": WHO, "name": "n", "input": {}}],
        [{"type": "tool_use", "id": "1", "name": WHO, "input": {}}],
        [{"role": "tool", "tool_call_id": WHO, "content": "x"}],
        [{"role": "tool", "name": WHO, "content": "x"}],
        [{"type": "thinking", "thinking": "x", "signature": WHO}],
        [{"type": "thinking", "thinking": "x", "signature": "c2lnbmVk", "_meta": {"who": WHO}}],
    ],
)
def test_strings_that_the_protocol_needs_are_reported(items: list[Any]) -> None:
    context = Context.parse(items)
    assert [leaf.place for leaf in context.leaves if leaf.text == WHO] == [LeafPlace.FIELD]


@pytest.mark.parametrize(
    ("word", "is_read"),
    [
        ("toolu_01A09q90qw90lq917835lq9", False),
        ("web_search_20250305", False),
        ("application/vnd.api+json", False),
        ("412-68-9937", True),
        ("id 7", True),
        ("card:4929123412341234", True),
        ("call_4929-1234-1234-1234", True),
    ],
)
def test_words_of_machines_are_read_only_if_a_long_number_can_hide_in_them(word: str, is_read: bool) -> None:
    context = Context.parse([{"type": "tool_use", "id": word, "name": "n", "input": {}}])
    assert [leaf.text for leaf in context.leaves] == ([word] if is_read else [])


@pytest.mark.parametrize(
    "holder",
    [
        {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        {"type": "base64", "data": "JVBERi0="},
        {"type": "image", "mimeType": "image/png", "data": "JVBERi0="},
    ],
)
def test_encoded_data_deep_in_a_tool_result_is_counted_and_left_alone(holder: dict[str, Any]) -> None:
    context = Context.parse(_result({"files": [holder]}))
    assert context.unscanned == {"blob": 1}
    assert "JVBERi0=" not in {leaf.text for leaf in context.leaves}


def test_ids_of_a_block_deep_in_a_tool_result_stay() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "n", "input": {"id": WHO}}
    texts = {leaf.text for leaf in Context.parse(_result({"steps": [block]})).leaves}
    assert "toolu_1" not in texts
    assert WHO in texts


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": WHO},
        {"type": "thinking", "thinking": WHO, "signature": ""},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": WHO}]},
    ],
)
def test_reasoning_that_nobody_signed_is_scanned_like_text(block: dict[str, Any]) -> None:
    context = Context.parse([{"role": "assistant", "content": [block]}])
    assert [leaf.place for leaf in context.leaves if leaf.text == WHO] == [LeafPlace.TEXT]
    assert not context.unscanned


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": WHO, "signature": "c2ln"},
        {"type": "thinking", "thinking": "x", "signature": "c2ln", "more": {"deep": [WHO]}},
        {"type": "reasoning", "summary": [WHO], "encrypted_content": "c2ln"},
    ],
)
def test_signed_reasoning_is_read_and_counted_and_never_touched(block: dict[str, Any]) -> None:
    context = Context.parse([{"role": "assistant", "content": [block]}])
    assert [leaf.place for leaf in context.leaves if leaf.text == WHO] == [LeafPlace.FIELD]
    assert {leaf.place for leaf in context.leaves} == {LeafPlace.FIELD}
    assert context.unscanned == {"reasoning" if "summary" in block else "signed_reasoning": 1}
    assert context.unseen == ({"reasoning": 1} if "summary" in block else {})


def test_encrypted_reasoning_is_counted() -> None:
    context = Context.parse([{"type": "redacted_thinking", "data": "c2ln"}])
    assert not context.leaves and context.unseen == {"reasoning": 1}


def test_arguments_of_a_call_know_the_tool_that_they_are_for() -> None:
    calls = [
        {"id": "1", "type": "function", "function": {"name": "mail", "arguments": '{"to": "Jane Smith"}'}},
        {"id": "2", "type": "custom", "custom": {"name": "shell", "input": "Jane Smith"}},
        {"id": "3", "type": "function", "function": {"name": 7, "arguments": '{"to": "Jane Smith"}'}},
    ]
    leaves = Context.parse(_call(tool_calls=calls)).leaves
    tools = [leaf.tool for leaf in leaves if leaf.text == "Jane Smith"]
    assert tools == ["mail", "shell", None]
