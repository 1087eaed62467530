"""Items are read into leaves and written back in the same shape, whatever they hold."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.content.context import Context
from app.core.content.handles import Handle
from app.core.content.leaves import REPORTED_PLACES, LeafPlace
from app.core.content.text_edits import Conceal, Edit
from app.core.errors import InvalidArgumentsError, TooLargeError
from app.core.strictjson import dumps, loads
from tests.sampling import examples

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
VALUES = st.recursive(
    SCALARS | WORDS, lambda v: st.lists(v, max_size=3) | st.dictionaries(WORDS, v, max_size=3)
)
JSON_TEXTS = VALUES.map(lambda v: json.dumps(v, ensure_ascii=True, indent=1))
STRINGS = WORDS | JSON_TEXTS | JSON_TEXTS.map(json.dumps)
EXTRA = st.dictionaries(st.sampled_from(["_meta", "annotations", "unknown_field"]), VALUES, max_size=2)


def _block(required: dict[str, Any]) -> Any:
    return st.builds(lambda fixed, extra: {**fixed, **extra}, st.fixed_dictionaries(required), EXTRA)


BLOCKS = st.one_of(
    _block({"type": st.just("text"), "text": STRINGS}),
    _block({"type": st.just("image"), "data": st.just("aGk="), "mimeType": st.just("image/png")}),
    _block({"type": st.just("audio"), "data": st.just("aGk="), "mimeType": st.just("audio/wav")}),
    _block({"type": st.just("resource_link"), "uri": WORDS, "name": WORDS, "title": STRINGS}),
    _block({"type": st.just("resource"), "resource": st.fixed_dictionaries({"uri": WORDS, "text": STRINGS})}),
    _block({"type": st.just("tool_use"), "id": WORDS, "name": WORDS, "input": VALUES | STRINGS}),
    _block(
        {"type": st.just("tool_result"), "toolUseId": WORDS, "content": STRINGS, "structuredContent": VALUES}
    ),
    _block({"type": st.just("thinking"), "thinking": WORDS, "signature": WORDS}),
    _block({"type": st.just("something_new"), "payload": VALUES}),
)
ITEMS = (
    BLOCKS
    | WORDS
    | st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"]), "content": STRINGS | BLOCKS}
    )
    | st.fixed_dictionaries(
        {"type": st.just("message"), "role": st.just("user"), "content": st.lists(BLOCKS | WORDS)}
    )
)


@settings(max_examples=examples(1_000, 200), deadline=None)
@given(st.lists(ITEMS, max_size=4))
def test_reading_and_writing_is_the_identity(items: list[Any]) -> None:
    body = dumps(items)
    context = Context.parse(loads(body))
    assert dumps(context.to_json()) == body


@settings(max_examples=examples(500, 100), deadline=None)
@given(st.lists(ITEMS, max_size=3))
def test_replacing_every_leaf_by_its_own_text_changes_no_value(items: list[Any]) -> None:
    context = Context.parse(items)
    edits = [
        Edit(leaf, 0, len(leaf.text), leaf.text)
        for leaf in context.leaves
        if leaf.place not in REPORTED_PLACES
    ]
    before, after = context.to_json(), context.edited(edits).to_json()
    assert _decoded(before) == _decoded(after)


def _decoded(value: Any) -> Any:
    """Follow JSON inside strings, so that only values and no spellings are compared."""
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return value
        return ("json", _decoded(inner)) if isinstance(inner, str | dict | list) else value
    if isinstance(value, dict):
        return {key: _decoded(child) for key, child in value.items()}
    return [_decoded(child) for child in value] if isinstance(value, list) else value


def test_integers_of_thirty_digits_key_order_and_absence_survive() -> None:
    body = b'[{"type":"tool_use","id":"1","name":"n","input":{"z":123456789012345678901234567890,"a":null,"b":1.5}}]'
    assert dumps(Context.parse(loads(body)).to_json()) == body


def test_json_inside_a_string_is_edited_in_place() -> None:
    text = '{ "name" : "J\\u00f6hn",\t"n":1.50, "deep": "{\\"x\\": \\"John\\"}" }'
    context = Context.parse([{"type": "text", "text": text}])
    leaves = {leaf.pointer: leaf for leaf in context.leaves}
    assert leaves["/0/text#/name"].text == "Jöhn"
    deep = leaves["/0/text#/deep#/x"]
    edited = context.edited([Edit(deep, 0, 4, 'a"b')]).to_json()[0]["text"]
    assert edited == text.replace("John", 'a\\\\\\"b')
    assert json.loads(json.loads(edited)["deep"])["x"] == 'a"b'


def test_blobs_of_text_are_decoded_and_encoded_again() -> None:
    item = {
        "type": "resource",
        "resource": {"uri": "f:///x", "mimeType": "application/json", "blob": "eyJhIjoiYiJ9"},
    }
    context = Context.parse([item])
    leaf = next(leaf for leaf in context.leaves if leaf.pointer.endswith("#/a"))
    assert context.edited([Edit(leaf, 0, 1, "c")]).to_json()[0]["resource"]["blob"] == "eyJhIjoiYyJ9"


def test_editing_leaves_the_caller_s_items_alone() -> None:
    items = [{"type": "text", "text": "John"}]
    context = Context.parse(items)
    context.edited([Edit(context.leaves[0], 0, 4, "X")]).to_json()
    assert items == [{"type": "text", "text": "John"}]


def test_text_is_put_in_front_of_a_single_item() -> None:
    assert Context.parse([{"type": "text", "text": "Hi"}]).prefixed("[now] ").to_json() == [
        {"type": "text", "text": "[now] Hi"}
    ]


def test_text_is_put_in_front_of_the_last_user_message_and_nowhere_else() -> None:
    items = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {
            "role": "user",
            "content": [{"type": "tool_result", "content": "r"}, {"type": "text", "text": "three"}],
        },
        {"role": "assistant", "content": "four"},
    ]
    done = Context.parse(items).prefixed("[now] ").to_json()
    assert done[2]["content"] == [
        {"type": "tool_result", "content": "r"},
        {"type": "text", "text": "[now] three"},
    ]
    assert [done[0], done[1], done[3]] == [items[0], items[1], items[3]]


def test_without_a_user_text_an_item_is_added() -> None:
    assert Context.parse([{"role": "assistant", "content": "a"}]).prefixed("x").to_json() == [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "a"},
    ]


def test_an_added_item_stays_when_texts_are_edited_afterwards() -> None:
    context = Context.parse([{"role": "assistant", "content": "a b"}]).prefixed("x")
    (leaf,) = context.leaves
    edited = context.edited([Edit(leaf, 2, 3, Conceal("PERSON"))])
    (conceal,) = edited.conceals
    assert edited.resolved({conceal: Handle("PERSON", 1)}, {}).to_json() == [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "a [PERSON_1]"},
    ]


def test_a_number_becomes_a_string_where_it_is_edited() -> None:
    items = [{"type": "tool_use", "input": {"card": 4111111111111111, "text": '{"card": 4111111111111111}'}}]
    context = Context.parse(items)
    numbers = [leaf for leaf in context.leaves if leaf.place is LeafPlace.NUMBER]
    edited = context.edited([Edit(leaf, 0, 16, Conceal("CARD")) for leaf in numbers])
    handles = {pending: Handle("CARD", number + 1) for number, pending in enumerate(edited.conceals)}
    done = edited.resolved(handles, {}).to_json()[0]["input"]
    assert done == {"card": "[CARD_1]", "text": '{"card": "[CARD_2]"}'}


@pytest.mark.parametrize(
    ("items", "pointer"),
    [
        ("no list", "/context"),
        ([1], "/context/0"),
        ([{"type": "text"}], "/context/0/text"),
        ([{"type": "text", "text": 5}], "/context/0/text"),
        ([{"role": 7, "content": "x"}], "/context/0/role"),
        ([{"role": "user", "content": 7}], "/context/0/content"),
        ([{"role": "user", "content": [{"type": "resource"}]}], "/context/0/content/0/resource"),
    ],
)
def test_a_fault_is_named_by_its_pointer(items: Any, pointer: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        Context.parse(items)
    assert caught.value.details["pointer"] == pointer


def test_unknown_types_pass_and_are_counted_or_refused() -> None:
    item = {"type": "hologram", "data": "John Doe"}
    context = Context.parse([item])
    assert context.to_json() == [item]
    assert context.skipped == {"hologram": 1}
    with pytest.raises(InvalidArgumentsError):
        Context.parse([item], strict=True)


def test_limits_on_blocks_and_depth_hold() -> None:
    with pytest.raises(TooLargeError):
        Context.parse(["x"] * 11, max_blocks=10)
    deep: Any = "x"
    for _ in range(70):
        deep = [deep]
    with pytest.raises(TooLargeError):
        Context.parse([{"type": "tool_use", "input": deep}])


def test_originals_are_told_in_the_order_of_the_text_whatever_the_order_of_the_edits() -> None:
    context = Context.parse(["and so Jane", "Ada and Bob"])
    first, second = context.leaves
    edits = [
        Edit(second, 8, 11, Conceal("PERSON")),
        Edit(second, 0, 3, Conceal("PERSON")),
        Edit(first, 7, 11, Conceal("PERSON")),
    ]
    assert [one.original.text for one in context.edited(edits).conceals] == ["Jane", "Ada", "Bob"]


@pytest.mark.parametrize(
    "text", ["", "Hello", '{"a": "b"}', " [1, 2] \n", '"x"', "}", "data:;base64,AAAA", "\ud800"]
)
@pytest.mark.parametrize(
    "around",
    [
        lambda block: block,
        lambda block: {"role": "user", "content": [block]},
        lambda block: {"role": "tool", "content": [block]},
        lambda block: {"type": "tool_result", "content": [block]},
    ],
)
def test_a_block_with_nothing_but_a_text_is_read_as_one_with_more(text, around):
    plain, more = (
        Context.parse([around({"type": "text", "text": text, **members})])
        for members in ({}, {"annotations": None})
    )
    shown = [
        (
            [
                (leaf.pointer, leaf.text, leaf.place, leaf.role, leaf.depth, leaf.offsets)
                for leaf in context.leaves
            ],
            [(value.path, value.text) for value in context.user_texts],
            *(context.blocks, context.skipped, context.unscanned),
        )
        for context in (plain, more)
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("members", [{}, {"annotations": None}])
def test_a_text_that_lies_too_deep_is_refused_whatever_is_beside_it(members):
    item = {"role": "user", "content": [{"type": "text", "text": "x", **members}]}
    assert Context.parse([item], max_depth=4).leaves
    with pytest.raises(TooLargeError):
        Context.parse([item], max_depth=3)
