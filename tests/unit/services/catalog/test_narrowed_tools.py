"""A list of tools narrowed to some of them keeps what the policy always lists, and is never empty by accident."""

import pytest

from app.core.catalog.primitives import PrimitiveKind
from app.core.contracts.policy import Policy, ToolListing
from app.services.catalog.listing import CallerView
from app.services.catalog.tool_lists import narrowing_to
from tests.catalogs import catalog_of, primitive, tool

CATALOG = catalog_of(
    tool("files", "read"),
    tool("mail", "send"),
    tool("crm", "find"),
    primitive(PrimitiveKind.PROMPT, "mail", "greet"),
)


def view_of(**rules: list[str]) -> CallerView:
    policy = Policy(tool_listing=ToolListing(**rules))
    return CallerView(CATALOG, policy, 1, CATALOG.primitives, restricted=False)


def kept(view: CallerView, *names: str) -> list[str] | None:
    narrowed = narrowing_to(view, names)
    return None if narrowed is None else [one.name for one in view.all if narrowed.keeps(one)]


@pytest.mark.parametrize(
    ("rules", "names", "expected"),
    [
        ({}, ["files__read"], ["files__read", "greet"]),
        ({}, ["files__read", "gone"], ["files__read", "greet"]),
        ({}, ["gone"], None),
        ({}, [], ["greet"]),
        ({"pinned": ["mail__send"]}, ["files__read"], ["files__read", "mail__send", "greet"]),
        ({"always_servers": ["crm"]}, ["files__read"], ["files__read", "crm__find", "greet"]),
        ({"pinned": ["mail__send"]}, ["gone"], None),
        ({"pinned": ["mail__send"]}, [], ["mail__send", "greet"]),
    ],
)
def test_what_stays_in_a_list(
    rules: dict[str, list[str]], names: list[str], expected: list[str] | None
) -> None:
    found = kept(view_of(**rules), *names)
    assert found == (None if expected is None else [one.replace("greet", "mail__greet") for one in expected])


def test_lists_that_hold_the_same_tools_have_one_key_and_others_have_not() -> None:
    def key(view: CallerView, *names: str) -> str:
        narrowed = narrowing_to(view, names)
        assert narrowed is not None
        return narrowed.key

    plain = view_of()
    assert key(plain, "files__read", "mail__send") == key(plain, "mail__send", "files__read")
    keys = {
        key(plain, "files__read"),
        key(plain, "mail__send"),
        key(view_of(pinned=["crm__find"]), "files__read"),
        key(view_of(always_servers=["crm"]), "files__read"),
    }
    assert len(keys) == 4
