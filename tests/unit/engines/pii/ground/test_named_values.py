"""A value is told by its member's name only where it is as long as such values are."""

import pytest

from app.engines.pii.ground.named_values import named_value


@pytest.mark.parametrize(
    ("digits", "is_card"), [(11, False), (12, True), (13, True), (16, True), (19, True), (20, False)]
)
def test_the_number_of_a_card_has_twelve_to_nineteen_digits(digits: int, is_card: bool) -> None:
    number = "41112222333344445555"[:digits]
    frame = '"card number": "'
    place = (len(frame), len(frame) + digits, "CREDIT_CARD") if is_card else None
    assert named_value(f'{frame}{number}"') == place


def test_other_numbers_may_be_shorter_and_longer_than_a_card() -> None:
    for number in ("66012", "660121", "66012177004", "66012177004882201744"):
        place = named_value(f'"ssn": "{number}"')
        assert (place is not None and place[2] == "US_SSN") == (len(number) >= 6), number


@pytest.mark.parametrize(
    "value", ["meier", "Meier", "de la cruz", "frost, autumn", "o'brien-smith", "J. R. Ewing", "петров"]
)
def test_a_member_for_the_name_of_a_person_holds_one_in_whatever_letters(value: str) -> None:
    frame = '"last name": "'
    assert named_value(f'{frame}{value}"') == (len(frame), len(frame) + len(value), "PERSON")


@pytest.mark.parametrize(
    "value", ["string", "last name", "NULL", "x", "k8s-node", "a_b", "asc", "see the list of all the names"]
)
def test_what_stands_for_a_name_in_a_schema_or_a_table_is_none(value: str) -> None:
    assert named_value(f'"last name": "{value}"') is None


@pytest.mark.parametrize("name", ["customer name", "file name", "name", "class name", "first name of file"])
def test_a_member_that_may_name_something_else_says_nothing(name: str) -> None:
    assert named_value(f'"{name}": "meier"') is None
