"""What a trusted server may change by itself, and what waits for an operator."""

from typing import Any

import pytest

from app.core.catalog.primitives import Offer, PrimitiveKind
from app.services.servers.pins import PinName, review
from app.services.servers.trust import Neighbours, trusted_changes

TOOL, PROMPT, TEMPLATE = PrimitiveKind.TOOL, PrimitiveKind.PROMPT, PrimitiveKind.TEMPLATE
MARKED = {"properties": {"q": {"type": "string", "x-mcp-header": "Q"}, "r": {"type": "string"}}}
MOVED = {"properties": {"q": {"type": "string"}, "r": {"type": "string", "x-mcp-header": "Q"}}}
RENAMED = {"properties": {"q": {"type": "string", "x-mcp-header": "Z"}, "r": {"type": "string"}}}


def tool(name: str = "t", schema: Any = None, *, server: str = "alpha", **more: Any) -> Offer:
    return Offer(TOOL, server, name, {"name": name, "inputSchema": schema or {"type": "object"}, **more})


def alone(**pins: Any) -> Neighbours:
    return Neighbours(pins, {}, {})


def accepted(before: list[Offer], now: list[Offer], neighbours: Neighbours | None = None) -> list[str]:
    pins = {PinName(one.kind, one.own_name): one for one in before}
    reviews = review(now, {name: one.digest for name, one in pins.items()})
    definitions = {name: one.definition for name, one in pins.items()}
    return [one.name for one in trusted_changes(reviews, definitions, neighbours or alone())]


def test_words_schemas_and_new_tools_are_served_and_what_stayed_is_left_alone() -> None:
    before = [tool("kept"), tool("changed", description="a"), tool("gone")]
    now = [tool("kept"), tool("changed", {"type": "object", "required": ["x"]}, description="b"), tool("new")]
    assert accepted(before, now) == ["changed", "new"]


@pytest.mark.parametrize("hint", ["readOnlyHint", "destructiveHint"])
@pytest.mark.parametrize("values", [(True, False), (False, True), (None, True), (True, None), (True, 1)])
def test_a_changed_hint_waits(hint: str, values: tuple[Any, Any]) -> None:
    before, now = (tool(annotations={} if value is None else {hint: value, "title": "T"}) for value in values)
    assert accepted([before], [now]) == []


def test_hints_that_stay_and_annotations_of_other_kinds_do_not_wait() -> None:
    before = tool(annotations={"readOnlyHint": True, "title": "Old"})
    assert accepted([before], [tool(annotations={"readOnlyHint": True, "title": "New"})]) == ["t"]
    assert accepted([], [tool(annotations={"readOnlyHint": True})]) == ["t"]
    assert accepted([tool(annotations=["odd"])], [tool(annotations={"readOnlyHint": False})]) == []


def test_a_hint_cannot_be_changed_by_leaving_and_coming_back() -> None:
    before = tool(annotations={"destructiveHint": True})
    assert accepted([before], []) == []  # the pin of what is gone stays
    assert accepted([before], [tool(annotations={"destructiveHint": False})]) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [(None, MARKED), ({}, MARKED), (MARKED, {}), (MARKED, MOVED), (MARKED, RENAMED)],
)
def test_a_new_or_changed_header_waits(before: Any, now: Any) -> None:
    pins = [] if before is None else [tool(schema=before)]
    assert accepted(pins, [tool(schema=now)]) == []


def test_other_changes_of_a_tool_that_was_approved_with_its_header_do_not_wait() -> None:
    assert accepted([tool(schema=MARKED)], [tool(schema={**MARKED, "title": "x"}, description="y")]) == ["t"]


def test_a_name_that_another_server_has_waits() -> None:
    others = {"beta": {PinName(TOOL, "send"): "", PinName(PROMPT, "greet"): ""}}
    bare = {"alpha": False, "beta": False}
    new = [tool("send"), Offer(PROMPT, "alpha", "greet", {"name": "greet"}), tool("other")]
    assert accepted([], new, Neighbours(others, bare, {})) == ["other"]
    assert accepted([], new, Neighbours(others, {"alpha": True, "beta": True}, {})) == [
        "send",
        "greet",
        "other",
    ]
    assert accepted([tool("send", description="mine")], [tool("send")], Neighbours(others, bare, {})) == [
        "send"
    ]


def test_a_name_that_looks_like_another_servers_waits() -> None:
    bare = Neighbours({"beta": {PinName(TOOL, "send"): ""}}, {"alpha": False, "beta": True}, {})
    assert accepted([], [tool("beta__send"), tool("beta__else"), tool("gamma__send")], bare) == [
        "gamma__send"
    ]


def test_an_alias_of_another_server_is_its_name() -> None:
    others = {"beta": {PinName(TOOL, "deliver"): ""}}
    aliased = Neighbours(others, {"alpha": False, "beta": True}, {"beta": {"send": "deliver"}})
    assert accepted([], [tool("send"), tool("deliver")], aliased) == ["deliver"]


def test_a_template_that_another_server_has_waits() -> None:
    def template(uri: str) -> Offer:
        return Offer(TEMPLATE, "alpha", uri, {"uriTemplate": uri, "name": "x"})

    others = {"beta": {PinName(TEMPLATE, "memo://{name}"): ""}}
    new = [template("memo://{name}"), template("file://{name}")]
    assert accepted([], new, alone(**others)) == ["file://{name}"]


def test_what_can_never_be_approved_is_never_trusted() -> None:
    wrong = {"properties": {"q": {"type": "number", "x-mcp-header": "Q"}}}
    assert accepted([], [tool(schema=wrong), tool("a\u202eb")]) == []
