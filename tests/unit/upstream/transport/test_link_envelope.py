"""What a request carries around its parameters."""

import pytest

from app.core.errors import InvalidArgumentsError
from app.core.upstream import Hooks
from app.upstream.transport.envelope import Envelope

MODERN = "2026-07-28"
KEY = "io.modelcontextprotocol/"


async def told(_method, _params):
    """Take a notification."""


def test_a_handshake_request_without_metadata_goes_as_it_came():
    given = {"name": "x", "arguments": {"a": 1}}
    assert Envelope("2025-11-25").wrapped(7, given, Hooks()) == given


def test_metadata_of_the_last_hop_is_replaced_and_other_metadata_kept():
    given = {"_meta": {"progressToken": "theirs", f"{KEY}logLevel": "debug", "a": 1}, "name": "x"}
    hooks = Hooks(meta={"b": 2})
    assert Envelope("2025-11-25").wrapped(7, given, hooks) == {"_meta": {"a": 1, "b": 2}, "name": "x"}
    assert Envelope("2025-11-25").wrapped(7, {"_meta": {"progressToken": 1}}, Hooks()) == {}
    assert given["_meta"]["progressToken"] == "theirs"


@pytest.mark.parametrize(
    ("hooks", "asked"),
    [
        (Hooks(notify=told, progress_token="t"), True),
        (Hooks(notify=told, progress_token=0), True),
        (Hooks(notify=told), False),
        (Hooks(progress_token="t"), False),
    ],
)
def test_progress_is_asked_for_under_our_number_where_somebody_takes_it(hooks, asked):
    meta = Envelope("2025-11-25").wrapped(7, {}, hooks).get("_meta", {})
    assert meta == ({"progressToken": 7} if asked else {})


def test_a_modern_request_says_who_asks_and_what_that_client_can_do():
    hooks = Hooks(capabilities={"sampling": {}}, log_level="info", meta={f"{KEY}protocolVersion": "forged"})
    meta = Envelope(MODERN).wrapped(7, {}, hooks)["_meta"]
    assert meta[f"{KEY}protocolVersion"] == MODERN
    assert meta[f"{KEY}clientInfo"]["name"] == "sluice"
    assert meta[f"{KEY}clientCapabilities"] == {"sampling": {}}
    assert meta[f"{KEY}logLevel"] == "info"


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "plain"}, "plain"),
        ("tools/call", {"name": "größe"}, "=?base64?Z3LDtsOfZQ==?="),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "memo://one"}, "memo://one"),
        ("tools/list", {}, None),
    ],
)
def test_headers_name_the_method_and_what_it_is_about(method, params, name):
    headers = Envelope(MODERN).headers(method, params)
    assert (headers["mcp-method"], headers.get("mcp-name")) == (method, name)
    assert headers["mcp-protocol-version"] == MODERN


def test_arguments_that_a_schema_marks_are_mirrored_in_headers():
    schemas = {
        "t": {
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "flag": {"type": "boolean", "x-mcp-header": "Flag"},
                "other": {"type": "string"},
            },
        },
        "invalid": {"type": "object", "properties": {"x": {"type": "number", "x-mcp-header": "X"}}},
    }
    envelope = Envelope(MODERN, schemas.get)

    def mirrored(tool, arguments):
        headers = envelope.headers("tools/call", {"name": tool, "arguments": arguments})
        return {name: value for name, value in headers.items() if name.startswith("Mcp-Param-")}

    given = {"region": "eu", "flag": True, "other": "x"}
    assert mirrored("t", given) == {"Mcp-Param-Region": "eu", "Mcp-Param-Flag": "true"}
    assert mirrored("t", {"other": "x"}) == {}
    assert mirrored("invalid", {"x": 1}) == {}
    assert mirrored("unknown", {"x": 1}) == {}
    schemas["t"] = {"type": "object", "properties": {"other": {"type": "string", "x-mcp-header": "Other"}}}
    assert mirrored("t", given) == {"Mcp-Param-Other": "x"}


@pytest.mark.parametrize(
    ("schema", "fits", "not_"),
    [
        ({"type": "integer"}, [7, 7.0, -1], ["Jane Smith", "7", True, 7.5, [7]]),
        ({"type": "boolean"}, [True, False], ["true", 1, "Jane Smith"]),
        ({"type": "string", "enum": ["eu", "us"]}, ["eu"], ["Jane Smith", 7]),
        ({"type": "string", "const": "eu"}, ["eu"], ["Jane Smith"]),
        (
            {"type": "string", "format": "date"},
            ["2026-11-21"],
            ["Jane Smith", "123-45-6789", "2026-11-21 Jane"],
        ),
        ({"type": "string", "format": "date-time"}, ["2026-11-21T10:00:00.5Z"], ["Jane", "2026-11-21TJane"]),
        ({"type": "string", "format": "duration"}, ["P1D", "PT5M", "P1DT2H"], ["P", "PJane", "Peter"]),
        ({"type": "string", "format": "uuid"}, ["0190f0a8-1c1c-7000-8000-00000000000a"], ["Jane"]),
        ({"type": "string", "format": "ipv6"}, ["::1", "fe80::1"], ["Abe", "a"]),
        ({"type": "string"}, ["anything"], [7]),
    ],
)
def test_an_argument_that_is_not_what_its_schema_says_is_in_no_header(schema, fits, not_):
    marked = {**schema, "x-mcp-header": "Mark"}
    root = {"type": "object", "properties": {"in": {"type": "object", "properties": {"x": marked}}}}
    envelope = Envelope(MODERN, {"t": root}.get)

    def headers(value):
        return envelope.headers("tools/call", {"name": "t", "arguments": {"in": {"x": value}}})

    for value in fits:
        assert "Mcp-Param-Mark" in headers(value)
    for value in not_:
        with pytest.raises(InvalidArgumentsError) as refused:
            headers(value)
        assert refused.value.details == {"pointer": "/arguments/in/x"}
        assert "Jane" not in refused.value.message


def test_before_any_revision_is_agreed_on_there_are_no_headers():
    assert Envelope().headers("initialize", {}) == {}
    assert Envelope("2025-06-18").headers("tools/call", {"name": "x"}) == {
        "mcp-protocol-version": "2025-06-18"
    }
