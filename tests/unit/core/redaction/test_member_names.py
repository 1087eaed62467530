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
        ({"schema": {"columns": ["x", "dob"]}, "rows": [["1", "1991-07-19"]]}, '"dob": "1991-07-19"'),
        (
            {"schema": "columns", "meta": None, "metadata": ["columns"], "dob": "1991-07-19"},
            '"dob": "1991-07-19"',
        ),
        ([["x", "dob"], ["1", "1991-07-19"]], '"dob": "1991-07-19"'),
        ([["x", "7"], ["dob", "1991-07-19"]], "1991-07-19"),
    ],
)
def test_only_a_name_that_tells_something_stands_before_personal_data(value: object, text: str) -> None:
    assert NamedTexts(leaves_of(value, "number"), personal_frame).texts[-1] == text


def test_a_joined_value_covers_its_elements_and_leaves_what_was_found_in_one_alone() -> None:
    leaves = leaves_of({"ssn": [4, 1, 2], "x": "y"}, "number")
    named = NamedTexts(leaves, personal_frame)
    assert named.texts == ['"ssn": "4"', '"ssn": "1"', '"ssn": "2"', "y", '"ssn": "412"']
    found = [[], [Span(8, 9, "PIN", 0.5)], [], [], [Span(8, 11, "SSN", 0.4), Span(0, 3, "NAME", 1)]]
    assert named.spans_in_values(found) == [
        [Span(0, 1, "SSN", 0.4)],
        [Span(0, 1, "PIN", 0.5)],
        [Span(0, 1, "SSN", 0.4)],
        [],
    ]


def test_a_short_number_without_a_name_is_not_scanned() -> None:
    leaves = leaves_of({"columns": ["cvv", "n"], "rows": [[123, 4711], [1.25, 33]]}, "number")
    texts = NamedTexts(leaves, personal_frame).texts
    assert texts == ["cvv", "n", '"cvv": "123"', "", '"cvv": "1.25"', ""]


def test_a_number_in_hexadecimal_is_also_read_in_decimals_where_it_is_named() -> None:
    leaves = leaves_of({"ssn": "0x18992451", "color": "0x18992451", "pin": "0x12"})
    assert NamedTexts(leaves, personal_frame).texts[3:] == ['"ssn": "412689489"']
