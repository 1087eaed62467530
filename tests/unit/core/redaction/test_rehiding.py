"""Originals that a tool was given are hidden again in what it returns, however it spells them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.redaction.rehiding import Restored, texts_of

JOHN = Restored({"John Doe": "[PERSON_1]", "123-45-6789": "[SSN_1]", "Al": "[PERSON_2]"})


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        ("Hello John Doe!", "Hello [PERSON_1]!"),
        ("xJohn Doex", "x[PERSON_1]x"),
        ("JOHN DOE, john doe", "[PERSON_1], [PERSON_1]"),
        (
            {"John Doe": ["John Doe", {"a": "n 123-45-6789"}]},
            {"[PERSON_1]": ["[PERSON_1]", {"a": "n [SSN_1]"}]},
        ),
        ("https://example.com/?q=John Doe", "https://example.com/?q=[PERSON_1]"),
        ("Al and Also", "[PERSON_2] and Also"),
        ("Hello [PERSON_1]", "Hello [PERSON_1]"),
        ([1, True, None, 1.5], [1, True, None, 1.5]),
    ],
)
def test_a_known_original_is_replaced_wherever_it_stands(given_value, expected):
    assert JOHN.hidden(given_value) == expected


def test_an_original_inside_json_inside_json_is_found():
    known = Restored({'Zoë "Z" O\'Hara\n': "[PERSON_1]"})
    once = json.dumps({"name": 'Zoë "Z" O\'Hara\n'})
    twice = json.dumps({"inner": once})
    for text in (once, twice, json.dumps({"name": 'Zoë "Z" O\'Hara\n'}, ensure_ascii=False)):
        assert "Hara" not in known.hidden(text)
        assert "[PERSON_1]" in known.hidden(text)


def test_a_number_that_is_the_original_is_replaced():
    assert Restored({"4111111111111111": "[CREDIT_CARD_1]"}).hidden({"n": 4111111111111111}) == {
        "n": "[CREDIT_CARD_1]"
    }


@pytest.mark.parametrize(
    "shown",
    ["John%20Doe", "John+Doe", "q=john%20doe&n=1", "123456789", "id123456789", 123456789],
)
def test_an_original_in_a_uri_or_without_its_separators_is_replaced(shown):
    hidden = str(JOHN.hidden({"n": shown}))
    assert "[PERSON_1]" in hidden or "[SSN_1]" in hidden
    assert "456" not in hidden
    assert "doe" not in hidden.lower()


def test_short_numbers_and_a_leading_zero():
    known = Restored({"012-34-56789": "[SSN_1]", "4-2": "[WORD_1]"})
    assert known.hidden([123456789, 42, "42"]) == ["[SSN_1]", 42, "42"]


def test_the_longest_original_wins():
    both = Restored({"John": "[PERSON_1]", "John Doe": "[PERSON_2]"})
    assert both.hidden("John Doe and John") == "[PERSON_2] and [PERSON_1]"


def test_handles_that_stand_there_stay_whole():
    odd = Restored({"PERSON": "[WORD_1]", "1": "[NUMBER_1]"})
    assert odd.hidden("[PERSON_1] is a person, 1") == "[PERSON_1] is a [WORD_1], [NUMBER_1]"


def test_an_original_that_is_a_word_of_the_protocol_breaks_nothing():
    known = Restored({"text": "[WORD_1]", "content": "[WORD_2]"})
    block = {"type": "text", "text": "the text and content", "_meta": {"text": "content"}}
    assert known.hidden(block) == {
        "type": "text",
        "text": "the [WORD_1] and [WORD_2]",
        "_meta": {"text": "[WORD_2]"},
    }


def test_without_originals_nothing_changes():
    value = {"a": ["b", 1]}
    assert Restored({}).hidden(value) == value


@given(st.text(min_size=3), st.text(), st.text())
def test_no_original_of_three_letters_or_more_survives(original, before, after):
    hidden = Restored({original: "\x00"}).hidden(before + original + after)
    assert original not in hidden or original.strip("\x00") == ""


def test_every_string_of_a_value_is_seen():
    assert sorted(texts_of({"a": ["b", {"c": 1}], "d": "e"})) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("original", "shown", "is_hidden"),
    [
        ("12-345-67", "1234567", True),
        ("12-345-6", "123456", False),
        ("012-345-67", "1234567", True),
        ("00-123-456", "123456", False),
        ("12/34.5(6) 7", "1234567", True),
    ],
)
def test_a_number_of_seven_digits_is_hidden_without_what_stands_between_them(
    original: str, shown: str, is_hidden: bool
) -> None:
    assert (Restored({original: "[N_1]"}).hidden(shown) == "[N_1]") is is_hidden


def test_every_handle_that_stands_there_stays_whole_and_everything_between_is_looked_at() -> None:
    odd = Restored({"PERSON": "[WORD_1]", "and": "[WORD_2]"})
    text = "PERSON [PERSON_1] and [PERSON_2] and PERSON"
    assert odd.hidden(text) == "[WORD_1] [PERSON_1] [WORD_2] [PERSON_2] [WORD_2] [WORD_1]"


def test_a_kind_stays_only_as_a_kind() -> None:
    known = Restored({"user": "[WORD_1]", "odd": "[WORD_2]"})
    assert known.hidden({"role": "user", "type": "odd", "title": "user"}) == {
        "role": "user",
        "type": "[WORD_2]",
        "title": "[WORD_1]",
    }


def test_of_two_letters_only_a_word_of_its_own_is_hidden_and_of_three_every_place() -> None:
    assert Restored({"Al": "[P_1]"}).hidden("Al, Alice, al") == "[P_1], Alice, [P_1]"
    assert Restored({"Ali": "[P_1]"}).hidden("Alice") == "[P_1]ce"


@pytest.mark.parametrize(
    ("original", "spelled"),
    [
        ("Jane/John Doe", "Jane%2FJohn%20Doe"),
        ("Jane/John Doe", "Jane/John%20Doe"),
        ("Jane/John Doe", "Jane%2FJohn+Doe"),
        ("030/1234 5678", "030/1234%205678"),
        ("030/1234 5678", "03012345678"),
        ("030/1234 5678", "3012345678"),
    ],
)
def test_an_original_is_found_as_addresses_and_numbers_spell_it(original, spelled):
    known = Restored({original: "[X_1]"})
    assert known.hidden(f"https://example.com/?q={spelled}&n=1") == "https://example.com/?q=[X_1]&n=1"
