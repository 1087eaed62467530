"""Greetings, institutions and inflected nouns of other languages are nobody's names; names beside them stay."""

import pytest

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.names.nobody import is_nobody
from app.engines.pii.search.analyzer import Analyzer

LISTED = {"deniz": "f", "viggo": "f", "çelik": "l", "mas": "l"}


def kinds(word: str) -> str:
    return LISTED.get(word, "")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Mas", "pt"),
        ("Dan Kini", "id"),
        ("Hospital Quellas Dumont", "pt"),
        ("Guvernul Quell", "ro"),
        ("Quellului", "ro"),
        ("Deniz Kuvvetleri'ne", "tr"),
        ("İlk Quelllerin", "tr"),
        ("Quell Kulübü", "tr"),
        ("Quell Antlaşması'nın", "tr"),
        ("Zorn Balladesi", "tr"),
        ("Kadın", "tr"),
        ("Bahasa", "id"),
        ("Masjid Quell", "id"),
        ("Xin", "vi"),
        ("Szia", "hu"),
        ("Quellből", "hu"),
        ("Quellbjerg", "da"),
    ],
)
def test_words_of_a_language_are_nobody(name: str, code: str) -> None:
    assert is_nobody(name, code, kinds)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Mas", "sv"),
        ("Mas Quell", "pt"),
        ("Quell Hospital", "pt"),
        ("Deniz Çelik", "tr"),
        ("Kulübü Deniz", "tr"),
        ("Viggo Quellhez", "hu"),
        ("Tim Quell", "id"),
        ("Quell", "vi"),
        ("4711", "ro"),
    ],
)
def test_names_stay_names(name: str, code: str) -> None:
    assert not is_nobody(name, code, kinds)


def test_standard_leaves_a_greeting_and_strict_hides_it(analyzer: Analyzer) -> None:
    text = "Xin chào cả nhà, tối thứ bảy nhà mình có tiệc nên hơi ồn. Mong hàng xóm bỏ qua cho."
    assert analyzer.analyze(text, DetectionOptions()) == []
    strict = analyzer.analyze(text, DetectionOptions(strict=True))
    assert {text[span.start : span.end] for span in strict if span.label == "PERSON"} & {"Xin", "Mong"}
