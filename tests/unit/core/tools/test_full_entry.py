"""What the second stage of a tool says: an operator's words, else the server's own, else the short ones."""

from typing import Any

import pytest

from app.core.tools.disclosure import ToolDescription, full_entry, short_form

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def entry(described: ToolDescription | None = None, **members: Any) -> dict[str, Any]:
    return full_entry({"name": "get", "inputSchema": SCHEMA, **members}, "s__get", described)


@pytest.mark.parametrize(
    ("own", "described", "expected"),
    [
        ("First. Second.", None, "First. Second."),
        ("First. Second.", ToolDescription(description="Ours."), "Ours."),
        ("First. Second.", ToolDescription(short="Short"), "First. Second."),
        ("  ", ToolDescription(short="Short"), "Short"),
        ("  ", None, "Get"),
        (7, None, "Get"),
    ],
)
def test_whose_words_describe_a_tool(own: Any, described: ToolDescription | None, expected: str) -> None:
    assert entry(described, description=own)["description"] == expected


def test_only_what_a_server_says_is_passed_on() -> None:
    made = entry(outputSchema={}, annotations={"readOnlyHint": True}, icons=[])
    assert set(made) == {"name", "description", "inputSchema", "outputSchema", "annotations", "examples"}
    assert made["name"] == "s__get"
    assert full_entry({"name": "get"}, "get", None)["inputSchema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("schema", "guided"),
    [
        (SCHEMA, set()),
        ({**SCHEMA, "additionalProperties": False}, {"unknown_argument"}),
        ({**SCHEMA, "additionalProperties": {}}, set()),
        ({**SCHEMA, "required": ["a"]}, {"missing_argument"}),
        ({"properties": {"a": {"maximum": 3}}}, {"invalid_argument"}),
        (True, set()),
    ],
)
def test_what_errors_mean_is_derived_from_the_schema_alone(schema: Any, guided: set[str]) -> None:
    assert set(entry(inputSchema=schema).get("error_guidance", {})) == guided


def test_what_an_operator_says_takes_the_place_of_what_is_derived_even_where_it_is_empty() -> None:
    told = ToolDescription(examples=[], usage_guidance={}, error_guidance={})
    made = entry(told, inputSchema={**SCHEMA, "required": ["a"]})
    assert made["examples"] == []
    assert "usage_guidance" not in made
    assert "error_guidance" not in made
    said = ToolDescription(usage_guidance={"a": 1}, error_guidance={"b": 2})
    made = entry(said)
    assert (made["usage_guidance"], made["error_guidance"]) == ({"a": 1}, {"b": 2})


def test_an_example_says_what_it_gives() -> None:
    def described(schema: Any) -> list[str]:
        return [one["description"] for one in entry(inputSchema=schema)["examples"]]

    assert described({**SCHEMA, "required": ["a"]}) == ["With the required arguments"]
    assert described({"type": "object", "properties": {}}) == ["Without arguments"]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"description": "Reads. Slowly."}, "Reads."),
        ({"description": "", "title": "The title"}, "The title"),
        ({"title": 7, "annotations": {"title": "Annotated"}}, "Annotated"),
        ({"title": "First", "annotations": {"title": "Second"}}, "First"),
        ({"annotations": "none"}, "Get it"),
    ],
)
def test_the_first_stage_takes_the_first_words_that_say_anything(
    members: dict[str, Any], expected: str
) -> None:
    made = short_form({"name": "get_it", **members}, None)
    assert made["description"] == expected
    assert ("title" in made) is ("title" in members)
