"""Names under which primitives are shown: the server in front, aliases, qualified URIs, and who wins a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog.naming import exposed, qualified, resolve_uri, split_name, split_uri
from app.core.catalog.primitives import NAME_FIELD, Offer, PrimitiveKind


def offer(server, name, kind=PrimitiveKind.TOOL):
    return Offer(kind, server, name, {NAME_FIELD[kind]: name})


def named(*offers, aliases=None, plain=(), separator="__", servers=()):
    every = {one.server for one in offers} | set(servers)
    return exposed(
        offers,
        namespaced={name: name not in plain for name in every},
        aliases=aliases or {},
        separator=separator,
    )


def shown(naming):
    return [(one.server, one.own_name, name) for one, name in naming.names]


def test_tools_and_prompts_get_the_server_name_in_front():
    naming = named(offer("git", "log"), offer("git", "commit", PrimitiveKind.PROMPT))
    assert [name for _, name in naming.names] == ["git__log", "git__commit"]
    assert naming.shadowed == []


def test_a_server_without_namespace_shows_its_own_names():
    naming = named(offer("git", "log"), offer("time", "now"), plain={"time"})
    assert [name for _, name in naming.names] == ["git__log", "now"]


def test_the_separator_is_free():
    assert [name for _, name in named(offer("git", "log"), separator=".").names] == ["git.log"]


def test_an_alias_replaces_the_name_of_a_tool_and_of_nothing_else():
    naming = named(
        offer("git", "log"),
        offer("git", "log", PrimitiveKind.PROMPT),
        aliases={"git": {"history": "log", "x": "absent"}},
    )
    assert [name for _, name in naming.names] == ["history", "git__log"]


def test_two_aliases_of_one_tool_are_both_shown_in_alphabetical_order():
    naming = named(offer("git", "log"), aliases={"git": {"past": "log", "history": "log"}})
    assert [name for _, name in naming.names] == ["history", "past"]


def test_where_two_servers_want_one_name_the_first_server_by_name_has_it_and_the_other_is_shadowed():
    offers = [offer("b", "search"), offer("a", "search")]
    for order in (offers, offers[::-1]):
        naming = named(*order, plain={"a", "b"})
        assert shown(naming) == [("a", "search", "search")]
        assert naming.shadowed == [(PrimitiveKind.TOOL, "search", "b")]


def test_tools_and_prompts_of_one_name_do_not_meet():
    naming = named(offer("a", "search"), offer("b", "search", PrimitiveKind.PROMPT), plain={"a", "b"})
    assert len(naming.names) == 2


def test_inside_a_server_an_alias_wins_over_an_own_name():
    naming = named(offer("a", "get"), offer("a", "read"), plain={"a"}, aliases={"a": {"get": "read"}})
    assert shown(naming) == [("a", "read", "get")]
    assert naming.shadowed == [(PrimitiveKind.TOOL, "get", "a")]


def test_a_tool_that_a_server_lists_twice_is_shown_once():
    naming = named(offer("a", "get"), offer("a", "get"))
    assert len(naming.names) == 1
    assert naming.shadowed == [(PrimitiveKind.TOOL, "a__get", "a")]


def test_the_longest_server_name_in_front_owns_a_name():
    naming = named(offer("a", "b__c"), offer("a__b", "c"))
    assert shown(naming) == [("a__b", "c", "a__b__c")]
    assert naming.shadowed == [(PrimitiveKind.TOOL, "a__b__c", "a")]


def test_a_server_cannot_pass_its_tools_off_as_those_of_another_one():
    naming = named(offer("evil", "github__delete"), plain={"evil"}, servers={"github"})
    assert naming.names == []
    assert naming.shadowed == [(PrimitiveKind.TOOL, "github__delete", "evil")]


def test_a_server_without_namespace_may_begin_its_names_with_its_own():
    naming = named(offer("git", "git__status"), plain={"git"})
    assert shown(naming) == [("git", "git__status", "git__status")]


def test_a_uri_of_one_server_stays_and_a_uri_of_several_names_the_server():
    naming = named(
        offer("a", "file:///x", PrimitiveKind.RESOURCE),
        offer("b", "file:///x", PrimitiveKind.RESOURCE),
        offer("b", "file:///y", PrimitiveKind.RESOURCE),
        offer("b", "file:///x", PrimitiveKind.TEMPLATE),
    )
    assert [name for _, name in naming.names] == [
        "sluice://a/file:///x",
        "sluice://b/file:///x",
        "file:///y",
        "file:///x",
    ]


def test_a_server_cannot_offer_uris_that_are_ours():
    naming = named(
        offer("a", "sluice://b/file:///x", PrimitiveKind.RESOURCE),
        offer("a", "resource:///tool_descriptions{?tools}", PrimitiveKind.TEMPLATE),
    )
    assert [name for _, name in naming.names] == [
        "sluice://a/sluice://b/file:///x",
        "sluice://a/resource:///tool_descriptions{?tools}",
    ]


def test_a_name_splits_at_the_longest_registered_server():
    servers = {"a", "a__b", "a_"}
    assert split_name("a__b__c", servers) == ("a__b", "c")
    assert split_name("a__x", servers) == ("a", "x")
    assert split_name("a___x", servers) == ("a_", "x")
    assert split_name("a__", servers) is None
    assert split_name("__x", servers) is None
    assert split_name("other__x", servers) is None


@given(st.sampled_from(["a", "b.c", "d-e"]), st.text(min_size=1))
def test_a_qualified_uri_gives_its_server_and_the_uri_verbatim(server, uri):
    assert split_uri(qualified(server, uri)) == (server, uri)


def test_other_uris_are_not_qualified():
    assert [
        split_uri(uri) for uri in ("file:///x", "sluice://", "sluice://a", "sluice://a/", "sluice:///x")
    ] == [None] * 5


def lists(*offers):
    naming = named(*offers)
    resources = {name: one for one, name in naming.names if one.kind is PrimitiveKind.RESOURCE}
    templates = {name: one for one, name in naming.names if one.kind is PrimitiveKind.TEMPLATE}
    return resources, templates


def read(uri, *offers):
    found = resolve_uri(uri, *lists(*offers))
    return None if found is None else (found.server, found.uri, found.primitive.own_name)


def test_a_unique_resource_is_read_by_its_own_and_by_its_qualified_uri():
    offers = [
        offer("a", "file:///x", PrimitiveKind.RESOURCE),
        offer("b", "file:///y", PrimitiveKind.RESOURCE),
    ]
    assert read("file:///x", *offers) == ("a", "file:///x", "file:///x")
    assert read("sluice://a/file:///x", *offers) == ("a", "file:///x", "file:///x")
    assert read("sluice://b/file:///x", *offers) is None


def test_a_resource_of_two_servers_is_read_by_its_qualified_uri_only():
    offers = [
        offer("a", "file:///x", PrimitiveKind.RESOURCE),
        offer("b", "file:///x", PrimitiveKind.RESOURCE),
        offer("b", "file:///{+path}", PrimitiveKind.TEMPLATE),
    ]
    assert read("sluice://b/file:///x", *offers) == ("b", "file:///x", "file:///x")
    assert read("file:///x", *offers) is None


def test_a_uri_that_no_list_holds_is_tried_against_the_templates():
    offers = [
        offer("a", "note://{id}", PrimitiveKind.TEMPLATE),
        offer("b", "repo://{owner}/{name}", PrimitiveKind.TEMPLATE),
    ]
    assert read("note://7", *offers) == ("a", "note://7", "note://{id}")
    assert read("repo://x/y", *offers) == ("b", "repo://x/y", "repo://{owner}/{name}")
    assert read("note://7/8", *offers) is None
    assert read("sluice://a/note://7", *offers) == ("a", "note://7", "note://{id}")
    assert read("sluice://b/note://7", *offers) is None


@pytest.mark.parametrize("greedy", ["{+anything}", "{scheme}://{+rest}", "no{+t}", "{+a}:{+b}"])
def test_a_template_without_a_scheme_draws_no_reads_that_do_not_name_its_server(greedy):
    offers = [offer("a", greedy, PrimitiveKind.TEMPLATE)]
    assert exposed(offers, namespaced={}, aliases={}).names == [(offers[0], f"sluice://a/{greedy}")]
    assert read("note://7", *offers) is None
    assert read("sluice://a/note://7", *offers) == ("a", "note://7", greedy)
    assert read("sluice://b/note://7", *offers) is None


def test_the_template_that_says_most_wins_and_a_tie_of_servers_needs_the_qualified_uri():
    greedy = offer("a", "note:{+anything}", PrimitiveKind.TEMPLATE)
    exact = offer("b", "note://{id}", PrimitiveKind.TEMPLATE)
    assert read("note://7", greedy, exact) == ("b", "note://7", "note://{id}")
    twin = offer("c", "note://{id}", PrimitiveKind.TEMPLATE)
    assert read("note://7", exact, twin) is None
    assert read("sluice://c/note://7", exact, twin) == ("c", "note://7", "note://{id}")
