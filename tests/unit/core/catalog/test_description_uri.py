"""The address of the resource that describes tools, and the bodies that the proposal words."""

import pytest

from app.core.catalog.description_uri import (
    MAX_SELECTED,
    MISSING_SELECTION,
    description_required,
    is_descriptions_uri,
    not_found,
    selected_tools,
)
from app.core.errors import InvalidArgumentsError

URI = "resource:///tool_descriptions"


@pytest.mark.parametrize("uri", [URI, URI + "?tools=a", URI + "?", URI + "?other=1"])
def test_the_resource_is_known_with_and_without_a_selection(uri):
    assert is_descriptions_uri(uri)


@pytest.mark.parametrize(
    "uri", ["", URI + "/a", URI + "s", "resource://host/tool_descriptions", "file:///x", URI[:-1]]
)
def test_other_resources_are_not_it(uri):
    assert not is_descriptions_uri(uri)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("?tools=get_data", ("get_data",)),
        ("?tools=TOOL1,TOOL2,TOOL3", ("TOOL1", "TOOL2", "TOOL3")),
        ("?tools=b,a,b,c,a", ("b", "a", "c")),
        ("?tools=,a,,b,", ("a", "b")),
        ("?tools=a%2Cb,c", ("a,b", "c")),
        ("?tools=a%20b", ("a b",)),
        ("?tools=a+b", ("a+b",)),
        ("?tools=%D0%BF", ("п",)),
        ("?tools=a%2", ("a%2",)),
        ("?tools=a&tools=b,a", ("a", "b")),
        ("?x=1&tools=a&y=2", ("a",)),
        ("?tools=a#tools=b", ("a",)),
        ("?tools=a=b", ("a=b",)),
        ("?%74ools=a", ("a",)),
        ("?tools=%3F%26%23", ("?&#",)),
        ("", ()),
        ("?", ()),
        ("?tools", ()),
        ("?tools=", ()),
        ("?tools=,", ()),
        ("?tool=a", ()),
        ("?TOOLS=a", ()),
        ("#?tools=a", ()),
    ],
)
def test_names_are_split_at_commas_and_decoded_after_that(query, names):
    assert selected_tools(URI + query) == names


def test_too_many_names_are_refused_and_as_many_as_allowed_are_not():
    allowed = [f"t{n}" for n in range(MAX_SELECTED)]

    assert len(selected_tools(f"{URI}?tools={','.join(allowed)}")) == MAX_SELECTED
    for uri in (f"{URI}?tools={','.join([*allowed, 'one'])}", f"{URI}?tools={'x' * 20_000}"):
        with pytest.raises(InvalidArgumentsError) as refusal:
            selected_tools(uri)
        assert refusal.value.details["pointer"] == "/uri"


def test_a_read_without_a_selection_has_the_proposals_body():
    assert MISSING_SELECTION == {
        "error": {
            "code": "MISSING_TOOL_SELECTION",
            "message": "You must specify one or more tool names in the 'tools' parameter.",
            "examples": [
                "resource:///tool_descriptions?tools=tool_name",
                "resource:///tool_descriptions?tools=tool1,tool2",
            ],
        }
    }


def test_a_call_without_a_read_has_the_proposals_body():
    assert description_required("tool_name") == {
        "error": {
            "code": "TOOL_DESCRIPTION_REQUIRED",
            "message": "Tool 'tool_name' requires fetching its description before use.",
            "resource_uri": "resource:///tool_descriptions?tools=tool_name",
        }
    }


@pytest.mark.parametrize("name", ["a,b", "a b", "a&tools=b", "a#b", "п/q", "100%"])
def test_the_address_in_the_refusal_selects_exactly_that_tool(name):
    uri = description_required(name)["error"]["resource_uri"]

    assert uri.isascii()
    assert selected_tools(uri) == (name,)


def test_an_unknown_tool_has_the_proposals_entry():
    assert not_found(["unknown_tool"], ["tool1", "tool2", "tool3"]) == {
        "unknown_tool": {
            "error": "Tool 'unknown_tool' not found",
            "available_tools": ["tool1", "tool2", "tool3"],
        }
    }


def test_many_unknown_tools_do_not_make_an_endless_answer():
    visible = [f"tool{n}" for n in range(1000)]

    one = not_found(["x"], visible)
    many = not_found([f"x{n}" for n in range(MAX_SELECTED)], visible)

    assert len(one["x"]["available_tools"]) == 100
    assert sum(len(entry["available_tools"]) for entry in many.values()) <= 2000


@pytest.mark.parametrize(("asked", "told"), [(1, 100), (20, 100), (21, 95), (200, 10)])
def test_the_more_names_are_unknown_the_fewer_are_told_with_each(asked: int, told: int) -> None:
    entries = not_found([f"u{number}" for number in range(asked)], (f"t{n}" for n in range(500)))
    assert {len(one["available_tools"]) for one in entries.values()} == {told}


def test_two_hundred_names_may_be_selected_and_no_more() -> None:
    names = [f"t{number}" for number in range(200)]
    assert selected_tools(f"{URI}?tools={','.join([*names, *names])}") == tuple(names)
    with pytest.raises(InvalidArgumentsError):
        selected_tools(f"{URI}?tools={','.join([*names, 'more'])}")


def test_a_uri_has_at_most_16384_characters() -> None:
    start = f"{URI}?x="
    assert selected_tools(start + "a" * (16_384 - len(start))) == ()
    with pytest.raises(InvalidArgumentsError):
        selected_tools(start + "a" * (16_385 - len(start)))
