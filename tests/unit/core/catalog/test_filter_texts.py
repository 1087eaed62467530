"""Filters of tools in one text, and what is left where two filters hold."""

import itertools

import pytest

from app.core.catalog.tool_filter import ExposedTools, parse_filters

NAMES = ["a", "b", "c", "d"]
SPELLINGS = [None, [], ["a"], ["a", "b"], ["b", "c"], ["-a"], ["-a", "-b"], ["-d"]]


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("", {}),
        ("a:x,y;c:-z", {"a": ["x", "y"], "c": ["-z"]}),
        (" a : x , y ; ", {"a": ["x", "y"]}),
        ("a:", {"a": []}),
        ("a:x:y", {"a": ["x:y"]}),
    ],
)
def test_a_text_names_tools_by_server(text: str, filters: dict[str, list[str]]):
    assert parse_filters(text) == filters


@pytest.mark.parametrize("text", ["a", ":x", "a:x;a:y", "a:x,-y"])
def test_a_text_that_could_mean_two_things_is_refused(text: str):
    with pytest.raises(ValueError, match="filter"):
        parse_filters(text)


@pytest.mark.parametrize(("one", "two"), list(itertools.product(SPELLINGS, SPELLINGS)))
def test_what_two_filters_allow_is_what_each_of_them_allows(one: list[str] | None, two: list[str] | None):
    first, second = ExposedTools.parse(one), ExposedTools.parse(two)
    both = first.narrowed(second)
    allowed = [name for name in NAMES if both.allows(name)]
    assert allowed == [name for name in NAMES if first.allows(name) and second.allows(name)]
    again = ExposedTools.parse(both.spelled())
    assert [name for name in NAMES if again.allows(name)] == allowed
