"""Groups: what a definition may be, and what the tree of them says."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.core.catalog.groups import (
    GroupDefinition,
    GroupTree,
    disabled_groups,
    find_cycle,
    hidden_by_session,
    stamped,
    switched,
    visible_groups,
)
from app.core.catalog.primitives import GROUPS_META, Primitive, PrimitiveKind


def defined(name: str, *members: str, **fields: Any) -> GroupDefinition:
    """Return a group; a member is written ``kind:name`` or ``kind:name@server``."""
    parsed = []
    for member in members:
        kind, _, rest = member.partition(":")
        named, _, server = rest.partition("@")
        parsed.append({"kind": kind, "name": named, **({"server": server} if server else {})})
    return GroupDefinition.model_validate({"name": name, "members": parsed, **fields})


def tree_of(*definitions: GroupDefinition) -> GroupTree:
    return GroupTree.build(definitions)


NESTED = tree_of(
    defined("work", "group:email", "group:calendar", "tool:clock__now"),
    defined("email", "tool:mail__*", "tool:text__spell_check", "group:drafts"),
    defined("calendar", "tool:cal__*"),
    defined("drafts", "tool:mail__draft"),
    defined("documents", "tool:text__spell_check", "group:drafts"),
)


def primitive(name: str, tree: GroupTree = NESTED, server: str = "s") -> Primitive:
    groups = tree.direct(PrimitiveKind.TOOL, name, server)
    return Primitive(PrimitiveKind.TOOL, server, name, name, {}, "", groups, tree.upward(groups))


def test_a_primitive_belongs_to_every_group_that_names_it_directly() -> None:
    assert NESTED.direct(PrimitiveKind.TOOL, "text__spell_check") == ("documents", "email")
    assert NESTED.direct(PrimitiveKind.TOOL, "mail__draft") == ("drafts", "email")
    assert NESTED.direct(PrimitiveKind.TOOL, "nobody__knows") == ()
    assert NESTED.direct(PrimitiveKind.PROMPT, "mail__draft") == ()


def test_a_member_with_a_server_means_that_server_only() -> None:
    tree = tree_of(defined("g", "tool:plain@one", "resource:file:///*@two"))

    assert tree.direct(PrimitiveKind.TOOL, "plain", "one") == ("g",)
    assert tree.direct(PrimitiveKind.TOOL, "plain", "two") == ()
    assert tree.direct(PrimitiveKind.RESOURCE, "file:///a", "two") == ("g",)
    assert tree.direct(PrimitiveKind.RESOURCE, "file:///a", "one") == ()


def test_patterns_match_wherever_their_stars_stand() -> None:
    tree = tree_of(
        defined("all", "tool:*"),
        defined("mail", "tool:mail__*"),
        defined("send", "tool:*__send", "tool:mail__*_all"),
        defined("inner", "tool:m*__*nd"),
    )

    assert tree.direct(PrimitiveKind.TOOL, "mail__send") == ("all", "inner", "mail", "send")
    assert tree.direct(PrimitiveKind.TOOL, "mail__read_all") == ("all", "mail", "send")
    assert tree.direct(PrimitiveKind.TOOL, "mail_") == ("all",)
    assert tree.direct(PrimitiveKind.PROMPT, "mail__send") == ()


def test_twenty_thousand_patterns_do_not_make_every_name_expensive() -> None:
    members = [[f"tool:server{group}_{number}__*" for number in range(2000)] for group in range(10)]
    tree = tree_of(*(defined(f"g{group}", *some) for group, some in enumerate(members)))
    tree.direct(PrimitiveKind.TOOL, "x")
    tried = sum(
        len(patterns.get("server3_77__tool"[:length], ()))
        for length, patterns in tree._patterns[PrimitiveKind.TOOL].items()
    )

    assert tree.direct(PrimitiveKind.TOOL, "server3_77__tool") == ("g3",)
    assert tried == 1


def test_upward_and_downward_reach_through_every_parent() -> None:
    assert NESTED.upward(["drafts"]) == {"drafts", "email", "documents", "work"}
    assert NESTED.downward(["work"]) == {"work", "email", "calendar", "drafts"}
    assert NESTED.parents["email"] == {"email", "work"}
    assert NESTED.upward(["no such"]) == NESTED.downward(["no such"]) == frozenset()


def test_groups_on_the_wire_omit_what_is_absent_and_name_their_direct_parents() -> None:
    tree = tree_of(
        defined("b", "group:a"),
        defined(
            "a",
            title="A",
            description="The first.",
            icons=[{"src": "https://example.com/a.png", "mimeType": "image/png"}],
            annotations={"title": "Aa", "audience": ["user"], "x-color": "red"},
            _meta={"dev.example/owner": None},
        ),
    )

    assert list(tree.wire().items()) == [
        (
            "a",
            {
                "name": "a",
                "title": "A",
                "description": "The first.",
                "annotations": {"title": "Aa", "audience": ["user"], "x-color": "red"},
                "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png"}],
                "_meta": {"dev.example/owner": None, GROUPS_META: ["b"]},
            },
        ),
        ("b", {"name": "b"}),
    ]


def test_groups_are_stamped_into_an_existing_meta_and_left_out_where_there_are_none() -> None:
    given = {"name": "calculator", "_meta": {"other": 1}}

    assert stamped(given, ("arithmetic",)) == {
        "name": "calculator",
        "_meta": {"other": 1, GROUPS_META: ["arithmetic"]},
    }
    assert stamped(given, ()) == given
    assert stamped({"name": "x"}, ()) == {"name": "x"}
    assert given == {"name": "calculator", "_meta": {"other": 1}}


def test_groups_that_another_server_claims_are_not_passed_on() -> None:
    claimed = {"name": "x", "_meta": {GROUPS_META: ["admin"], "kept": True}}

    assert stamped(claimed, ()) == {"name": "x", "_meta": {"kept": True}}
    assert stamped({"name": "x", "_meta": {GROUPS_META: ["admin"]}}, ()) == {"name": "x"}


@pytest.mark.parametrize(
    ("below", "cycle"),
    [
        ({"a": ["a"]}, ("a", "a")),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, ("a", "b", "c", "a")),
        ({"x": ["a"], "a": ["b"], "b": ["a"]}, ("a", "b", "a")),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, ()),
        ({"a": ["unknown"]}, ()),
    ],
)
def test_a_cycle_is_found_and_named(below: dict[str, list[str]], cycle: tuple[str, ...]) -> None:
    assert find_cycle(below) == cycle


def test_a_thousand_nested_groups_are_walked_without_recursion() -> None:
    chain = [defined(f"g{n:04}", *([f"group:g{n + 1:04}"] if n < 999 else [])) for n in range(1000)]
    tree = tree_of(*chain)

    assert find_cycle({name: one.subgroups for name, one in tree.groups.items()}) == ()
    assert len(tree.upward(["g0999"])) == len(tree.downward(["g0000"])) == 1000


def test_a_cycle_that_was_stored_somehow_hangs_nothing() -> None:
    tree = tree_of(defined("a", "group:b"), defined("b", "group:a"))

    assert tree.upward(["a"]) == tree.downward(["a"]) == {"a", "b"}


@pytest.mark.parametrize("name", ["Pull Requests", "compose_email", "Größe", "a", "x" * 128, "dev.x:y"])
def test_names_for_people_are_good_names(name: str) -> None:
    assert defined(name).name == name


@pytest.mark.parametrize(
    "name", ["", " a", "a ", "a/b", "a*", "a\nb", "a\u202eb", "x" * 129, ".", "..", "export", "\u00a0a"]
)
def test_names_that_a_path_a_pattern_or_a_terminal_would_misread_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        defined(name)


@pytest.mark.parametrize(
    "fields",
    [
        {"members": [{"kind": "group", "name": "a*"}]},
        {"members": [{"kind": "group", "name": "a", "server": "s"}]},
        {"members": [{"kind": "middleware", "name": "a", "server": "s"}]},
        {"members": [{"kind": "nothing", "name": "a"}]},
        {"_meta": {GROUPS_META: ["x"]}},
        {"_meta": {"x": "y" * 20_000}},
        {"icons": [{"src": "javascript:alert(1)"}]},
        {"annotations": {"priority": 2}},
        {"colour": "red"},
    ],
)
def test_definitions_that_clients_could_not_use_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        GroupDefinition.model_validate({"name": "g", **fields})


def test_members_are_the_same_in_any_order_and_count_once() -> None:
    one = defined("g", "tool:b", "tool:a", "tool:b")
    other = defined("g", "tool:a", "tool:b")

    assert one.declared() == other.declared()


def test_a_restricted_caller_sees_groups_with_something_visible_in_or_below_them() -> None:
    seen = [primitive("mail__draft")]

    assert visible_groups(NESTED, seen, restricted=True) == {"drafts", "email", "documents", "work"}
    assert visible_groups(NESTED, [], restricted=True) == frozenset()
    assert visible_groups(NESTED, [], restricted=False) == set(NESTED.groups)


def test_a_primitive_is_hidden_once_all_its_groups_are_off() -> None:
    hidden = hidden_by_session({"groups": {"disabled": ["email", "drafts"]}}, NESTED)

    assert hidden(primitive("mail__send"))
    assert not hidden(primitive("text__spell_check"))  # documents still offers it
    assert not hidden(primitive("other__tool"))  # in no group
    assert not hidden_by_session({}, NESTED)(primitive("mail__send"))


def test_what_a_session_remembers_of_groups_that_are_gone_or_odd_means_nothing() -> None:
    assert disabled_groups({"groups": {"disabled": ["gone", "email", 3]}}, NESTED) == {"email"}
    assert disabled_groups({"groups": ["email"]}, NESTED) == frozenset()


def test_switching_off_takes_groups_below_along_unless_another_parent_is_on() -> None:
    off = switched(NESTED, (), ["work"], on=False)
    assert off == {"work", "email", "calendar"}  # drafts is in documents as well

    off = switched(NESTED, off, ["documents"], on=False)
    assert off == {"work", "email", "calendar", "documents", "drafts"}

    assert switched(NESTED, off, ["email"], on=True) == {"work", "calendar", "documents"}
