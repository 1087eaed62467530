"""How many blocks and levels are read, which digits identify somebody, and where text may be put."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.text_edits import Edit
from app.core.errors import TooLargeError


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "1", "content": content}


@pytest.mark.parametrize(
    ("items", "blocks"),
    [
        (["a", "b", "c"], 3),
        ([text("a"), "b"], 2),
        ([{"role": "user", "content": [text("a"), text("b")]}], 3),
        ([{"role": "user", "content": "a"}], 1),
        ([{"type": "tool_result", "content": [text("a"), "bare"]}], 3),
        ([{**text("a"), "more": [result("b"), result([text("c")])]}], 4),
        ([{**text("a"), "more": {"type": "resource", "resource": {"uri": "a:b", "text": "c"}}}], 2),
        ([{**text("a"), "more": [text("b"), text("c")]}], 3),
        ([{**text("a"), "more": [{"deep": "b"}, {"deep": "c"}]}], 1),
    ],
)
def test_as_many_blocks_are_read_as_there_may_be_and_not_one_more(items: list[Any], blocks: int) -> None:
    assert Context.parse(items, max_blocks=blocks).blocks == blocks
    with pytest.raises(TooLargeError) as refused:
        Context.parse(items, max_blocks=blocks - 1)
    assert refused.value.details == {"limit": "max_blocks", "value": blocks - 1}


def nested(depth: int, wrapped: Callable[[Any], Any] = lambda value: [value]) -> list[Any]:
    value: Any = "x"
    for _ in range(depth):
        value = wrapped(value)
    return [{"type": "tool_use", "id": "1", "name": "t", "input": value}]


@pytest.mark.parametrize("wrapped", [lambda value: [value], lambda value: {"a": value}])
def test_as_many_levels_are_read_as_there_may_be_and_not_one_more(wrapped: Callable[[Any], Any]) -> None:
    # The item and its member are the first two steps of the path.
    Context.parse(nested(9, wrapped), max_depth=10)
    with pytest.raises(TooLargeError) as refused:
        Context.parse(nested(10, wrapped), max_depth=10)
    assert refused.value.details == {"limit": "max_depth", "value": 10}


@pytest.mark.parametrize("content", [["a", "b"], [text("a")], [text("a"), "bare"]])
def test_blocks_of_a_message_are_read_three_levels_down_and_not_where_two_are_allowed(
    content: list[Any],
) -> None:
    message = {"role": "user", "content": content}
    assert len(Context.parse([message], max_depth=4).leaves) == len(content)
    with pytest.raises(TooLargeError) as refused:
        Context.parse([message], max_depth=2)
    assert refused.value.details == {"limit": "max_depth", "value": 2}


@pytest.mark.parametrize(
    ("number", "is_read"),
    [(1234567, True), (123456, False), (-123456, True), (True, False), (1234567.5, False)],
)
def test_a_number_of_seven_characters_may_identify_somebody(number: float, is_read: bool) -> None:
    items = [{"type": "tool_use", "id": "1", "name": "t", "input": {"n": number}}]
    numbers = [leaf.text for leaf in Context.parse(items).leaves if leaf.place == "number"]
    assert numbers == ([str(number)] if is_read else [])


@pytest.mark.parametrize(("number", "is_read"), [(12, True), (7, False)])
@pytest.mark.parametrize("value", [{"cvv": 0}, {"columns": ["cvv"], "rows": [[0]]}, '{"cvv": 0}'])
def test_a_number_of_two_characters_is_read_where_its_name_tells(
    value: Any, number: int, is_read: bool
) -> None:
    item = {"type": "tool_use", "id": "1", "name": "t", "input": value}
    written = json.loads(json.dumps(item).replace("0", str(number)))
    numbers = [leaf.text for leaf in Context.parse([written]).leaves if leaf.place == "number"]
    assert numbers == ([str(number)] if is_read else [])


@pytest.mark.parametrize(("written", "is_read"), [("1234567", True), ("123456", False), ("123.456", True)])
def test_numbers_inside_json_texts_count_by_their_characters(written: str, is_read: bool) -> None:
    leaves = Context.parse([f'{{"n": {written}}}']).leaves
    assert [(leaf.text, str(leaf.place)) for leaf in leaves] == ([(written, "number")] if is_read else [])


def prefixed(*items: Any, after: bool = False) -> list[Any]:
    return Context.parse(list(items)).prefixed("P\n", after=after).to_json()


def said(role: str, *words: str) -> dict[str, Any]:
    return {"role": role, "content": [text(word) for word in words]}


def test_text_goes_to_the_first_text_of_the_last_message_of_the_user() -> None:
    first, last = said("user", "a", "b"), said("user", "c", "d")
    made = prefixed(first, said("assistant", "x"), last, said("assistant", "y"))
    assert made[2] == said("user", "P\nc", "d")
    assert made[0] == first
    behind = prefixed(first, last, after=True)
    assert behind[1] == said("user", "cP\n", "d")


def test_a_message_of_the_user_without_text_is_passed_over() -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "content": [text("r")]}]}
    assert prefixed(said("user", "a"), result)[0] == said("user", "P\na")


def test_without_messages_the_first_text_takes_it_and_beside_messages_bare_texts_do_not() -> None:
    assert prefixed(text("a"), "b") == [text("P\na"), "b"]
    assert prefixed("a", said("assistant", "x")) == [
        {"role": "user", "content": "P"},
        "a",
        said("assistant", "x"),
    ]
    assert prefixed({"type": "image", "data": "AA==", "mimeType": "image/png"})[0] == text("P")


def test_edits_in_one_text_are_made_from_the_left_whatever_their_order_and_may_touch() -> None:
    context = Context.parse(["abcdef"])
    leaf = context.leaves[0]
    made = context.edited([Edit(leaf, 4, 6, "3"), Edit(leaf, 0, 2, "1"), Edit(leaf, 2, 4, "2")])
    assert made.to_json() == ["123"]
    assert context.to_json() == ["abcdef"]
    overlapping = context.edited([Edit(leaf, 0, 3, "1"), Edit(leaf, 2, 4, "2")])
    with pytest.raises(ValueError, match="overlap"):
        overlapping.to_json()


@pytest.mark.parametrize(
    ("mime", "is_read"),
    [
        ("text/plain", True),
        ("application/json", True),
        ("application/ld+json", True),
        ("image/png", False),
        ("application/pdf", False),
        ("application/octet-stream", True),
        (None, True),
    ],
)
def test_a_blob_is_read_where_its_type_says_that_it_is_text(mime: str | None, is_read: bool) -> None:
    blob = base64.b64encode(b"Jane Smith").decode()
    inner = {"uri": "x://1", "blob": blob, **({"mimeType": mime} if mime else {})}
    context = Context.parse([{"type": "resource", "resource": inner}])
    assert ("Jane Smith" in [leaf.text for leaf in context.leaves]) is is_read
    assert context.unscanned.get("blob", 0) == (0 if is_read else 1)


@pytest.mark.parametrize("charset", ["windows-1251", "koi8-r", "utf-8"])
def test_a_data_url_says_in_which_characters_its_text_is_written(charset: str) -> None:
    words = "Напишите Анне Петровой"
    code = base64.b64encode(words.encode(charset)).decode()
    item = {"type": "input_file", "file_data": f"data:text/plain;charset={charset};base64,{code}"}
    context = Context.parse([item])
    (leaf,) = [leaf for leaf in context.leaves if leaf.text == words]
    (changed,) = context.edited([Edit(leaf, 9, len(words), "[PERSON_1]")]).to_json()
    sent = changed["file_data"].partition(",")
    assert sent[0] == f"data:text/plain;charset={charset};base64"
    assert base64.b64decode(sent[2]).decode(charset) == "Напишите [PERSON_1]"
