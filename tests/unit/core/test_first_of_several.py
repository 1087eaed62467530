"""Where several names, texts or rules would do: which of them is taken, and what is kept apart."""

from typing import Any

import pytest

from app.core.catalog.concerns import ConcernDefinition, ConcernMapping, ConcernTable
from app.core.catalog.primitives import PrimitiveKind
from app.core.content.context import Context
from app.core.contracts.policy import Policy, ToolHook
from app.core.redaction.member_names import NamedTexts
from app.middlewares.hallucination_detection.answers import answer_of
from app.middlewares.pii_redaction.adjacency import adjacent_runs


def named(entry: dict[str, str]) -> str:
    item = {"type": "tool_use", "id": "1", "name": "run", "input": {"env": [entry]}}
    leaves = [leaf for leaf in Context.parse([item]).leaves if leaf.place == "tool_input"]
    return next(text for text in NamedTexts(leaves).texts if text.endswith('"one"'))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"name": "DB_PASSWORD", "key": "main", "value": "one"}, '"DB_PASSWORD": "one"'),
        ({"key": "main", "name": "DB_PASSWORD", "value": "one"}, '"DB_PASSWORD": "one"'),
        ({"key": "main", "Name": "DB_PASSWORD", "value": "one"}, '"main": "one"'),
        ({"Key": "main", "Name": "DB_PASSWORD", "Value": "one"}, '"DB_PASSWORD": "one"'),
        ({"Key": "main", "Value": "one"}, '"main": "one"'),
        ({"title": "main", "value": "one"}, '"value": "one"'),
    ],
)
def test_of_two_names_beside_a_value_the_first_of_the_usual_order_is_its_name(
    entry: dict[str, str], text: str
) -> None:
    assert named(entry) == text


def result(tool: str, *texts: str) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "toolUseId": tool,
        "content": [{"type": "text", "text": text} for text in texts],
    }


def runs(*items: Any) -> list[list[str]]:
    leaves = Context.parse(list(items)).leaves
    return [[leaves[place].text for place in run] for run in adjacent_runs(leaves)]


def test_results_of_two_tools_are_not_read_on() -> None:
    assert runs(result("1", "a 123-"), result("2", "45-6789")) == []
    assert runs(result("1", "a", "123-"), result("2", "45-", "6789")) == [["a", "123-"], ["45-", "6789"]]


@pytest.mark.parametrize(
    ("left", "right", "reads_on"),
    [
        ("It ends.", "Then more", False),
        ('It "ends."', "Then more", False),
        ("It ends. ", "Then more", False),
        ("It ends.", "then more", True),
        ("Version 1.", "5 is out", True),
        ("It goes", "On", True),
        ("a line\n", "more", False),
        ("a line", "\nmore", False),
        ("\u7d42\u308f\u308a\u3002", "Next", False),
    ],
)
def test_the_end_of_a_sentence_or_a_line_ends_a_run(left: str, right: str, reads_on: bool) -> None:
    assert runs(left, right) == ([[left, right]] if reads_on else [])


def test_a_text_of_one_role_is_not_read_on_by_one_of_another_nor_by_json() -> None:
    assert runs("a 123-", {"role": "user", "content": "45-6789"}) == []
    assert runs("a 123-", '{"a": "45"}') == []
    assert runs('{"a": "45"}', "a 123-") == []


def structured(tool: str, value: Any) -> dict[str, Any]:
    return {"type": "tool_result", "toolUseId": tool, "content": [], "structuredContent": value}


def test_what_two_tools_gave_are_two_sources_of_an_answer() -> None:
    items = [
        structured("1", {"wind": 14}),
        structured("2", {"rain": 3}),
        {"role": "user", "content": '{"a": "b c"}'},
        {"role": "assistant", "content": "It rains."},
    ]
    answer = answer_of(Context.parse(items))
    assert answer is not None
    written = [(one.text, one.item) for one in answer.sources if one.leaf is None]
    assert written == [("wind: 14.", 0), ("rain: 3.", 1), ("a: b c.", 2)]


def test_two_json_texts_in_one_item_are_both_written_out_and_each_once() -> None:
    blocks = [
        {"type": "text", "text": text} for text in ('{"wind": 14, "b": "x y"}', '{"rain": 3, "d": "z"}')
    ]
    items = [{"role": "user", "content": blocks}, {"role": "assistant", "content": "It rains."}]
    answer = answer_of(Context.parse(items))
    assert answer is not None
    assert [one.text for one in answer.sources if one.leaf is None] == ["wind: 14.\nb: x y.\nrain: 3.\nd: z."]


def test_what_a_tool_gave_as_text_and_as_data_are_both_written_out() -> None:
    texts = [{"type": "text", "text": '{"rain": 3, "d": "z"}'}]
    items = [
        {**structured("1", {"wind": 14}), "content": texts},
        {"role": "assistant", "content": "It rains."},
    ]
    answer = answer_of(Context.parse(items))
    assert answer is not None
    assert [one.text for one in answer.sources if one.leaf is None] == ["wind: 14.\nrain: 3.\nd: z."]


@pytest.mark.parametrize(
    ("items", "item"),
    [
        ([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}, "c"], 1),
        ([{"role": "model", "content": "a"}, {"role": "user", "content": "b"}], 0),
        (["a", "b", {"type": "image", "data": "AA==", "mimeType": "image/png"}], 1),
        ([{"role": "user", "content": "a"}], None),
        ([{"role": "user", "content": "a"}, "b"], None),
    ],
)
def test_the_answer_is_the_last_message_of_a_model_or_without_messages_the_last_text(
    items: list[Any], item: int | None
) -> None:
    answer = answer_of(Context.parse(items))
    assert (answer.item if answer else None) == item


def test_the_first_passage_that_names_a_primitive_applies_whole() -> None:
    first, second, third = (
        ToolHook(kinds=["prompt"]),
        ToolHook(names=["crm__*", "mail__x"], servers=["crm"], results=[]),
        ToolHook(servers=None, names=["*"]),
    )
    policy = Policy(passages=[first, second, third])
    assert policy.tool_hook_of(PrimitiveKind.TOOL, "crm__find", "crm") is second
    assert policy.tool_hook_of(PrimitiveKind.TOOL, "crm__find", "mail") is third
    assert policy.tool_hook_of(PrimitiveKind.TOOL, "mail__x", "crm") is second
    assert policy.tool_hook_of(PrimitiveKind.PROMPT, "crm__find", "crm") is first
    assert Policy(passages=[first, second]).tool_hook_of(PrimitiveKind.TOOL, "x", "crm") is None


def mapping(name: str, value: str) -> ConcernMapping:
    return ConcernMapping(kind=PrimitiveKind.TOOL, name=name, concerns={"cost": value})


@pytest.mark.parametrize("backwards", [False, True])
def test_of_patterns_of_equal_length_the_first_in_alphabetical_order_applies(backwards: bool) -> None:
    cost = ConcernDefinition(name="cost", description="d", values=("low", "high"), default="low")
    rows = [mapping("*_b_*", "high"), mapping("*a_b*", "low"), mapping("*", "high")]
    table = ConcernTable.build([cost], rows[::-1] if backwards else rows)
    assert table.mapping_of(PrimitiveKind.TOOL, "a_b_c") == {"cost": "high"}
    assert table.mapping_of(PrimitiveKind.TOOL, "xa_b") == {"cost": "low"}
    assert table.mapping_of(PrimitiveKind.PROMPT, "a_b_c") == {}
