"""Which tools a filter exposes, how two filters meet, and how a filter is written on one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog.tool_filter import ExposedTools, parse_filters

NAMES = ["get", "set", "delete", "list"]
SPELLINGS = st.one_of(
    st.none(),
    st.lists(st.sampled_from(NAMES), max_size=4),
    st.lists(st.sampled_from([f"-{name}" for name in NAMES]), min_size=1, max_size=4),
)


def allowed(names):
    found = ExposedTools.parse(names)
    return [name for name in NAMES if found.allows(name)]


def test_none_is_all_and_an_empty_list_is_none():
    assert allowed(None) == NAMES
    assert allowed([]) == []


def test_names_are_the_only_ones_and_negative_names_the_only_ones_missing():
    assert allowed(["set", "get", "absent"]) == ["get", "set"]
    assert allowed(["-delete", "-absent"]) == ["get", "set", "list"]


def test_only_the_first_minus_is_a_sign():
    assert ExposedTools.parse(["--dry"]).allows("-dry") is False
    assert ExposedTools.parse(["a-b"]).allows("a-b") is True


@pytest.mark.parametrize(
    "names", [["get", "-set"], ["-get", "set", "-delete"], "get", "-get", "", [1], [None]]
)
def test_mixed_signs_and_what_is_no_list_of_names_are_refused(names):
    with pytest.raises(ValueError, match="tool filter"):
        ExposedTools.parse(names)


@given(SPELLINGS, SPELLINGS)
def test_a_narrowed_filter_allows_what_both_allow(first, second):
    both = ExposedTools.parse(first).narrowed(ExposedTools.parse(second))
    for name in [*NAMES, "other"]:
        assert both.allows(name) is (
            ExposedTools.parse(first).allows(name) and ExposedTools.parse(second).allows(name)
        )


@given(SPELLINGS)
def test_a_spelled_filter_reads_as_the_same(names):
    written = ExposedTools.parse(names).spelled()
    assert [ExposedTools.parse(written).allows(name) for name in NAMES] == [
        ExposedTools.parse(names).allows(name) for name in NAMES
    ]


def test_a_line_of_filters_is_read():
    assert parse_filters("a:x,y;c:-z") == {"a": ["x", "y"], "c": ["-z"]}
    assert parse_filters(" a : x , y ;; b: ") == {"a": ["x", "y"], "b": []}
    assert parse_filters("") == {}


@pytest.mark.parametrize("text", ["a", "a:x;b", ":x", "a:x;a:y", "a:x,-y"])
def test_a_line_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="filter"):
        parse_filters(text)
