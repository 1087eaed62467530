"""What is split over adjacent texts is found in all its parts, and nothing else changes."""

from collections.abc import Callable

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer
from app.engines.pii.search.borders import scan_run

Parts = Callable[..., list[list[tuple[str, str]]]]

VALUES = {
    "John Doe": "PERSON",
    "john@example.com": "EMAIL",
    "+1 202 555 0173": "PHONE",
    "4111 1111 1111 1111": "CARD",
    "219-09-9999": "SSN",
    "DE89 3704 0044 0532 0130 00": "IBAN",
    "192.168.10.41": "IP",
}


@pytest.fixture
def parts(analyzer: Analyzer) -> Parts:
    def found(*texts: str) -> list[list[tuple[str, str]]]:
        spans = scan_run(texts, lambda text: analyzer.scan(text, DetectionOptions()))
        return [
            [(text[one.start : one.end], one.label) for one in own]
            for text, own in zip(texts, spans, strict=True)
        ]

    return found


@pytest.mark.parametrize("value", VALUES)
def test_a_value_split_in_the_middle_is_found_in_both_texts(parts: Parts, value: str) -> None:
    middle = len(value) // 2
    left, right = parts(f"My name is {value[:middle]}", f"{value[middle:]} for now")
    label = VALUES[value]
    assert [(value[:middle].strip(), label), (value[middle:].strip(), label)] == [left[-1], right[0]]


@pytest.mark.parametrize("value", [value for value, label in VALUES.items() if label != "PERSON"])
def test_neither_part_alone_is_found(analyzer: Analyzer, value: str) -> None:
    """The negative control: without the borders at least one part would pass."""
    middle = len(value) // 2
    alone = [
        analyzer.scan(text, DetectionOptions())
        for text in (f"My name is {value[:middle]}", f"{value[middle:]} for now")
    ]
    assert not all(alone)


def test_a_value_in_many_tiny_texts_is_found(parts: Parts) -> None:
    assert parts("My SSN is ", "219-", "09-", "9999") == [
        [],
        [("219-", "SSN")],
        [("09-", "SSN")],
        [("9999", "SSN")],
    ]
    assert all(
        found == [(text, "SSN")] for text, found in zip("219-09-9999", parts(*"219-09-9999"), strict=True)
    )


def test_a_name_goes_on_in_the_next_text_with_and_without_a_blank(parts: Parts) -> None:
    assert parts("My name is John", " Doe and I live here") == [[("John", "PERSON")], [("Doe", "PERSON")]]
    assert parts("My name is John", "Doe, hello") == [[("John", "PERSON")], [("Doe", "PERSON")]]


@pytest.mark.parametrize(
    ("left", "right", "label"),
    [
        ("john@example.co", "m", "EMAIL"),
        ("john@exam.pl", "e.com", "EMAIL"),
        ("john.d", "oe@example.com", "EMAIL"),
        ("jane@mail.example", ".co.uk", "EMAIL"),
        ("fe80::1", "ab:22ff:fe33:4455", "IP"),
    ],
)
def test_a_value_that_is_one_without_its_end_is_found_to_its_end(
    parts: Parts, left: str, right: str, label: str
) -> None:
    assert parts(f"This is {left}", f"{right} for now") == [[(left, label)], [(right, label)]]


@pytest.mark.parametrize(
    "texts",
    [
        ("write to bob@example.com", "Hello there"),
        ("Write to", "bob@example.com"),
        ("bob@example.com", "follow-up of last week"),
        ("password: hunter2", "please"),
        ("write to bob@example.com", "and then we go"),
        ("Thanks, John", "Please send me the file"),
        ("I talked to John", "Next steps"),
        ("John Smith", "Mary Jones", "Peter Brown"),
        ("10", "20", "30", "40", "50", "60", "70", "80", "90", "11", "12"),
        ("We went to the office", "Order 1234"),
        ("Card 4111 1111 1111 1111", "2 tickets"),
    ],
)
def test_texts_that_only_stand_side_by_side_keep_their_findings(
    analyzer: Analyzer, texts: tuple[str, ...]
) -> None:
    alone = [analyzer.scan(text, DetectionOptions()) for text in texts]
    assert scan_run(texts, lambda text: analyzer.scan(text, DetectionOptions())) == alone


def test_only_the_surroundings_of_borders_are_read_again() -> None:
    seen: list[int] = []

    def scan(text: str) -> list[object]:
        seen.append(len(text))
        return []

    scan_run(["x" * 100_000, "y" * 100_000], scan)  # type: ignore[arg-type]
    assert sum(seen) <= 200_000 + 2 * 513
    seen.clear()
    scan_run(["1"] * 10_000, scan)  # type: ignore[arg-type]
    assert sum(seen) <= 10_000 * 4
