"""Arguments are held against a server's schema as far as arguments need it, with a pointer to the first fault."""

from typing import Any

import pytest

from app.core.contracts.argument_schema import schema_fault


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ({"type": "integer"}, 1, None),
        ({"type": "integer"}, True, "/"),
        ({"type": "number"}, 1.5, None),
        ({"type": "number"}, False, "/"),
        ({"type": "boolean"}, True, None),
        ({"type": "boolean"}, 1, "/"),
        ({"type": "null"}, None, None),
        ({"type": ["string", "null"]}, None, None),
        ({"type": ["string", "null"]}, 1, "/"),
        ({"type": ["string", "unheard"]}, 1, "/"),
        ({"type": "unheard"}, 1, None),
        ({"type": [7]}, 1, None),
        ({"enum": ["a", "b"]}, "c", "/"),
        ({"enum": ["a", "b"]}, "b", None),
        ({"enum": "a"}, "c", None),
        ({"const": None}, None, None),
        ({"const": None}, 0, "/"),
        ({"const": 1}, 2, "/"),
        ({"type": "string", "enum": ["a"]}, "b", "/"),
        (True, 1, None),
        ({"items": {"type": "string"}}, ["a", 1, 2], "/1"),
        ({"items": {"type": "string"}}, [], None),
        ({"required": ["a", "b"]}, {"a": 1}, "/b"),
        ({"required": [7, "a"]}, {"a": 1}, None),
        ({"required": "a"}, {}, None),
        ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "/a"),
        ({"properties": {"a": {"properties": {"b": {"type": "string"}}}}}, {"a": {"b": 1}}, "/a/b"),
        ({"additionalProperties": False}, {"a": 1}, "/"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a": 1}, None),
        ({"properties": {"o": {"additionalProperties": False}}}, {"o": {"a": 1}}, "/o"),
        ({"additionalProperties": {"type": "string"}}, {"a": 1}, "/a"),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"a": 1}, None),
        ({"properties": {"a": {}, "b": {"type": "string"}}}, {"a": [1], "b": 2}, "/b"),
    ],
)
def test_the_first_value_that_a_schema_refuses_is_named(schema: Any, value: Any, fault: str | None) -> None:
    assert schema_fault(schema, value) == fault


@pytest.mark.parametrize(("depth", "is_seen"), [(16, True), (17, False)])
def test_what_lies_deeper_than_arguments_do_is_left_to_the_server(depth: int, is_seen: bool) -> None:
    schema: dict[str, Any] = {"type": "string"}
    value: Any = 1
    for _ in range(depth):
        schema, value = {"properties": {"a": schema}}, {"a": value}
    assert schema_fault(schema, value) == ("/a" * depth if is_seen else None)
