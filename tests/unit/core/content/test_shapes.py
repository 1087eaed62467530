"""Every row of the tables of shapes is read as what it is, and comes back as it was."""

import random
from typing import Any

import pytest

from app.core.content.context import Context
from app.core.content.leaves import REPORTED_PLACES, LeafPlace
from app.core.content.text_edits import Edit
from app.core.errors import InvalidArgumentsError, UnscannableContentError
from tests.context_shapes_parts import SHAPES
from tests.planting import Planter, decoded_everywhere

UNSEEN = {
    "openai: chat image": {"image": 1},
    "openai: chat film": {"video": 1},
    "openai: chat call with a picture": {"blob": 1},
    "openai: chat sound": {"audio": 1},
    "openai: chat answer": {"audio": 1},
    "openai: input_image": {"image": 1},
    "openai: input_file": {"file": 1},
    "openai: computer_call_output": {"image": 1},
    "openai: reasoning encrypted": {"reasoning": 1},
    "openai: compaction": {"reasoning": 1},
    "openai: image_generation_call": {"image": 1},
    "openai: code_interpreter_call": {"image": 1},
    "anthropic: text citations": {"encrypted": 1},
    "anthropic: image": {"image": 1},
    "anthropic: image url": {"image": 1},
    "anthropic: document pdf": {"document": 1},
    "anthropic: thinking signed": {"signed_reasoning": 1},
    "anthropic: redacted_thinking": {"reasoning": 1},
    "anthropic: web_search": {"encrypted": 1},
    "anthropic: container_upload": {"file": 1},
    "bedrock: image": {"image": 1},
    "bedrock: document s3": {"document": 1},
    "bedrock: video": {"video": 1},
    "bedrock: toolResult image": {"image": 1},
    "bedrock: reasoning signed": {"signed_reasoning": 1},
    "bedrock: reasoning sealed": {"reasoning": 1},
    "gemini: thought signed": {"signed_reasoning": 1},
    "gemini: call signed": {"signed_reasoning": 1},
    "gemini: inlineData": {"blob": 1},
    "gemini: fileData": {"file": 1},
    "mcp: image": {"image": 1},
    "mcp: blob picture": {"blob": 1},
    "mcp: picture in data": {"blob": 1},
    "mcp: picture in text": {"blob": 1},
    "unknown: picture": {"blob": 1},
}
"""What of a row nobody can scan or change."""


def planted(name: str) -> tuple[Planter, Any]:
    planter = Planter(random.Random(name))
    return planter, SHAPES[name](planter)


def changed(context: Context, values: list[str]) -> Context:
    return context.edited(
        Edit(leaf, leaf.text.index(value), leaf.text.index(value) + len(value), "X")
        for leaf in context.leaves
        if leaf.place not in REPORTED_PLACES
        for value in values
        if value in leaf.text
    )


@pytest.mark.parametrize("name", SHAPES)
def test_every_text_of_a_row_can_be_changed_and_nothing_else_changes(name: str) -> None:
    planter, item = planted(name)
    context = Context.parse([item])
    made = changed(context, planter.values).to_json()
    seen = decoded_everywhere(made)
    assert [value for value in planter.values if value in seen] == []
    assert all(value in seen for value in planter.kept)
    assert len(context.to_json()) == 1 and context.to_json() == [item]
    back = made
    for value in planter.values:
        assert value in decoded_everywhere(item), "the control: the value was there"
    assert decoded_everywhere(back).count("X") >= len(planter.values)


@pytest.mark.parametrize("name", SHAPES)
def test_what_may_not_change_is_read_and_what_cannot_be_read_is_counted(name: str) -> None:
    planter, item = planted(name)
    context = Context.parse([item])
    reported = [leaf.text for leaf in context.leaves if leaf.place in REPORTED_PLACES]
    assert all(any(value in text for text in reported) for value in planter.kept)
    assert dict(context.unscanned) == UNSEEN.get(name, {})
    assert bool(context.skipped) is (name.startswith("unknown: ") and name != "unknown: member of a message")


@pytest.mark.parametrize("name", SHAPES)
def test_strict_refuses_what_no_table_knows_and_what_nobody_can_scan(name: str) -> None:
    _, item = planted(name)
    context = Context.parse([item])
    if context.skipped:
        with pytest.raises(InvalidArgumentsError):
            Context.parse([item], strict=True)
    elif context.unseen:
        with pytest.raises(UnscannableContentError) as caught:
            Context.parse([item], strict=True)
        assert caught.value.details == {"unscanned": context.unseen}
    else:
        assert Context.parse([item], strict=True).leaves


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("openai: function_call", LeafPlace.TOOL_INPUT),
        ("openai: shell_call", LeafPlace.TOOL_INPUT),
        ("openai: chat calls", LeafPlace.TOOL_INPUT),
        ("anthropic: server_tool_use", LeafPlace.TOOL_INPUT),
        ("bedrock: toolUse", LeafPlace.TOOL_INPUT),
        ("gemini: functionCall", LeafPlace.TOOL_INPUT),
        ("unknown: call", LeafPlace.TOOL_INPUT),
        ("openai: function_call_output", LeafPlace.TOOL_RESULT),
        ("anthropic: bash", LeafPlace.TOOL_RESULT),
        ("bedrock: toolResult", LeafPlace.TOOL_RESULT),
        ("gemini: functionResponse", LeafPlace.STRUCTURED),
        ("unknown: result", LeafPlace.TOOL_RESULT),
        ("anthropic: document text", LeafPlace.RESOURCE),
        ("bedrock: searchResult", LeafPlace.RESOURCE),
        ("openai: mcp_list_tools", LeafPlace.DEFINITION),
        ("unknown: type", LeafPlace.TEXT),
    ],
)
def test_calls_results_and_documents_are_told_apart(name: str, place: LeafPlace) -> None:
    planter, item = planted(name)
    places = {
        leaf.place for leaf in Context.parse([item]).leaves if any(v in leaf.text for v in planter.values)
    }
    assert place in places
    assert LeafPlace.TEXT not in places - {place} or name == "openai: chat calls"


@pytest.mark.parametrize("name", ["openai: input_text", "bedrock: text", "gemini: text", "mcp: bare"])
def test_text_is_put_in_front_of_the_users_text_in_every_form(name: str) -> None:
    _, item = planted(name)
    made = Context.parse([item]).prefixed("[now] ").to_json()
    assert len(made) == 1
    assert f"[now] {Context.parse([item]).leaves[0].text}" in decoded_everywhere(made)
