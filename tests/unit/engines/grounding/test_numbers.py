"""Which numbers, amounts and dates the sources bear out."""

import pytest

from tests.unit.engines.grounding.checking import findings, found_texts


@pytest.mark.parametrize(
    ("known", "answer"),
    [
        ("1,000 users", "1000 users"),
        ("1000 users", "1k users"),
        ("1,234,567 people", "about 1.2 million people"),
        ("$1,200 a year", "$1.2k a year"),
        ("USD 1200", "1,200 dollars"),
        ("\u20ac5 million", "5,000,000 euros"),
        ("5 km", "5000 m"),
        ("5 km long", "a 5-kilometer track"),
        ("50 %", "50% of it"),
        ("50 percent", "0.5 of it"),
        ("a ratio of 0.5", "50 %"),
        ("2 hours", "120 minutes"),
        ("3 years", "36 months"),
        ("On 2025-10-04", "on October 4, 2025"),
        ("4th of October 2025", "2025-10-04T10:00:00Z"),
        ("10/04/2025", "4 October 2025"),
        ("seventeen ships", "17 ships"),
        ("in 1969", "in 1969."),
        ("1.5 GB", "1500 MB"),
        ("3.14159", "3.14"),
        ("open from 9:00 to 17:30", "open between 9 and 17"),
        ("size 10 and 20", "1. First\n2. Second\n3) Third"),
        ("nothing", "version `v1.2.3` and https://a.dev/123/456 and [PERSON_12]"),
    ],
)
async def test_the_same_quantity_in_another_form_is_known(known, answer):
    assert await found_texts("numbers", answer, known) == []


@pytest.mark.parametrize(
    ("known", "answer", "wrong"),
    [
        ("14 engineers", "The team has 41 engineers.", "41"),
        ("$1,200", "It costs $1,300.", "$1,300"),
        ("5 km", "It is 6000 m long.", "6000 m"),
        ("in 1969", "It was in 1968.", "1968"),
        ("2025-10-04", "It came on October 5, 2025.", "October 5, 2025"),
        ("50 %", "It was 60 %.", "60 %"),
        ("at 9:00 for \u20ac8", "It costs \u20ac9.", "\u20ac9"),
        ("1,234,567", "There were 1.3 million.", "1.3 million"),
    ],
)
async def test_another_quantity_is_found(known, answer, wrong):
    assert await found_texts("numbers", answer, known) == [wrong]


async def test_another_number_of_the_same_thing_is_held_against_the_one_that_is_there():
    (found,) = await findings("numbers", "The team has 41 engineers.", "Our 14 engineers are new.")
    assert found.severity == "high"
    assert found.place is not None
    assert "Our 14 engineers are new."[found.place.start : found.place.end] == "14"


@pytest.mark.parametrize(
    ("known", "answer", "severities"),
    [
        ("One costs \u20ac250, the other \u20ac320.", "Together they cost \u20ac570.", ["low"]),
        (
            "\u20ac49 for 5 users, \u20ac8 for each other",
            "\u20ac40 for five more makes \u20ac89.",
            ["low", "low"],
        ),
        ("17 ships and \u20ac8", "It costs \u20ac9.", ["medium"]),
        ("40 of 160 people", "That is 25 %.", ["low"]),
    ],
)
async def test_what_follows_from_other_numbers_is_a_remark(known, answer, severities):
    assert [one.severity for one in await findings("numbers", answer, known)] == severities
