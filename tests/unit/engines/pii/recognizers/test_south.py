"""Identifiers of the south are found beside the initials by which local mails name them, and nowhere else."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.search.analyzer import Analyzer
from tests.pii_local import NAMED


def hidden(analyzer: Analyzer, text: str) -> str:
    spans = analyzer.analyze(text, DetectionOptions(names="fast"))
    covered = {place for span in spans for place in range(span.start, span.end)}
    return "".join("*" if place in covered else letter for place, letter in enumerate(text))


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_number_is_hidden_beside_its_name(analyzer: Analyzer, text: str, value: str) -> None:
    assert value not in hidden(analyzer, text.format(value))
    assert hidden(analyzer, text.format(value)).count("*") >= sum(map(str.isalnum, value))


@pytest.mark.parametrize(
    "value", ["22412345678", "A012345678Z", "42101-1234567-1", "3174052505900003", "900101-14-5678"]
)
def test_without_its_name_it_stays(analyzer: Analyzer, value: str) -> None:
    text = f"The pump with article {value} was replaced, and the valve tested."
    assert hidden(analyzer, text) == text


@pytest.mark.parametrize("text", ["eth0 is a NIC of 10 Gbit", "print it at 300 dpi", "The tin weighs 400 g."])
def test_the_same_letters_beside_other_numbers_name_nothing(analyzer: Analyzer, text: str) -> None:
    assert hidden(analyzer, text) == text
