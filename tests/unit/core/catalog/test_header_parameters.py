"""Which parameters of a tool are repeated in headers, and which declarations of that are refused."""

from typing import Any

import pytest
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from app.core.catalog.header_parameters import declared_headers, declares_headers_wrongly, value_at

MARK = {"x-mcp-header": "Q"}
RIGHT: list[tuple[Any, dict[tuple[str, ...], str]]] = [
    ({}, {}),
    (True, {}),
    (None, {}),
    ({"properties": {"q": {"type": "string", **MARK}}}, {("q",): "Q"}),
    ({"properties": {"q": {"type": "integer", **MARK}}}, {("q",): "Q"}),
    ({"properties": {"q": {"type": "boolean", "description": "?", **MARK}}}, {("q",): "Q"}),
    ({"properties": {"a/b": {"properties": {"q": {"type": "string", **MARK}}}}}, {("a/b", "q"): "Q"}),
    (
        {
            "properties": {
                "one": {"type": "string", "x-mcp-header": "Trace-Id"},
                "two": {"type": "string", "enum": ["a"], "x-mcp-header": "Region"},
            }
        },
        {("one",): "Trace-Id", ("two",): "Region"},
    ),
    ({"properties": {"x-mcp-header": {"type": "string"}}}, {}),
    ({"properties": {"x-mcp-header": {"type": "string", **MARK}}}, {("x-mcp-header",): "Q"}),
    ({"properties": {"default": {"type": "string", **MARK}}}, {("default",): "Q"}),
    ({"properties": {"q": {"type": "object", "default": {"type": "string", **MARK}}}}, {}),
    ({"examples": [{"x-mcp-header": "Q"}]}, {}),
]
WRONG: list[Any] = [
    {"properties": {"q": {**MARK}}},
    {"properties": {"q": {"type": "number", **MARK}}},
    {"properties": {"q": {"type": ["string", "null"], **MARK}}},
    {"properties": {"q": {"type": [{}], **MARK}}},
    {"properties": {"q": {"type": "object", **MARK}}},
    {"properties": {"list": {"items": {"type": "string", **MARK}}}},
    {"allOf": [{"properties": {"q": {"type": "string", **MARK}}}]},
    {"$defs": {"q": {"type": "string", **MARK}}},
    {"properties": {"q": {"$ref": "#/$defs/q", **MARK}}},
    {"type": "string", **MARK},
    {"properties": {"q": {"type": "string", "x-mcp-header": ""}}},
    {"properties": {"q": {"type": "string", "x-mcp-header": True}}},
    {"properties": {"q": {"type": "string", "x-mcp-header": "A\r\nCookie"}}},
    {"properties": {"q": {"type": "string", "x-mcp-header": "A: B"}}},
    {"properties": {"q": {"type": "string", "x-mcp-header": {"of": "Q"}}}},
    {"properties": {"q": {"type": "string", **MARK}, "r": {"type": "string", "x-mcp-header": "q"}}},
]
STRICTER: list[Any] = [
    {"unknownKeyword": {"anything": [{"type": "string", **MARK}]}},
    {"properties": {"q": {"type": "string", "x-mcp-header": "Q" * 129}}},
]


@pytest.mark.parametrize(("schema", "headers"), RIGHT)
def test_what_is_declared_rightly_is_found_with_its_path(
    schema: Any, headers: dict[tuple[str, ...], str]
) -> None:
    assert not declares_headers_wrongly(schema)
    assert declared_headers(schema) == headers
    # What is judged here must be what the SDK then sends.
    assert find_invalid_x_mcp_header(schema) is None
    assert x_mcp_header_map(schema) == headers


@pytest.mark.parametrize("schema", WRONG)
def test_what_is_declared_wrongly_is_refused(schema: Any) -> None:
    assert declares_headers_wrongly(schema)
    assert find_invalid_x_mcp_header(schema) is not None


@pytest.mark.parametrize("schema", STRICTER)
def test_what_others_overlook_is_refused_too(schema: Any) -> None:
    assert declares_headers_wrongly(schema)


def test_a_schema_as_deep_as_the_edge_allows_is_searched_to_its_end() -> None:
    right: dict[str, Any] = {"type": "string", **MARK}
    wrong: dict[str, Any] = {"type": "null", **MARK}
    for _ in range(20_000):
        right, wrong = {"properties": {"p": right}}, {"properties": {"p": wrong}}
    assert declared_headers(right) == {("p",) * 20_000: "Q"}
    assert declares_headers_wrongly(wrong) and not declares_headers_wrongly(right)


def test_a_value_is_found_by_its_path_and_absent_ones_are_none() -> None:
    assert value_at({"a": {"b": 7}}, ("a", "b")) == 7
    assert value_at({"a": [7]}, ("a", "b")) is None
    assert value_at({}, ("a",)) is None
