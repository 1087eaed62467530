"""The table of labels is complete and well formed."""

import inspect
import re

from presidio_analyzer import EntityRecognizer, predefined_recognizers

from app.core.contracts.engines import DetectionOptions
from app.engines.pii.ground.labels import LABELS, RANK, RULES, thresholds
from app.engines.pii.recognizers.registry import build_registry


def test_every_entity_of_every_recognizer_has_a_label() -> None:
    entities = {
        entity for recognizer in build_registry().recognizers for entity in recognizer.supported_entities
    }
    assert entities <= set(RULES)


def test_every_predefined_pattern_of_presidio_has_a_label() -> None:
    known = {
        recognizer.supported_entities[0]
        for name, found in vars(predefined_recognizers).items()
        if inspect.isclass(found)
        and issubclass(found, predefined_recognizers.UsSsnRecognizer.__base__)
        and name != "PatternRecognizer"
        for recognizer in [found()]
    }
    assert len(known) > 70
    assert known <= set(RULES)


def test_recognizers_keep_the_names_of_presidio() -> None:
    recognizers = build_registry().recognizers
    replaced = (
        "CreditCardRecognizer DateRecognizer EmailRecognizer IbanRecognizer IpRecognizer PhoneRecognizer UrlRecognizer "
        "UsSsnRecognizer"
    )
    assert set(replaced.split()) <= {recognizer.name for recognizer in recognizers} & set(
        vars(predefined_recognizers)
    )
    assert all(isinstance(r, EntityRecognizer) and r.supported_language == "en" for r in recognizers)


def test_labels_are_written_as_handles_need_them() -> None:
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]{1,30}", label) for label in LABELS)
    assert set(RANK) == LABELS


def test_the_promised_labels_exist() -> None:
    promised = (
        "PERSON SSN EMAIL PHONE CARD IBAN IP URL ADDRESS LOCATION ORGANIZATION DATE PASSPORT LICENSE BANK_ACCOUNT "
        "CRYPTO MEDICAL NHS SECRET CUSTOM PAN"
    )
    assert set(promised.split()) <= LABELS


def test_strict_takes_every_entity_at_no_higher_a_score() -> None:
    standard, strict = thresholds(DetectionOptions()), thresholds(DetectionOptions(strict=True))
    assert set(strict) == set(RULES)
    assert all(strict[entity] <= least for entity, least in standard.items())
