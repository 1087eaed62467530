"""What is found in a text that stands for several leaves is found in each leaf that it touches."""

from app.core.content.context import Context
from app.core.contracts.engines import Span
from app.core.redaction.joined_values import JoinedValue

LEAVES = Context.parse(["12", "34", "56"]).leaves
VALUE = JoinedValue("ssn: 123456", 5, (0, 1, 2), (7, 9, 11))


def test_a_leaf_takes_the_longest_finding_that_touches_it_and_of_these_the_surest():
    findings = [
        Span(8, 11, "late", 0.9),
        Span(0, 9, "unsure", 0.4),
        Span(0, 9, "long", 0.5),
    ]
    assert list(VALUE.spans(findings, LEAVES)) == [
        (0, Span(0, 2, "long", 0.5)),
        (1, Span(0, 2, "long", 0.5)),
        (2, Span(0, 2, "late", 0.9)),
    ]


def test_a_finding_in_front_of_the_value_is_none():
    assert list(VALUE.spans([Span(0, 5, "name", 1.0)], LEAVES)) == []
