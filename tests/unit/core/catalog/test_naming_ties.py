"""Which of two offers has a name that both want, and where a URI is read that two servers could answer."""

from collections.abc import Mapping, Sequence

import pytest

from app.core.catalog.naming import exposed, resolve_uri, split_name, split_uri
from app.core.catalog.primitives import NAME_FIELD, Offer, PrimitiveKind


def offer(server: str, name: str, kind: PrimitiveKind = PrimitiveKind.TOOL, note: str = "") -> Offer:
    return Offer(kind, server, name, {NAME_FIELD[kind]: name, "note": note})


def shown(
    offers: Sequence[Offer], aliases: Mapping[str, Mapping[str, str]], *plain: str
) -> list[tuple[str, str]]:
    namespaced = {one.server: one.server not in plain for one in offers}
    naming = exposed(offers, namespaced=namespaced, aliases=aliases)
    return [(str(one.definition["note"]), name) for one, name in naming.names]


@pytest.mark.parametrize(
    "kind", [PrimitiveKind.TOOL, PrimitiveKind.PROMPT, PrimitiveKind.RESOURCE, PrimitiveKind.TEMPLATE]
)
def test_of_what_a_server_lists_twice_the_first_is_shown(kind: PrimitiveKind) -> None:
    name = "x://{a}" if kind is PrimitiveKind.TEMPLATE else "x://a"
    offers = [
        offer("a", name, kind, "first"),
        offer("a", name, kind, "second"),
        offer("a", name, kind, "third"),
    ]
    assert [note for note, _ in shown(offers, {})] == ["first"]


def test_of_two_aliases_that_name_one_tool_each_the_earlier_tool_has_the_name() -> None:
    offers = [offer("a", "get", note="first"), offer("a", "get", note="second")]
    assert shown(offers, {"a": {"take": "get"}}) == [("first", "take")]


def test_the_first_server_by_name_wins_even_over_another_s_alias() -> None:
    offers = [offer("b", "read", note="alias of b"), offer("a", "get", note="own of a")]
    for order in (offers, offers[::-1]):
        made = shown(order, {"b": {"get": "read"}}, "a", "b")
        assert made == [("own of a", "get")]


def test_inside_a_server_an_alias_wins_wherever_its_tool_stands() -> None:
    offers = [offer("a", "get", note="own"), offer("a", "read", note="alias")]
    for order in (offers, offers[::-1]):
        assert shown(order, {"a": {"get": "read"}}, "a") == [("alias", "get")]


def test_one_server_that_lists_a_uri_twice_needs_no_qualified_name_and_two_servers_do() -> None:
    twice = [
        offer("a", "x://a", PrimitiveKind.RESOURCE, "1"),
        offer("a", "x://a", PrimitiveKind.RESOURCE, "2"),
    ]
    assert [name for _, name in shown(twice, {})] == ["x://a"]
    both = [
        offer("a", "x://a", PrimitiveKind.RESOURCE, "1"),
        offer("b", "x://a", PrimitiveKind.RESOURCE, "2"),
    ]
    assert [name for _, name in shown(both, {})] == ["sluice://a/x://a", "sluice://b/x://a"]
    kinds = [
        offer("a", "x://a", PrimitiveKind.RESOURCE, "1"),
        offer("b", "x://a", PrimitiveKind.TEMPLATE, "2"),
    ]
    assert [name for _, name in shown(kinds, {})] == ["x://a", "x://a"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a__b__c", ("a__b", "c")),
        ("a__c", ("a", "c")),
        ("a__", None),
        ("__a", None),
        ("x__c", None),
        ("a___c", ("a_", "c")),
        ("a__b__", ("a", "b__")),
    ],
)
def test_the_longest_server_name_in_front_counts_and_something_stands_behind_it(
    name: str, expected: tuple[str, str] | None
) -> None:
    assert split_name(name, {"a", "a__b", "a_"}) == expected


def test_a_qualified_uri_names_a_server_and_something_of_it() -> None:
    assert split_uri("sluice://a/x://y/z") == ("a", "x://y/z")
    for uri in ("sluice://a/", "sluice:///x", "sluice://a", "x://a/b"):
        assert split_uri(uri) is None


def by_name(*offers: Offer) -> dict[str, Offer]:
    return {f"{one.server} {one.own_name}": one for one in offers}


def test_of_two_templates_the_one_with_more_literal_characters_is_read() -> None:
    wide, narrow = (
        offer("a", "x://{all}", PrimitiveKind.TEMPLATE),
        offer("b", "x://books/{id}", PrimitiveKind.TEMPLATE),
    )
    for templates in (by_name(wide, narrow), by_name(narrow, wide)):
        found = resolve_uri("x://books/1", {}, templates)
        assert found is not None
        assert found.server == "b"
        found = resolve_uri("x://films", {}, templates)
        assert found is not None
        assert found.server == "a"


def test_templates_of_two_servers_that_tie_are_read_only_by_their_qualified_uri() -> None:
    templates = by_name(
        offer("a", "x://{b}", PrimitiveKind.TEMPLATE), offer("b", "x://{c}", PrimitiveKind.TEMPLATE)
    )
    assert resolve_uri("x://1", {}, templates) is None
    found = resolve_uri("sluice://b/x://1", {}, templates)
    assert found is not None
    assert (found.server, found.uri) == ("b", "x://1")
    same = by_name(
        offer("a", "x://{b}", PrimitiveKind.TEMPLATE), offer("a", "x://{c}", PrimitiveKind.TEMPLATE)
    )
    tied = resolve_uri("x://1", {}, same)
    assert tied is not None
    assert tied.primitive.own_name == "x://{b}", "of one server's the first"


def test_a_bare_uri_that_two_servers_list_must_be_qualified() -> None:
    listed = by_name(offer("a", "x://1", PrimitiveKind.RESOURCE), offer("b", "x://1", PrimitiveKind.RESOURCE))
    assert resolve_uri("x://1", listed, {}) is None
    found = resolve_uri("sluice://b/x://1", listed, {})
    assert found is not None
    assert found.server == "b"


def test_a_resource_comes_before_a_template_that_covers_its_uri() -> None:
    resources = by_name(offer("a", "x://1", PrimitiveKind.RESOURCE))
    templates = by_name(offer("b", "x://{n}", PrimitiveKind.TEMPLATE))
    found = resolve_uri("x://1", resources, templates)
    assert found is not None
    assert found.server == "a"


def test_a_template_without_a_scheme_covers_qualified_uris_of_its_server_only() -> None:
    templates = by_name(offer("a", "{path}", PrimitiveKind.TEMPLATE))
    assert resolve_uri("x", {}, templates) is None
    assert resolve_uri("sluice://b/x", {}, templates) is None
    found = resolve_uri("sluice://a/x", {}, templates)
    assert found is not None
    assert found.uri == "x"
