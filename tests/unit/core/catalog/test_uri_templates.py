"""Whether a URI fits a template, also where the template means harm."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.catalog.uri_templates import literal_characters, template_matches


def test_templates_match_what_rfc_6570_expands_them_to():
    cases = {
        "x://{a}": (["x://1", "x://", "x://a%2Fb", "x://é"], ["x://a/b", "x://a?b", "y://1"]),
        "x://{+a}": (["x://1/2?3#4", "x://"], ["y://"]),
        "x://r{/a,b}": (["x://r", "x://r/1", "x://r/1/2"], ["x://r1", "x://r/1?2"]),
        "x://r{?q,n}": (["x://r", "x://r?q=1&n=2"], ["x://rq=1", "x://r?q=1#f"]),
        "x://r?a=1{&b}": (["x://r?a=1", "x://r?a=1&b=2"], ["x://r?a=1b=2"]),
        "x://r{#f}": (["x://r", "x://r#a/b"], ["x://ra"]),
        "x://r{.ext}": (["x://r.md", "x://r.tar.gz"], ["x://rmd"]),
        "x://r{;p}": (["x://r;p=1"], ["x://rp"]),
        "{a}-{b}": (["1-2", "1-2-3", "-"], ["12"]),
        "x://{a}/{b}": (["x://1/2"], ["x://1/2/3"]),
        "x://plain": (["x://plain"], ["x://plain2", "x://plai"]),
        "x://{unclosed": (["x://{unclosed"], ["x://1"]),
    }
    for template, (fitting, foreign) in cases.items():
        assert [uri for uri in fitting if not template_matches(template, uri)] == [], template
        assert [uri for uri in foreign if template_matches(template, uri)] == [], template


def test_a_template_of_very_many_expressions_matches_nothing_and_a_hostile_one_ends():
    assert template_matches("{+a}" * 16, "a" * 2000)
    assert not template_matches("{+a}" * 17, "a" * 2000)
    assert not template_matches("{+a}x" * 16 + "y", "x" * 2000)


@given(st.lists(st.text("abc%20", min_size=1), min_size=1, max_size=5))
def test_what_a_simple_template_expands_to_fits_it(values):
    template = "x://" + "/".join(f"{{v{number}}}" for number in range(len(values)))
    assert template_matches(template, "x://" + "/".join(values))


def test_literal_characters_are_those_outside_the_expressions():
    assert [literal_characters(template) for template in ("x://{a}/y", "{+a}", "x", "x{a")] == [6, 0, 1, 3]
