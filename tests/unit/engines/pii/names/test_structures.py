"""People that the structure of a text shows: rows of names, initials, owners in code, speakers, signatures."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.structures import structured_people
from app.engines.pii.search.analyzer import Analyzer
from tests.proportion import assert_in_proportion

KNOWN = {"milo": "f", "ilse": "f", "okafor": "l", "lindholm": "l", "bern": "c", "note": "w", "sterling": "lw"}


def kinds(word: str) -> str:
    return KNOWN.get(word, "")


def shown(text: str, *people: str) -> list[str]:
    places = [(text.index(name), text.index(name) + len(name)) for name in people]
    return [text[start:end] for start, end in sorted(structured_people(text, places, kinds))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Seats for Veldkamp, Okafor and Lindholm are booked.", ["Veldkamp", "Okafor", "Lindholm"]),
        ("Seats for Bern, Okafor and Lindholm are booked.", []),
        ("Seats for Veldkamp, Achterberg and Lindholm are booked.", []),
        ("K. J. Okafor signed, S. Veldkamp did not.", ["K. J. Okafor"]),
        ("Veldkamp, T. (2020); Bern, T. (2021)", ["Veldkamp, T."]),
        ("# TODO(kseniya): split\n# FIXME(perf): slow\n# TODO(note): x", ["kseniya"]),
        ("Reviewed-by: Zofka Q. Achterberg", ["Zofka Q. Achterberg"]),
        ("Milo: hi\nVeldkamp: hello\nNote: all", ["Milo"]),
        ("Milo: hi\nVeldkamp: hello\nNote: all\nVeldkamp: oh", ["Milo", "Veldkamp", "Veldkamp"]),
        ("Agent: hi\nMilo: hello\nNote: all\nNote: oh", ["Milo"]),
        ("Veldkamp: hi\nZofka: hello", []),
        ("Milo: hi\nBern: rain\nMilo: oh", ["Milo", "Milo"]),
        ("Zofka (14:22): done\nNote (14:23): all", ["Zofka"]),
        ("2024-05-02 11:20 - Zofka: call me", ["Zofka"]),
        ("[02/05/2024, 11:20:33] Zofka: call me", ["Zofka"]),
        ("Zofka 10:02 AM\nwho has it: you?", ["Zofka"]),
        ("Zofka came at 10:02\nso: late", []),
        ("<Zofka> anyone: here?", ["Zofka"]),
        ("<Note> anyone: here?", []),
        ("<zofka> hello\n<@veldkamp> hi there\n<note> all", ["zofka", "veldkamp"]),
        ("<zofka> hello", []),
        ("<zofka> hello</zofka>\n<veldkamp> hi</veldkamp>", []),
        ("See Okafor TK, 2011, and Lindholm B there.", ["Okafor TK"]),
        ("See Bern A, Sterling B, Veldkamp C, and OKAFOR D,", []),
        ("10:20 Veldkamp: hello\n10:21 Note: all", ["Veldkamp"]),
        ("It is done.\n\nCheers,\nZofka", ["Zofka"]),
        ("It is done.\n\nMilo\n", ["Milo"]),
        ("It is done.\n\nCheers,\nSupport", []),
        ("It is done.\n\nZofka", []),
    ],
)
def test_structure_shows_people(text: str, names: list[str]) -> None:
    assert shown(text) == names


def test_a_person_makes_people_of_the_names_joined_with_it() -> None:
    text = "Neither Okafor nor Veldkamp, Achterberg or BERN spoke; Plum and Milo did."
    assert shown(text) == []
    assert shown(text, "Okafor") == ["Achterberg", "Veldkamp"] or shown(text, "Okafor") == [
        "Veldkamp",
        "Achterberg",
    ]
    assert shown(text, "Achterberg") == ["Okafor", "Veldkamp"]
    assert shown("Okafor and Bern", "Okafor") == []
    assert shown("Okafor and Bern Lindholm", "Okafor") == []


def test_the_end_of_a_longer_name_joins_nobody() -> None:
    assert shown("when Zorn Okafor, Veldkamp and Milo left", "Milo") == ["Veldkamp"]
    assert shown("when Zorn Okafor and Veldkamp left", "Veldkamp") == []
    assert shown("Zorn Okafor and Veldkamp left", "Veldkamp") == ["Okafor"]
    assert shown("when Note Okafor and Veldkamp left", "Veldkamp") == ["Okafor"]
    assert shown("when Dr Okafor and Veldkamp left", "Veldkamp") == ["Okafor"]
    assert shown("Seats for Zorn Veldkamp, Okafor and Lindholm") == ["Okafor", "Lindholm"]


def test_a_closing_is_nobody_beside_a_name() -> None:
    assert shown("ok, done. Thx, Okafor", "Okafor") == []


def test_long_rows_take_time_in_proportion() -> None:
    row = "Okafor, Veldkamp, "

    def search(count: int) -> None:
        text = row * count
        people = [(start, start + 6) for start in range(0, len(text), len(row))]
        assert len(list(structured_people(text, people, kinds))) >= count - 1

    assert_in_proportion(search, 500, 4_000)


def test_rows_are_hidden_in_standard(analyzer: Analyzer) -> None:
    text = "Seats for Marchetti, Okafor and Lindholm are booked; we ship to Leeds, Hull and York."
    spans = analyzer.analyze(text, DetectionOptions())
    assert [text[span.start : span.end] for span in spans] == ["Marchetti", "Okafor", "Lindholm"]
