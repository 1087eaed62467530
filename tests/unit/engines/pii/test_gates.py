"""What makes the search cheaper never changes what is found."""

import random

import pytest
from presidio_analyzer import EntityRecognizer

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import thresholds
from app.engines.pii.names.nlp import EmbeddedNlpEngine, PhraseContextEnhancer
from app.engines.pii.recognizers.patterns import ExactPatterns
from app.engines.pii.recognizers.registry import build_registry
from app.engines.pii.search.analyzer import Analyzer

PIECES = [
    *(
        "SSN 219-09-9999",
        "219099999",
        "passport C01234567",
        "call 555-0143",
        "(212) 555-0143",
        "+44 20 7946 0958",
    ),
    *("jane@example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819"),
    *(
        "10.0.0.1",
        "2001:db8::8a2e:370:7334",
        "00:1A:2B:3C:4D:5E",
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
        "12 March 1980",
    ),
    *(
        "born on 3/4/1980",
        "NHS 943 476 5919",
        "AB123456C",
        "ABCPE1234F",
        "2234 5678 9012",
        "12345678Z",
        "S1234567D",
    ),
    *(
        "RSSMRA85T10A562S",
        "131052-308T",
        "HRB 12345",
        "driver's license D1234567",
        "bank account 12345678",
        "SW1A 1AA",
    ),
    *(
        "plate AB12 CDE",
        "zip 02110-1301",
        "claim number CLM-123456",
        "prescription RX-1234567",
        "ABN 51 824 753 556",
    ),
    *(
        "password=hunter22",
        "https://www.example.com/a?b=1",
        "KA01AB1234",
        "tax id 12-3456789",
        "M-AB 123",
        "PLZ 10115",
    ),
    *(
        "the weather is fine,",
        "and nothing else",
        "\n",
        "\t",
        "—",
        "(see below)",
        "x" * 30,
        "1.2.3",
        "2024-05-06T10:20:30Z",
    ),
]


def some_text(seed: int) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(PIECES) for _ in range(rng.randint(1, 60)))


@pytest.fixture(scope="module")
def recognizers() -> list[EntityRecognizer]:
    return list(build_registry().recognizers)


def test_windows_and_gates_lose_no_match(recognizers: list[EntityRecognizer]) -> None:
    engine = EmbeddedNlpEngine()
    for seed in range(60):
        text = some_text(seed)
        artifacts = engine.tagged(text, None)
        for recognizer in recognizers:
            if isinstance(recognizer, ExactPatterns):
                entities = recognizer.supported_entities
                gated = {(r.start, r.end, r.score) for r in recognizer.analyze(text, entities, artifacts)}
                assert gated == {(r.start, r.end, r.score) for r in recognizer.analyze(text, entities)}, (
                    recognizer.name
                )


def test_a_recognizer_without_its_words_would_have_had_no_finding(
    recognizers: list[EntityRecognizer],
) -> None:
    engine, enhancer = EmbeddedNlpEngine(), PhraseContextEnhancer()
    least = thresholds(DetectionOptions())
    skipped = 0
    for seed in range(60):
        text = some_text(seed)
        artifacts = engine.tagged(text, None)
        artifacts.demands_context = True
        idle = [r for r in recognizers if isinstance(r, ExactPatterns) and r.idle(artifacts)]
        artifacts.demands_context = False
        for recognizer in idle:
            found = recognizer.analyze(text, recognizer.supported_entities, artifacts)
            skipped += len(found)
            for result in enhancer.enhance_using_context(text, found, artifacts, [recognizer]):
                assert result.score < least.get(result.entity_type, 1.1)
    assert skipped > 100


def test_what_is_found_in_pieces_is_found_in_the_whole(analyzer: Analyzer) -> None:
    options = DetectionOptions()
    line = "Please send jane@example.com the card 4111 1111 1111 1111 of SSN 219-09-9999 today.\n"
    spans = analyzer.scan(line * 500, options)
    assert [span.label for span in spans] == ["EMAIL", "CARD", "SSN"] * 500
