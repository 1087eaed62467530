"""Tokens, lemmas, and context enhancers: the linear one gives what Presidio's own gives."""

import pytest
from presidio_analyzer import AnalyzerEngine, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer

from app.engines.pii.names.nlp import EmbeddedNlpEngine, LinearContextEnhancer, digit_windows, lemma, words
from app.engines.pii.recognizers.registry import build_registry

TEXTS = [
    "My SSN is 219-09-9999 and my passport number is 123456789.",
    "the card, a credit card (visa): 4111 1111 1111 1111",
    "call me at 212-555-0143, account no. 12345678",
    "219099999",
    "ssn:219099999 bank::12345678 phone/2125550143",
    '{"customerSsn": "219099999", "bankAccounts": [12345678, 87654321]}',
    "and the of it is 123456789 , , , 987654321 ! ! passport",
    "   \n\n 123456789\n\n\n",
]


def raised(
    engine: AnalyzerEngine, enhancer: LemmaContextAwareEnhancer, text: str
) -> list[tuple[int, int, float]]:
    artifacts = engine.nlp_engine.process_text(text, "en")
    found: list[RecognizerResult] = []
    for recognizer in engine.registry.recognizers:
        found += recognizer.analyze(text, recognizer.supported_entities, artifacts)
    enhanced = enhancer.enhance_using_context(text, found, artifacts, engine.registry.recognizers, ["IBAN"])
    return [(result.start, result.end, round(result.score, 6)) for result in enhanced]


@pytest.fixture(scope="module")
def engine() -> AnalyzerEngine:
    nlp = EmbeddedNlpEngine()
    return AnalyzerEngine(registry=build_registry(), nlp_engine=nlp, supported_languages=["en"])


@pytest.mark.parametrize("mode", ["substring", "whole_word"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("after", [0, 3])
def test_the_linear_enhancer_gives_the_scores_of_presidio(
    engine: AnalyzerEngine, text: str, mode: str, after: int
) -> None:
    options = {"context_matching_mode": mode, "context_suffix_count": after}
    theirs = raised(engine, LemmaContextAwareEnhancer(**options), text)
    assert raised(engine, LinearContextEnhancer(**options), text) == theirs
    assert theirs


def test_presidio_runs_on_the_embedded_engine_by_itself(engine: AnalyzerEngine) -> None:
    found = engine.analyze("My name is John Doe, SSN 219-09-9999", "en")
    assert {"PERSON", "US_SSN"} <= {result.entity_type for result in found}


def test_the_engine_answers_as_presidio_asks() -> None:
    nlp = EmbeddedNlpEngine()
    assert not nlp.is_loaded()
    nlp.load()
    assert nlp.is_loaded()
    (text, artifacts), *_ = nlp.process_batch(["John Doe called"], "en")
    assert text == "John Doe called"
    assert [token.text for token in artifacts.tokens] == ["John", "Doe", "called"]
    assert "John Doe" in artifacts.to_json()
    tagged = next(iter(nlp.process_batch([("x", {"id": 1})], "en", as_tuples=True)))
    assert tagged[0] == "x"
    assert tagged[2] == {"id": 1}
    assert nlp.is_stopword("The", "en")
    assert nlp.is_punct(",", "en")
    assert nlp.get_supported_languages() == ["en"]
    assert "PERSON" in nlp.get_supported_entities()


def test_tokens_keep_their_offsets_and_camel_case_is_split() -> None:
    text = "customerSSN=HTTPServer_id2 Ünïcode über42"
    found = words(text)
    assert all(text.startswith(token, start) for start, token in found)
    assert [token for _, token in found][:3] == ["customer", "SSN", "="]


def test_lemmas_are_lower_case_singulars() -> None:
    assert [lemma(word) for word in ("Cards", "SSN", "address", "Passports", "bus")] == [
        "card",
        "ssn",
        "address",
        "passport",
        "bus",
    ]


def test_windows_hold_every_digit_with_room_around_it() -> None:
    text = "word " * 100 + "a1b" + " word" * 100 + " 22 33 " + "word " * 100
    windows = digit_windows(text)
    assert len(windows) == 2
    for place, character in enumerate(text):
        if character.isdigit():
            assert any(low <= place - 90 and place + 90 <= high for low, high in windows)
    assert digit_windows("no digit") == []
    assert digit_windows("7") == [(0, 1)]
