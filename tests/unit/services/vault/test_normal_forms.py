"""Spellings of one value share a normal form, and values of two people never do."""

import pytest

from app.services.vault.normal_forms import searched_forms, stored_form

SAME = [
    (
        "PERSON",
        "José García",
        ["jose garcia", "JOSÉ  GARCÍA", "Jose\u0301 Garci\u0301a", " José\u00a0García\n"],
    ),
    ("PERSON", "Seán O'Brien", ["sean o\u2019brien", "SEAN O'BRIEN"]),
    ("PERSON", "Weiß", ["WEISS"]),
    ("EMAIL", "Jane.Smith@Example.com", ["jane.smith@example.com"]),
    ("PHONE", "+1 (415) 555-2671", ["415-555-2671", "14155552671", "001 415 555 2671", "(415) 555.2671"]),
    ("PHONE", "415 555 2671", ["+14155552671", "1-415-555-2671"]),
    ("PHONE", "030 1234567", ["+49 30 1234567", "+49 (0)30 12345 67", "0049 30 1234567", "030/1234567"]),
    ("PHONE", "+49 (0)30 1234567", ["030 1234567", "+49 30 1234567", "(+49) 30 1234567"]),
    ("PHONE", "\uff10\uff13\uff10 1234567", ["+49301234567"]),
    ("PHONE", "+39 06 12345678", ["06 12345678", "0039 06 1234 5678"]),
    ("PHONE", "(415) 555-2671 ext. 12", ["+1 415 555 2671 x12"]),
    ("CARD", "4111 1111 1111 1111", ["4111111111111111", "4111-1111-1111-1111"]),
]
OTHERS = [
    ("PERSON", "José García", ["Jose Garciaz", "JoseGarcia", "García José"]),
    ("EMAIL", "jane.smith@example.com", ["janesmith@example.com", "jane.smith@examplecom"]),
    ("PHONE", "+1 415 555 2671", ["415 555 2672", "+44 415 555 2671", "555 2671", "415 555 2671 x1"]),
    ("PHONE", "+49 30 1234567", ["+30 1234567", "30 1234567", "+1 30 1234567"]),
    ("CARD", "4111 1111 1111 1111", ["4111 1111 1111 1112", "4111 1111 1111 111"]),
    # These lose their meaning without separators, and are no numbers.
    ("IP", "1.12.34.56", ["11.2.34.56", "1.123.4.56"]),
    ("DATE", "1.11.1980", ["11.1.1980", "1111980"]),
    ("PERSON", "रमु", ["रम", "रमि"]),
]


@pytest.mark.parametrize(("label", "stored", "searched"), SAME, ids=lambda value: str(value)[:20])
def test_a_spelling_of_a_value_finds_it(label: str, stored: str, searched: list[str]) -> None:
    for text in [stored, *searched]:
        for type_ in (None, label):
            assert stored_form(label, stored) in searched_forms(text, type_), (text, type_)


@pytest.mark.parametrize(("label", "stored", "searched"), OTHERS, ids=lambda value: str(value)[:20])
def test_another_value_does_not_find_it(label: str, stored: str, searched: list[str]) -> None:
    for text in searched:
        assert stored_form(label, stored) not in searched_forms(text, None) | searched_forms(text, label)


def test_digits_are_a_number_only_where_they_were_masked_as_one() -> None:
    assert stored_form("CUSTOM", "415 555 2671") not in searched_forms("+1 415 555 2671", None)
    assert stored_form("CUSTOM", "415 555 2671") in searched_forms("415  555 2671", None)


def test_a_long_value_costs_no_more_than_its_length() -> None:
    for text in ("1 " * 50_000, "(" * 50_000, "\u00e9" * 50_000, "1" * 63 + "x"):
        assert stored_form("PHONE", text)[:1] == b"t"
        assert searched_forms(text, None)
