"""Identifiers, digests and words of forms are no names, whatever a tagger says; names in columns stay apart."""

import pytest

from app.engines.pii.names.plausible import plausible_parts


def _kept(text: str, what: str, label: str) -> list[str]:
    start = text.index(what)
    return [text[low:high] for low, high in plausible_parts(text, start, start + len(what), label)]


@pytest.mark.parametrize(
    "address",
    [
        "12 Main St, Springfield, IL 62704",
        "Seipring 819",
        "Gran Vía 3",
        "SW1A 1AA",
        "K1A 0B1",
        "東京都港区1-2-3",
    ],
)
def test_an_address_has_a_word_or_is_a_post_code(address: str) -> None:
    assert _kept(address, address, "ADDRESS") == [address]


@pytest.mark.parametrize(
    "number",
    ["4d810b2ed6dae101fbc5", "HU-4425-CR", "9229-426962", "145-39ba-147f7527a393", "E99120,E99121", "b-3"],
)
def test_numbers_and_digests_are_no_address(number: str) -> None:
    assert _kept(number, number, "ADDRESS") == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a = np.asarray(a)", "asarray"),
        ("class Madison::Parser", "Madison"),
        ("ignore ANN401", "ANN"),
        ("moved to bin J21", "bin J"),
        ("commit bbaeccd merged", "bbaeccd"),
        ("Courriel : a@b.org", "Courriel"),
        ("sku WU-8282", "WU-8282"),
    ],
)
def test_parts_of_programs_and_forms_are_no_people(text: str, what: str) -> None:
    assert _kept(text, what, "PERSON") == []


@pytest.mark.parametrize("name", ["J. O'Neil", "wei zhang", "JACK", "Zoë", "Anna\nBerg"])
def test_people_stay(name: str) -> None:
    assert _kept(f"{name}, hello", name, "PERSON") == [name]


def test_a_name_ends_with_its_column() -> None:
    assert _kept("JI-WOO KIM      Hosp. No", "JI-WOO KIM      Hosp", "PERSON") == ["JI-WOO KIM"]
    assert _kept("Ann Lee\tBob Ray", "Ann Lee\tBob Ray", "PERSON") == ["Ann Lee", "Bob Ray"]


@pytest.mark.parametrize(("text", "what"), [("PW-9508-TJ", "TJ"), ("TJ-9508", "TJ"), ("no. 12/CR.", "CR")])
def test_a_few_capitals_beside_the_digits_of_a_code_are_nobody(text: str, what: str) -> None:
    assert _kept(text, what, "PERSON") == []


@pytest.mark.parametrize(("text", "what"), [("2024-SMITH.pdf", "SMITH"), ("ask TJ - 12 of them", "TJ")])
def test_capitals_that_are_a_name_stay(text: str, what: str) -> None:
    assert _kept(text, what, "PERSON") == [what]


@pytest.mark.parametrize(
    ("text", "word", "kept"),
    [
        ("patient,ward,doctor\nQuell,B2,Zorn", "ward", False),
        ("| Quell | Club |\n|---|---|\n| Milo | Rovers |", "Quell", False),
        ("ward,doctor\nQuell,B2,Zorn", "ward", True),
        ("Quell,Zorn\nMilo,Ottilie", "Quell", True),
        ("patient,ward,doctor\nQuell,B2,Zorn", "Quell", True),
        ("Quell, the patient, left", "Quell", True),
        ("patient Quell,ward\nB2,B3", "Quell", True),
    ],
)
def test_a_lone_word_among_heads_of_columns_is_one(text: str, word: str, kept: bool) -> None:
    assert (_kept(text, word, "PERSON") == [word]) is kept
