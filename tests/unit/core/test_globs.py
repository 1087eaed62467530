"""Patterns with ``*``: whole names, nothing special but the star, time linear in the text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.globs import Glob


@pytest.mark.parametrize(
    ("pattern", "fitting", "foreign"),
    [
        ("git__log", ["git__log"], ["git__log2", "xgit__log", "Git__log", ""]),
        ("git__*", ["git__", "git__log"], ["git_", "xgit__log"]),
        ("*__delete", ["a__delete", "__delete"], ["a__delete2"]),
        ("a*b*c", ["abc", "a1b2c", "abbcc"], ["ac", "acb", "abcd"]),
        ("*", ["", "anything"], []),
        ("**", ["", "x"], []),
        ("a**b", ["ab", "axb"], ["a"]),
        ("a*a", ["aa", "aba"], ["a"]),
        ("*ab*ab*", ["abab", "xabyabz"], ["aba", "ab"]),
        ("", [""], ["x"]),
        ("a?b[c].d", ["a?b[c].d"], ["axbc.d", "a?b[c]xd"]),
        ("a*\n", ["a\n", "ab\n"], ["ab"]),
    ],
)
def test_a_pattern_fits_whole_names(pattern, fitting, foreign):
    assert [name for name in fitting if not Glob(pattern).matches(name)] == []
    assert [name for name in foreign if Glob(pattern).matches(name)] == []


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_a_pattern_fits_what_the_regular_expression_fits(pattern, name):
    meant = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
    assert Glob(pattern).matches(name) is (meant.fullmatch(name) is not None)


def test_only_a_pattern_without_a_star_is_literal_and_equal_patterns_are_equal():
    assert [Glob(pattern).literal for pattern in ("a", "", "a*", "*")] == [True, True, False, False]
    assert Glob("a*") == Glob("a*")
    assert len({Glob("a*"), Glob("a*"), Glob("b*")}) == 2


def test_a_hostile_pattern_ends():
    assert not Glob("*a" * 1000 + "b").matches("a" * 100_000)
