"""How large a group may be, to the very bound, and what nesting reaches."""

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
from app.core.catalog.primitives import GROUPS_META, Member, PrimitiveKind
from app.core.strictjson import dumps
from tests.catalogs import tool


def group(name: str, *below: str, tools: tuple[str, ...] = (), **fields: Any) -> GroupDefinition:
    members = [Member(kind=PrimitiveKind.GROUP, name=one) for one in below]
    members += [Member(kind=PrimitiveKind.TOOL, name=one) for one in tools]
    return GroupDefinition(name=name, members=members, **fields)


ICON = {"src": "https://x/i.png"}
ROOM = 16_384 - len(dumps({"a": ""}))


@pytest.mark.parametrize(
    ("fits", "exceeds"),
    [
        ({"name": "a" * 128}, {"name": "a" * 129}),
        ({"title": "a" * 256}, {"title": "a" * 257}),
        ({"description": "a" * 4096}, {"description": "a" * 4097}),
        ({"icons": [ICON] * 16}, {"icons": [ICON] * 17}),
        ({"_meta": {"a": "b" * ROOM}}, {"_meta": {"a": "b" * (ROOM + 1)}}),
        ({"annotations": {"priority": 1}}, {"annotations": {"priority": 1.01}}),
        ({"annotations": {"title": "a" * 256}}, {"annotations": {"title": "a" * 257}}),
        ({"members": [{"kind": "tool", "name": "a"}] * 2000}, {"members": [{"kind": "tool", "name": "a"}] * 2001}),
        ({"members": [{"kind": "tool", "name": "a" * 2048}]}, {"members": [{"kind": "tool", "name": "a" * 2049}]}),
    ],
)  # fmt: skip
def test_the_bound_itself_fits_and_one_more_does_not(fits: dict[str, Any], exceeds: dict[str, Any]) -> None:
    GroupDefinition.model_validate({"name": "g", **fits})
    with pytest.raises(ValidationError):
        GroupDefinition.model_validate({"name": "g", **exceeds})


@pytest.mark.parametrize("name", ["export", ".", "..", " a", "a ", "a/b", "a*", "a\nb", "a\u202eb", ""])
def test_names_that_cannot_stand_in_a_path_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        GroupDefinition(name=name)


@pytest.mark.parametrize("name", ["a", "a b", "...", "exports", "\u00e9"])
def test_other_names_are_fine(name: str) -> None:
    assert GroupDefinition(name=name).name == name


@pytest.mark.parametrize("src", ["HTTPS://x", "http://x", "data:image/png;base64,AA=="])
def test_an_icon_is_fetched_from_the_web_or_stands_there_itself(src: str) -> None:
    GroupDefinition(name="g", icons=[{"src": src}])
    with pytest.raises(ValidationError):
        GroupDefinition(name="g", icons=[{"src": f"x{src}"}])


def test_members_that_do_not_exist_are_left_out_of_what_is_reached() -> None:
    tree = GroupTree.build([group("a", "b", "gone"), group("b", "c"), group("c")])
    assert tree.downward(["a", "lost"]) == {"a", "b", "c"}
    assert tree.upward(["c", "lost"]) == {"a", "b", "c"}
    assert tree.parents["a"] == {"a"}
    assert tree.direct(PrimitiveKind.GROUP, "gone") == ("a",)


def test_a_group_below_two_others_belongs_to_both_and_a_circle_ends() -> None:
    tree = GroupTree.build([group("a", "c"), group("b", "c"), group("c", "a")])
    assert tree.upward(["c"]) == {"a", "b", "c"}
    assert tree.downward(["a"]) == {"a", "c"}
    assert find_cycle({"a": ["c"], "b": ["c"], "c": ["a"]}) == ("a", "c", "a")
    assert find_cycle({"a": ["b", "c"], "b": ["c"], "c": []}) == (), "two ways to one group are no circle"
    assert find_cycle({"a": ["a"]}) == ("a", "a")


def test_a_pattern_names_by_server_and_the_more_exact_name_does_not_take_from_it() -> None:
    some = GroupDefinition(
        name="some",
        members=[
            Member(kind=PrimitiveKind.TOOL, name="mail__*", server="mail"),
            Member(kind=PrimitiveKind.TOOL, name="mail__send", server="other"),
        ],
    )
    every = group("every", tools=("*",))
    tree = GroupTree.build([some, every])
    assert tree.direct(PrimitiveKind.TOOL, "mail__send", "mail") == ("every", "some")
    assert tree.direct(PrimitiveKind.TOOL, "mail__send", "other") == ("every", "some")
    assert tree.direct(PrimitiveKind.TOOL, "mail__read", "other") == ("every",)
    assert tree.direct(PrimitiveKind.PROMPT, "mail__send", "mail") == ()


def test_off_takes_along_what_no_other_group_holds_on_and_on_takes_all_below() -> None:
    tree = GroupTree.build([group("a", "c", "d"), group("b", "c"), group("c", "e"), group("d"), group("e")])
    assert switched(tree, (), ["a"], on=False) == {"a", "d"}
    assert switched(tree, {"b"}, ["a"], on=False) == {"a", "b", "c", "d", "e"}
    assert switched(tree, (), ["gone"], on=False) == set()
    assert switched(tree, {"a", "c", "d", "e", "b"}, ["a"], on=True) == {"b"}


def test_a_primitive_is_hidden_only_with_all_its_groups() -> None:
    tree = GroupTree.build([group("a"), group("b")])

    def hidden(off: Any, *groups: str) -> bool:
        return hidden_by_session({"groups": {"disabled": off}}, tree)(tool("s", "t", groups=groups))

    assert hidden(["a", "b"], "a", "b")
    assert not hidden(["a"], "a", "b")
    assert not hidden(["a", "b"])
    assert not hidden([], "a")
    assert disabled_groups({"groups": {"disabled": ["a", "gone", 7]}}, tree) == {"a"}
    assert disabled_groups({"groups": "a"}, tree) == set()


def test_who_sees_only_some_primitives_sees_their_groups_and_those_above() -> None:
    tree = GroupTree.build([group("a", "b"), group("b"), group("c")])
    seen = [tool("s", "t", groups=("b",))]
    assert visible_groups(tree, seen, restricted=True) == {"a", "b"}
    assert visible_groups(tree, [], restricted=True, more=["c"]) == {"c"}
    assert visible_groups(tree, [], restricted=False) == {"a", "b", "c"}


def test_the_groups_that_a_server_names_itself_are_taken_out() -> None:
    theirs = {"name": "t", "_meta": {GROUPS_META: ["theirs"]}}
    assert stamped(theirs, []) == {"name": "t"}
    assert stamped(theirs, ["ours"]) == {"name": "t", "_meta": {GROUPS_META: ["ours"]}}
    kept = {"name": "t", "_meta": {GROUPS_META: ["theirs"], "x": 1}}
    assert stamped(kept, []) == {"name": "t", "_meta": {"x": 1}}
    plain = {"name": "t", "_meta": {}}
    assert stamped(plain, []) is plain
