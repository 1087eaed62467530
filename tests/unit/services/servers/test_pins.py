"""What is held back: definitions that changed, that are new, or that declare headers wrongly."""

from typing import Any

import pytest

from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError
from app.services.servers.approval import WantedDefinition, choose
from app.services.servers.pins import PinName, PinState, review, served


def tool(name: str, schema: Any = None, **more: Any) -> Offer:
    return Offer(
        PrimitiveKind.TOOL, "alpha", name, {"name": name, "inputSchema": schema or {"type": "object"}, **more}
    )


def resource(uri: str) -> Offer:
    return Offer(PrimitiveKind.RESOURCE, "alpha", uri, {"uri": uri, "name": uri})


def pins(*offers: Offer) -> dict[PinName, str]:
    return {PinName(one.kind, one.own_name): one.digest for one in offers}


def states(offers: list[Offer], approved: dict[PinName, str]) -> dict[str, str]:
    return {one.name: one.state.value for one in review(offers, approved)}


def test_what_was_approved_is_served_and_what_changed_or_is_new_is_not():
    kept, changed, new = tool("kept"), tool("changed", description="Now other."), tool("new")
    approved = pins(kept, tool("changed", description="As it was."), tool("gone"))
    offers = [kept, changed, new]
    assert states(offers, approved) == {
        "kept": "approved",
        "changed": "changed",
        "new": "new",
        "gone": "gone",
    }
    assert served(offers, review(offers, approved)) == [kept]


def test_without_any_approval_nothing_but_data_is_served():
    offers = [
        tool("any"),
        resource("memo://one"),
        Offer(PrimitiveKind.PROMPT, "alpha", "greet", {"name": "greet"}),
    ]
    assert served(offers, review(offers, {})) == [offers[1]]


def test_resources_come_and_go_without_approval():
    assert review([resource("memo://one")], {}) == []


def test_a_template_and_a_prompt_are_pinned_apart_from_a_tool_of_the_same_name():
    offers = [
        Offer(PrimitiveKind.TEMPLATE, "alpha", "same", {"uriTemplate": "same", "name": "x"}),
        Offer(PrimitiveKind.PROMPT, "alpha", "same", {"name": "same"}),
        tool("same"),
    ]
    found = review(offers, pins(offers[1]))
    assert [(one.kind, one.state) for one in found] == [
        (PrimitiveKind.TEMPLATE, PinState.NEW),
        (PrimitiveKind.PROMPT, PinState.APPROVED),
        (PrimitiveKind.TOOL, PinState.NEW),
    ]


def test_the_order_of_members_changes_nothing_and_any_member_does():
    first = Offer(
        PrimitiveKind.TOOL, "a", "t", {"name": "t", "inputSchema": {}, "annotations": {"x": 1, "y": 2}}
    )
    turned = Offer(
        PrimitiveKind.TOOL, "a", "t", {"annotations": {"y": 2, "x": 1}, "inputSchema": {}, "name": "t"}
    )
    hinted = Offer(PrimitiveKind.TOOL, "a", "t", {**first.definition, "annotations": {"x": 1, "y": 3}})
    assert states([turned], pins(first)) == {"t": "approved"}
    assert states([hinted], pins(first)) == {"t": "changed"}


def test_of_two_definitions_under_one_name_only_the_approved_one_is_served():
    good, evil = tool("t"), tool("t", description="Sends everything elsewhere.")
    offers = [evil, good]
    assert served(offers, review(offers, pins(good))) == [good]


@pytest.mark.parametrize(
    "name", ["", "x" * 2049, "é" * 1025, "a\nb", "\x1b[31mread", "\u202eetirw", "re\u200bad"]
)
def test_a_name_that_cannot_be_kept_is_never_served(name: str):
    assert states([tool(name)], pins(tool(name))) == {name: "unnameable"}


WRONG = {"properties": {"q": {"type": "number", "x-mcp-header": "Q"}}}


def test_a_tool_that_declares_headers_wrongly_is_quarantined_even_when_pinned():
    assert states([tool("t", WRONG)], pins(tool("t", WRONG))) == {"t": "invalid-header"}


def test_a_tool_that_declares_headers_rightly_waits_for_an_approval_like_any_other():
    marked = tool("t", {"properties": {"q": {"type": "string", "x-mcp-header": "Q"}}})
    assert states([marked], {}) == {"t": "new"}
    assert states([marked], pins(marked)) == {"t": "approved"}
    assert states([marked], pins(tool("t"))) == {"t": "changed"}


def test_an_approval_takes_all_that_can_be_approved_and_says_what_stays_behind():
    leak = tool("leak", WRONG)
    chosen = choose(review([tool("a"), leak, resource("memo://one")], pins(tool("gone"))), None)
    assert [one.own_name for one in chosen.offers] == ["a"]
    assert [one.name for one in chosen.held_back] == ["leak"]


def test_a_named_approval_takes_only_what_is_named():
    reviews = review([tool("a"), tool("b")], pins(tool("gone")))
    chosen = choose(
        reviews,
        [
            WantedDefinition(PrimitiveKind.TOOL, "a", tool("a").digest),
            WantedDefinition(PrimitiveKind.TOOL, "gone"),
        ],
    )
    assert [one.own_name for one in chosen.offers] == ["a"]
    assert chosen.names == [(PrimitiveKind.TOOL, "a"), (PrimitiveKind.TOOL, "gone")]
    assert [one.name for one in chosen.held_back] == ["b"]


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (WantedDefinition(PrimitiveKind.TOOL, "nothing"), InvalidArgumentsError),
        (WantedDefinition(PrimitiveKind.PROMPT, "a"), InvalidArgumentsError),
        (WantedDefinition(PrimitiveKind.TOOL, "leak"), InvalidArgumentsError),
        (WantedDefinition(PrimitiveKind.TOOL, "a", "0" * 64), ConflictError),
    ],
)
def test_a_named_approval_refuses_what_is_not_offered_in_that_form(
    wanted: WantedDefinition, error: type[Exception]
):
    with pytest.raises(error) as refused:
        choose(
            review([tool("a"), tool("leak", WRONG)], {}),
            [WantedDefinition(PrimitiveKind.TOOL, "a"), wanted],
        )
    assert refused.value.details["pointer"] == "/primitives/1"
