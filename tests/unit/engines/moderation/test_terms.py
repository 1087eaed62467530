"""Terms and patterns of callers are matched on RE2: whole words, any case, linear time."""

import pytest

from app.core.contracts.engines import InvalidPatternError, TermList
from app.engines.moderation.terms import Re2TermMatcher
from tests.fakes_moderation import FakeTermMatcher


@pytest.fixture(params=[Re2TermMatcher, FakeTermMatcher])
def matcher(request):
    return request.param()


async def test_terms_are_whole_words_in_any_case(matcher) -> None:
    lists = [TermList(terms=("Acme Corp", "c++"))]
    texts = ["we left ACME CORP.", "acme corporate", "I write C++ code", "", "acme", "Acme Corp"]
    assert await matcher.match(texts, lists) == [
        frozenset(found) for found in ({0}, set(), {0}, set(), set(), {0})
    ]


async def test_lists_are_told_apart(matcher) -> None:
    lists = [TermList(terms=("a",)), TermList(patterns=(r"\d{3}", "never")), TermList()]
    assert await matcher.match(["a 123", "b 12"], lists) == [frozenset({0, 1}), frozenset()]
    assert await matcher.match(["a"], []) == [frozenset()]


async def test_a_wrong_pattern_is_named_by_its_place(matcher) -> None:
    with pytest.raises(InvalidPatternError) as refused:
        await matcher.match(["x"], [TermList(), TermList(patterns=("a", "(b"))])
    assert (refused.value.position, refused.value.pattern) == (1, 1)


async def test_terms_of_other_scripts_and_disguised_ones_are_found() -> None:
    lists = [TermList(terms=("b\u00fcro", "\u79d8\u5bc6"))]
    texts = [
        "im B\u00dcRO.",
        "\u300c\u79d8\u5bc6\u300d",
        "b\u00fc\u200bro",
        "\uff42\u00fc\uff52\uff4f",
        "b\u00fcros",
    ]
    found = await Re2TermMatcher().match(texts, lists)
    assert [bool(one) for one in found] == [True, True, True, True, False]


@pytest.mark.parametrize("pattern", ["(?:a{1,1000}){1,1000}", "(?=a)", r"(a)\1"])
async def test_patterns_that_need_too_much_or_are_no_re2_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidPatternError):
        await Re2TermMatcher().match(["x"], [TermList(patterns=(pattern,))])


async def test_a_pattern_that_explodes_elsewhere_ends_in_time() -> None:
    lists = [TermList(patterns=("(a+)+$", "(x+x+)+y"))]
    assert await Re2TermMatcher().match(["a" * 50_000 + "!", "x" * 50_000], lists) == [frozenset()] * 2
