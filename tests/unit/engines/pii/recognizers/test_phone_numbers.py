"""Phone numbers are judged as Google's number plans judge them, and looked for only where one may begin."""

import random

import phonenumbers
import pytest

from app.engines.pii.recognizers.phone import REGIONS, phone_numbers

NATIONAL, NEITHER = 0.4, 0.1


def scores(text: str) -> dict[str, float]:
    return {text[start:end]: score for start, end, score in phone_numbers(text)}


def valid_somewhere(number: str) -> bool:
    """Say whether any plan knows the number, asking the library for every region."""
    for region in REGIONS:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False


def test_a_national_number_counts_as_much_as_the_number_plans_say() -> None:
    rng = random.Random(4)
    starts = ["0", "01", "08", "03", "0183", "003768", "014", "001", "010"]
    numbers = {
        f"{rng.choice(starts)}{rng.randrange(1000)} {rng.randrange(10**3, 10**8)} 1" for _ in range(600)
    }
    judged = [number for number in numbers if scores(number).get(number) in (NATIONAL, NEITHER)]
    valid = [number for number in judged if valid_somewhere(number)]
    assert [number for number in judged if scores(number)[number] == NATIONAL] == valid
    assert len(judged) > 400
    assert 50 < len(valid) < len(judged) - 50


@pytest.mark.parametrize("region", [region for region in REGIONS if region not in ("US", "ES", "MX", "PL")])
def test_the_example_of_every_plan_is_found(region: str) -> None:
    example = phonenumbers.example_number(region)
    assert example is not None
    written = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.NATIONAL)
    assert scores(f"Tel {written}, thanks") == {written: scores(written)[written]}


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-16T10:20:30Z",
        "0.5616996995517071",
        "1." + "2" * 30,
        "202-555-0143k",
        "a1234567",
    ],
)
def test_a_time_or_a_fraction_is_no_number_and_hides_none_behind_it(text: str) -> None:
    assert scores(text) == {}
    assert scores(f"{text}, 202-555-0143") == {"202-555-0143": 0.6}


@pytest.mark.parametrize(
    "text", ["(202) 555-0143", "+1 (202) 555-0143", "202-555-0143 x12", "202-555-0143 ext. 7"]
)
def test_a_number_is_found_to_its_last_digit(text: str) -> None:
    assert list(scores(f"call {text}; or 12345 x 12 345 678")) == [text]
