"""Values in structured data are read with the names that they have there."""

import pytest

from app.core.content.context import Context
from app.core.content.leaves import Leaf
from app.core.contracts.engines import Span
from app.core.redaction.member_names import NamedTexts, personal_frame


def leaves_of(value: object, *places: str) -> list[Leaf]:
    item = {"type": "tool_use", "id": "1", "name": "run", "input": value}
    return [leaf for leaf in Context.parse([item]).leaves if leaf.place in ("tool_input", *places)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"password": "one"}, '"password": "one"'),
        ({"a/b": "one"}, "one"),
        ({"db": {"password": ["one"]}}, '"password": "one"'),
        ({"db": '{"password": "one"}'}, '"password": "one"'),
        ({"password": 'o"ne'}, '"password": \'o"ne\''),
        ({"password": "o\nne"}, "o\nne"),
        ({"password": "o" * 1_001}, "o" * 1_001),
        ({"pass\nword": "one"}, "one"),
    ],
)
def test_a_value_stands_behind_its_name(value: object, text: str) -> None:
    assert NamedTexts(leaves_of(value)).texts[-1] == text


def test_the_value_of_an_entry_has_the_name_beside_it() -> None:
    texts = NamedTexts(leaves_of({"env": [{"name": "DB_PASSWORD", "value": "one"}, {"value": "two"}]})).texts
    assert texts[1:] == ['"DB_PASSWORD": "one"', '"value": "two"']


def test_offsets_are_those_of_the_value() -> None:
    named = NamedTexts(leaves_of({"password": "one"}))
    found = [
        Span(1, 9, "NAME", 1),
        Span(13, 16, "ALL", 1),
        Span(12, 17, "QUOTED", 1),
        Span(14, 15, "PART", 1),
    ]
    assert named.spans_in_values([found]) == [
        [Span(0, 3, "ALL", 1), Span(0, 3, "QUOTED", 1), Span(1, 2, "PART", 1)]
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"dateOfBirth": "1991-07-19"}, '"date of birth": "1991-07-19"'),
        ({"cvv": 123}, '"cvv": "123"'),
        ({"status": "1991-07-19"}, "1991-07-19"),
        ({"contact": "support"}, "support"),
        ({"surname": "Frost"}, '"surname": "Frost"'),
        ({"key": "dob", "value": "1991-07-19"}, '"dob": "1991-07-19"'),
        ({"columns": ["x", "dob"], "rows": [["1", "1991-07-19"]]}, '"dob": "1991-07-19"'),
        ({"columns": ["dob", "x"], "rows": [["1", "1991-07-19"]]}, "1991-07-19"),
        ([["x", "dob"], ["1", "1991-07-19"]], '"dob": "1991-07-19"'),
        ([["x", "7"], ["dob", "1991-07-19"]], "1991-07-19"),
    ],
)
def test_only_a_name_that_tells_something_stands_before_personal_data(value: object, text: str) -> None:
    assert NamedTexts(leaves_of(value, "number"), personal_frame).texts[-1] == text
