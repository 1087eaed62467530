"""Last names that look like companies are people where what is said of them says so."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.roles import spoken_of
from app.engines.pii.search.analyzer import Analyzer
from tests.proportion import assert_in_proportion

KNOWN = {
    "osei": "l",
    "lund": "l",
    "varga": "lc",
    "leeds": "c",
    "nokia": "o",
    "ford": "lo",
    "monday": "w",
    "our": "w",
    "anna": "f",
    "the": "w",
}


def kinds(word: str) -> str:
    return KNOWN.get(word, "")


def said(text: str, *others: str) -> list[str]:
    places = [(text.index(name), text.index(name) + len(name)) for name in others]
    return [text[start:end] for start, end in spoken_of(text, places, kinds)]


@pytest.mark.parametrize(
    ("text", "other", "people"),
    [
        ("Our lawyers are Quell, Brisk and Tarn.", "Quell", ["Quell", "Brisk", "Tarn"]),
        ("Quell, Brisk and Tarn abstained.", "Quell, Brisk and Tarn", ["Quell", "Brisk", "Tarn"]),
        ("Elected to the council: Quell and Brisk.", "Brisk", ["Quell", "Brisk"]),
        ("Witnesses: Quell; Brisk; Tarn", "Tarn", ["Quell", "Brisk", "Tarn"]),
        ("The board consists of Quell (chair) and Brisk.", "Brisk", ["Quell", "Brisk"]),
        ("Quell resigned in May.", "Quell", ["Quell"]),
        ("The Quell family moved.", "Quell", ["Quell"]),
        ("Quell's wife called.", "Quell", ["Quell"]),
        ("According to Osei, it rained.", "Osei", ["Osei"]),
        ("It was paid by Osei and Quell.", "Quell", ["Osei", "Quell"]),
        ("Here: Osei, Lund and Varga.", "Varga", ["Osei", "Lund", "Varga"]),
    ],
)
def test_what_is_said_of_names_makes_people_of_them(text: str, other: str, people: list[str]) -> None:
    assert said(text, other) == people


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("According to Quell, it rained.", "Quell"),
        ("It was paid by Quell and Brisk.", "Quell"),
        ("It was paid by Osei.", "Osei"),
        ("Quell opened a plant.", "Quell"),
        ("Nokia, Lund and Osei abstained.", "Nokia"),
        ("Trains to Leeds, Lund and Osei are late.", "Leeds"),
        ("Here: Osei and Lund.", "Lund"),
        ("Here: Ford, Lund and Varga.", "Lund"),
        ("The NATO family met.", "NATO"),
        ("Anna Quell resigned.", "Quell"),
        ("A Quell family moved.", "Quell"),
    ],
)
def test_companies_and_places_stay_what_they_are(text: str, other: str) -> None:
    assert said(text, other) == []


def test_standard_hides_such_names_and_no_company(analyzer: Analyzer) -> None:
    def hidden(text: str) -> list[str]:
        spans = analyzer.analyze(text, DetectionOptions())
        return [text[span.start : span.end] for span in spans]

    text = "Our lawyers are Nguyen, Mbeki & Pemberton."
    assert hidden(text) == ["Nguyen", "Mbeki", "Pemberton"]
    assert hidden("Our suppliers are Siemens, Bosch & Philips.") == []


def test_long_rows_take_time_in_proportion() -> None:
    piece = "Quell, Osei, "

    def search(count: int) -> None:
        places = [(start, start + 5) for start in range(0, count * len(piece), len(piece))]
        list(spoken_of(piece * count, places, kinds))

    assert_in_proportion(search, 300, 2_400)
