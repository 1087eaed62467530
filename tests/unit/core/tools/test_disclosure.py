"""The two stages in which a tool is shown."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from app.core.access import Role
from app.core.catalog.primitives import Catalog, Primitive, PrimitiveKind
from app.core.contracts.policy import DisclosurePolicy, Policy
from app.core.tools.disclosure import ToolDescription, any_staged, full_entry, short_form, staged_for
from tests.factories import caller_of

SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query to filter results"},
        "limit": {
            "type": "integer",
            "description": "Maximum number of results (default: 50, max: 500)",
            "default": 50,
        },
        "sort": {"type": "string", "enum": ["asc", "desc"], "description": "Sort order for results"},
    },
    "required": [],
}
GET_DATA = {
    "name": "get_data",
    "description": "Retrieves data from the system with comprehensive filtering, sorting, and pagination capabilities.",
    "inputSchema": SCHEMA,
}
EXAMPLES = [
    {"description": "Basic query", "input": {"query": "search term", "limit": 10}},
    {"description": "Sorted results", "input": {"query": "search term", "sort": "desc"}},
]


def test_the_first_stage_is_the_proposals_example():
    described = ToolDescription(short="Retrieves data from the system with filtering and pagination options.")

    assert short_form(GET_DATA, described) == {
        "name": "get_data",
        "description": "Retrieves data from the system with filtering and pagination options.",
        "inputSchema": {"type": "object", "additionalProperties": True},
    }


def test_the_second_stage_is_the_proposals_example():
    described = ToolDescription.model_validate({"examples": EXAMPLES, "error_guidance": {}})

    entry = full_entry(GET_DATA, "get_data", described)

    assert entry == {**GET_DATA, "examples": EXAMPLES}
    assert list(entry) == ["name", "description", "inputSchema", "examples"]


def test_the_first_stage_keeps_what_chooses_a_tool_and_drops_what_calls_it():
    definition = {
        **GET_DATA,
        "title": "Get data",
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://example.com/i.png"}],
        "execution": {"taskSupport": "optional"},
        "outputSchema": {"type": "object"},
        "_meta": {"io.modelcontextprotocol/groups": ["data"]},
        "unheard": {"of": 1},
    }

    short = short_form(definition, None)

    assert set(short) == {
        *("name", "title", "description", "inputSchema", "annotations", "icons", "execution", "_meta")
    }
    assert short["_meta"] == definition["_meta"]
    assert short["inputSchema"] == {"type": "object", "additionalProperties": True}


def test_the_short_forms_of_two_tools_share_no_schema_that_somebody_could_change():
    short_form(GET_DATA, None)["inputSchema"]["properties"] = {}

    assert "properties" not in short_form(GET_DATA, None)["inputSchema"]


def test_the_second_stage_has_the_whole_definition_and_what_the_operator_wrote():
    definition = {**GET_DATA, "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    described = ToolDescription(
        description="Everything about it.",
        usage_guidance={"paging": "Ask for the next page with the cursor."},
        error_guidance={"429": "Wait a moment."},
    )

    entry = full_entry(definition, "data__get_data", described)

    assert entry["name"] == "data__get_data"
    assert entry["description"] == "Everything about it."
    assert entry["inputSchema"] == SCHEMA
    assert entry["outputSchema"] == {"type": "object"}
    assert entry["annotations"] == {"readOnlyHint": True}
    assert entry["usage_guidance"] == {"paging": "Ask for the next page with the cursor."}
    assert entry["error_guidance"] == {"429": "Wait a moment."}


def test_where_nothing_is_written_examples_and_errors_follow_from_the_schema():
    definition = {
        "name": "send",
        "inputSchema": {
            "type": "object",
            "properties": {
                "to": {"type": "string", "format": "email"},
                "priority": {"type": "integer", "minimum": 1, "maximum": 5},
                "kind": {"enum": ["mail", "text"]},
            },
            "required": ["to", "kind"],
            "additionalProperties": False,
        },
    }

    entry = full_entry(definition, "send", None)

    assert entry["description"] == "Send"
    assert entry["examples"] == [
        {
            "description": "With the required arguments",
            "input": {"to": "name@example.com", "kind": "mail"},
        }
    ]
    assert entry["error_guidance"] == {
        "missing_argument": "Give every required argument: to, kind.",
        "invalid_argument": {
            "to": "must be a string, in the format email",
            "priority": "must be an integer, at least 1, at most 5",
            "kind": 'must be one of "mail", "text"',
        },
        "unknown_argument": "Only the arguments of the input schema are accepted.",
    }


def test_a_description_that_says_nothing_on_a_point_leaves_it_to_the_one_below():
    below = ToolDescription(short="From the file.", description="Long, from the file.")
    above = ToolDescription(short="From the database.", examples=[])

    both = above.completed_by(below)

    assert both == ToolDescription(
        short="From the database.", description="Long, from the file.", examples=[]
    )
    assert above.completed_by(None) is above


@pytest.mark.parametrize(
    "wrong",
    [
        {"short": ""},
        {"short": "two\nlines"},
        {"short": "x" * 501},
        {"description": "nul \x00"},
        {"examples": [{"description": "no input"}]},
        {"examples": [{"input": ["no object"]}]},
        {"inputSchema": {}},
        {"usage_guidance": "no object"},
    ],
)
def test_a_description_that_is_wrong_is_refused(wrong):
    with pytest.raises(ValidationError):
        ToolDescription.model_validate(wrong)


def tool(*, staged=False, short=True, kind=PrimitiveKind.TOOL):
    return Primitive(
        kind, "s", "t", "s__t", {"name": "s__t"}, "d", short={} if short else None, staged=staged
    )


@pytest.mark.parametrize(
    ("server", "default", "key", "expected"),
    [
        (False, None, None, False),
        (True, None, None, True),
        (True, "flat", None, False),
        (False, "staged", None, True),
        (False, "flat", "staged", True),
        (True, "staged", "flat", False),
    ],
)
def test_the_key_wins_over_the_tenant_and_the_tenant_over_the_server(server, default, key, expected):
    caller = caller_of("t", Role.INVOKER)
    keys = {} if key is None else {caller.key_id: key}
    policy = Policy(disclosure=DisclosurePolicy(default=default, keys=keys))

    assert staged_for(policy, caller, tool(staged=server)) is expected
    assert any_staged(policy, caller, [tool(staged=server)]) is expected


def test_only_tools_are_staged():
    policy = Policy(disclosure=DisclosurePolicy(default="staged"))

    assert not staged_for(policy, caller_of("t"), tool(short=False))
    assert not staged_for(policy, caller_of("t"), tool(kind=PrimitiveKind.PROMPT))
    assert not any_staged(policy, caller_of("t"), [])


def test_another_short_form_and_another_switch_are_changes_of_the_lists():
    def changed(**members):
        before, after = (
            Catalog({PrimitiveKind.TOOL: {"s__t": one}}).fingerprints
            for one in (tool(), replace(tool(), **members))
        )
        return {name for name, digest in after.items() if before[name] != digest}

    assert changed(short={"name": "s__t", "description": "Other words."}) == {"tool"}
    assert changed(staged=True) == {"tool", "resource", "template"}
    assert changed() == set()
