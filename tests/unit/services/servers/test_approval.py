"""What an approval covers: all that may be approved, or exactly what was named, in the form that was looked at."""

from collections.abc import Sequence

import pytest

from app.core.catalog.primitives import Offer, PrimitiveKind
from app.core.errors import ConflictError, InvalidArgumentsError
from app.services.servers.approval import WantedDefinition, choose
from app.services.servers.pins import PinName, Review, review, served

LEAK = {"properties": {"q": {"type": "string", "x-mcp-header": "X Query"}}}


def tool(name: str, note: str = "", schema: object = None) -> Offer:
    definition = {"name": name, "note": note, "inputSchema": schema or {"type": "object"}}
    return Offer(PrimitiveKind.TOOL, "alpha", name, definition)


def reviewed(offers: Sequence[Offer], approved: Sequence[Offer] = ()) -> list[Review]:
    return review(offers, {PinName(one.kind, one.own_name): one.digest for one in approved})


def named(reviews: Sequence[Review]) -> list[str]:
    return [f"{one.name} {one.state.value}" for one in reviews]


def test_without_names_everything_is_approved_that_may_be_and_what_is_gone_loses_its_pin() -> None:
    reviews = reviewed([tool("a"), tool("b", schema=LEAK), tool("c", "new")], [tool("c"), tool("gone")])
    chosen = choose(reviews, None)
    assert [one.own_name for one in chosen.offers] == ["a", "c"]
    assert [one.name for one in chosen.names] == ["a", "c", "gone"]
    assert named(chosen.held_back) == ["b invalid-header"]


def test_only_what_is_named_is_approved_and_the_rest_is_held_back() -> None:
    reviews = reviewed([tool("a"), tool("b"), tool("kept")], [tool("kept")])
    chosen = choose(reviews, [WantedDefinition(PrimitiveKind.TOOL, "b")])
    assert [one.own_name for one in chosen.offers] == ["b"]
    assert named(chosen.held_back) == ["a new"]
    assert choose(reviews, []).offers == []


def test_of_two_definitions_under_one_name_the_first_is_approved_and_the_second_held_back() -> None:
    first, second = tool("a", "first"), tool("a", "second")
    chosen = choose(reviewed([first, second]), None)
    assert list(chosen.offers) == [first]
    assert [one.offer for one in chosen.held_back] == [second]
    approved = reviewed([first, second], [first])
    assert served([first, second], approved) == [first]


def test_a_definition_is_approved_in_the_form_that_was_looked_at_or_not_at_all() -> None:
    seen = tool("a")
    assert choose(reviewed([seen]), [WantedDefinition(PrimitiveKind.TOOL, "a", seen.digest)]).offers == [seen]
    with pytest.raises(ConflictError) as refused:
        choose(reviewed([tool("a", "other")]), [WantedDefinition(PrimitiveKind.TOOL, "a", seen.digest)])
    assert refused.value.details == {"pointer": "/primitives/0"}


@pytest.mark.parametrize(
    ("offer", "wanted"),
    [
        (tool("a", schema=LEAK), WantedDefinition(PrimitiveKind.TOOL, "a")),
        (tool("a\u202e"), WantedDefinition(PrimitiveKind.TOOL, "a\u202e")),
        (tool(""), WantedDefinition(PrimitiveKind.TOOL, "")),
        (tool("a" * 2049), WantedDefinition(PrimitiveKind.TOOL, "a" * 2049)),
        (tool("a"), WantedDefinition(PrimitiveKind.PROMPT, "a")),
        (tool("a"), WantedDefinition(PrimitiveKind.TOOL, "b")),
    ],
)
def test_what_cannot_be_approved_is_refused_where_it_is_named(offer: Offer, wanted: WantedDefinition) -> None:
    with pytest.raises(InvalidArgumentsError) as refused:
        choose(reviewed([tool("ok"), offer]), [WantedDefinition(PrimitiveKind.TOOL, "ok"), wanted])
    assert refused.value.details == {"pointer": "/primitives/1"}


def test_the_longest_name_that_can_be_kept_is_approved() -> None:
    longest = tool("a" * 2048)
    assert choose(reviewed([longest]), None).offers == [longest]


def test_a_resource_is_data_and_never_quarantined() -> None:
    resource = Offer(PrimitiveKind.RESOURCE, "alpha", "x://1", {"uri": "x://1"})
    assert reviewed([resource]) == []
    assert served([resource], []) == [resource]
