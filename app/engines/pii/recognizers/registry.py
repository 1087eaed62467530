# ruff: noqa: RUF001 - context words are in their own languages
"""The registry: Presidio's predefined recognizers with exact matching, some of them replaced by our own."""

import inspect
import re
from typing import Any

import regex  # type: ignore[import-untyped]
from presidio_analyzer import (
    EntityRecognizer,
    Pattern,
    PatternRecognizer,
    RecognizerRegistry,
    predefined_recognizers,
)
from presidio_analyzer.predefined_recognizers import SpacyRecognizer

from app.engines.pii.ground.labels import NAME_LABELS, RULES
from app.engines.pii.names.nlp import LANGUAGE
from app.engines.pii.recognizers.generic import generic_recognizers
from app.engines.pii.recognizers.national.all import national_recognizers
from app.engines.pii.recognizers.patterns import FLAGS, ExactPatterns
from app.engines.pii.recognizers.phone import PhoneRecognizer
from app.engines.pii.recognizers.secret import SecretRecognizer

_PASSPORT = ["passport", "passport number", "travel document"]
_LICENSE = [
    *(
        "driver license",
        "drivers license",
        "driving license",
        "driver licence",
        "drivers licence",
        "driving licence",
    ),
    *("license number", "licence number", "dl number", "cdl", "dls", "license no", "licence no", "dmv"),
]
_PLATE = [
    "license plate",
    "licence plate",
    "number plate",
    "plate",
    "vehicle registration",
    "vrn",
    "kennzeichen",
]
_POSTCODE = ["postcode", "post code", "postal code", "zip", "zip code", "zipcode"]

# Presidio's own context words are meant to match inside other words; these name the identifier itself.
_CONTEXT: dict[str, list[str]] = {
    "US_PASSPORT": _PASSPORT,
    "US_DRIVER_LICENSE": _LICENSE,
    "US_BANK_NUMBER": [
        # "no" and "#" are not keywords: phrases with them would match "account" alone.
        *("bank account", "account number", "account num", "acct", "checking account"),
        *(
            "savings account",
            "deposit account",
            "bank number",
            "acct number",
            "beneficiary account",
        ),
    ],
    "UK_NHS": ["nhs", "national health service", "nhs number", "health service number"],
    "US_ITIN": ["itin", "individual taxpayer", "taxpayer identification", "taxpayer id"],
    "US_HEALTH_INSURANCE_MEMBER_ID": [
        "member id",
        "member number",
        "subscriber id",
        "subscriber number",
        "policy number",
    ],
    "US_PROVIDER_TAX_ID": ["tax id", "tin", "ein", "employer identification", "federal tax"],
    "UK_VEHICLE_REGISTRATION": [*_PLATE, "registration number", "reg"],
    "IN_VEHICLE_REGISTRATION": [*_PLATE, "rto", "registration number"],
    "NG_VEHICLE_REGISTRATION": _PLATE,
    "ZA_LICENSE_PLATE": _PLATE,
    "ZA_ID_NUMBER": ["id number", "identity number", "south african id", "rsa id", "sa id", "id no"],
    "ZA_DRIVER_LICENSE": _LICENSE,
    "UK_POSTCODE": _POSTCODE,
    "CA_POSTAL_CODE": _POSTCODE,
    "CA_SIN": ["sin", "social insurance", "social insurance number", "nas"],
    "DE_PLZ": ["plz", "postleitzahl", "zip", "zip code", "postal code"],
    "DE_KFZ": ["kennzeichen", "kfz", "nummernschild", "autokennzeichen", "number plate", "license plate"],
    "IT_IDENTITY_CARD": ["carta identità", "carta d'identità", "cie", "documento"],
    "IT_PASSPORT": ["passaporto", "passport"],
    "US_PRESCRIPTION_NUMBER": ["prescription", "rx"],
    "US_REFERRAL_NUMBER": ["referral"],
    "US_PRIOR_AUTHORIZATION_NUMBER": [
        "prior authorization",
        "prior auth",
        "preauthorization",
        "authorization number",
    ],
    "US_CLAIM_NUMBER": ["claim", "claim number"],
    "US_NPI": ["npi", "national provider", "provider identifier"],
    "TR_NATIONAL_ID": [
        "tc kimlik",
        "kimlik no",
        "kimlik numarası",
        "tckn",
        "tc no",
        "nüfus cüzdanı",
        "tc kimlik no",
    ],
    "IN_AADHAAR": ["aadhaar", "aadhar", "uidai"],
}

# The same values, but not from the middle of longer words.
_PATTERNS: dict[str, list[tuple[str, float]]] = {
    "CRYPTO": [(r"(?<![A-Za-z0-9])(?:bc1|[13])[a-zA-HJ-NP-Z0-9]{25,59}(?![A-Za-z0-9])", 0.5)],
    "MEDICAL_LICENSE": [
        (r"(?<![A-Za-z0-9-])(?:[abcdefghjklmprstux][a-z]|[abcdefghjklmprstux]9)\d{7}(?![\w-])", 0.4)
    ],
    "IN_PAN": [(r"\b[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]\b", 0.5), (r"\b[A-Z]{5}\d{4}[A-Z]\b", 0.1)],
    "DE_PLZ": [(r"(?<![\w.-])\d{5}(?:-\d{4})?(?![\w-])(?!\.\d)", 0.05)],
    "US_HEALTH_INSURANCE_MEMBER_ID": [
        # The letters before the first digit are matched explicitly: the single pass searches this very pattern.
        (
            (
                r"(?<![\w-])(?=[A-Z]{1,5}-?[A-Z0-9]{5,14}(?![\w-]))"
                r"[A-Z]{1,5}+(?:-[A-Z]{0,13}+|[A-Z]{0,13}+)\d[A-Z0-9]{0,13}(?![\w-])"
            ),
            0.1,
        )
    ],
    "US_BANK_NUMBER": [(r"(?<![\w.-])\d{8,17}(?![\w-])(?!\.\d)", 0.05)],
    "IN_PASSPORT": [(r"(?<![\w-])[A-Z][1-9]\d ?\d{4}[1-9](?![\w-])", 0.1)],
    "US_PASSPORT": [(r"(?<![\w.-])[A-Z]?\d{8,9}(?![\w-])(?!\.\d)", 0.1)],
    "US_DRIVER_LICENSE": [
        (r"(?<![\w-])[A-Z]{1,2}(?=[-\d])(?:-?\d){4,14}[A-Z]?(?![\w-])", 0.3),
        (r"(?<![\w-])(?:\d{2,3}[A-Z]{2,3}\d{4,6}|\d{7,9}[A-Z]{1,2}|[A-Z]\d[A-Z]\d[A-Z])(?![\w-])", 0.3),
        (r"(?<![\w.-])\d{6,14}(?![\w-])(?!\.\d)", 0.05),
    ],
}

# Recognizers of Presidio that ours replace under the same name, or that need something unavailable here.
_REPLACED = frozenset(
    {
        *("CreditCardRecognizer", "DateRecognizer", "EmailRecognizer", "IbanRecognizer"),
        *("IpRecognizer", "UrlRecognizer", "UsSsnRecognizer", "PatternRecognizer"),
    }
)
# Recognizers whose findings may have no digit, each with a pattern that its findings do contain.
_LETTERS_ONLY: dict[str, re.Pattern[str]] = {
    "ItFiscalCodeRecognizer": re.compile(r"[a-z]{6}[0-9a-z]{10}", re.IGNORECASE),
    "MacAddressRecognizer": re.compile(
        r"[0-9a-f]{2}[:-][0-9a-f]{2}[:-]|[0-9a-f]{4}\.[0-9a-f]{4}\.", re.IGNORECASE
    ),
}
_CHOICES = 64
_UNBOUNDED = regex.compile(r"\\s([*+])")
_BLANKS = {"*": r"\s{0,3}", "+": r"\s{1,3}"}


def build_registry() -> RecognizerRegistry:
    """Return every recognizer, all under one language so that each works on texts in any language."""
    own: list[EntityRecognizer] = [*generic_recognizers(), PhoneRecognizer(), SecretRecognizer()]
    national = national_recognizers()
    ours = {row.supported_entities[0] for row in national}
    ours.add("DE_VAT_ID")  # EU_VAT includes and checks it
    theirs = [other for other in predefined() if other.supported_entities[0] not in ours]
    names = SpacyRecognizer(LANGUAGE, sorted(NAME_LABELS), name="EmbeddedNameRecognizer")
    return FixedRegistry([*own, *national, *theirs, names])


class FixedRegistry(RecognizerRegistry):
    """A registry that selects the recognizers for a set of entities once, in a fixed order."""

    def __init__(self, recognizers: list[EntityRecognizer]) -> None:
        super().__init__(recognizers, FLAGS, [LANGUAGE])
        self._chosen: dict[frozenset[str], list[EntityRecognizer]] = {}

    def get_recognizers(
        self,
        language: str,
        entities: list[str] | None = None,
        all_fields: bool = False,
        ad_hoc_recognizers: list[EntityRecognizer] | None = None,
    ) -> list[EntityRecognizer]:
        """Return the recognizers of ``entities`` in the order of registration."""
        if all_fields or ad_hoc_recognizers or entities is None or language != LANGUAGE:
            chosen: list[EntityRecognizer] = super().get_recognizers(
                language, entities, all_fields, ad_hoc_recognizers
            )
            return chosen
        key = frozenset(entities)
        if key not in self._chosen:
            if len(self._chosen) > _CHOICES:
                self._chosen.clear()
            self._chosen[key] = [r for r in self.recognizers if not key.isdisjoint(r.supported_entities)]
        return self._chosen[key]


def predefined() -> list[EntityRecognizer]:
    """Return Presidio's own pattern recognizers with exact matching, except those that ours replace."""
    classes = [
        recognizer_class
        for name, recognizer_class in sorted(vars(predefined_recognizers).items())
        if inspect.isclass(recognizer_class)
        and issubclass(recognizer_class, PatternRecognizer)
        and name not in _REPLACED
    ]
    return [_exact(recognizer_class) for recognizer_class in classes]


def _exact(original: type[PatternRecognizer]) -> EntityRecognizer:
    """Return an instance of ``original`` with our matching but its own patterns, validators and context words."""
    attributes: dict[str, Any] = {
        "__init__": original.__init__,
        "needs_digit": original.__name__ not in _LETTERS_ONLY,
        "gate": _LETTERS_ONLY.get(original.__name__),
    }
    combined = type(original.__name__, (ExactPatterns, original), attributes)
    recognizer: ExactPatterns = combined(supported_language=LANGUAGE)
    recognizer.global_regex_flags = FLAGS
    entity = recognizer.supported_entities[0]
    if entity not in RULES:
        raise LookupError(f"{entity} has no label")
    recognizer.context = _CONTEXT.get(entity, recognizer.context)
    if entity in _PATTERNS:
        recognizer.patterns = [Pattern(entity, text, score) for text, score in _PATTERNS[entity]]
    recognizer.patterns = [_bounded(pattern) for pattern in recognizer.patterns]
    return recognizer


def _bounded(pattern: Pattern) -> Pattern:
    """Return ``pattern`` with bounded white space: a run of it would make a look-behind quadratic."""
    if "(?<=" not in pattern.regex:
        return pattern
    limited = _UNBOUNDED.sub(lambda match: _BLANKS[match[1]], pattern.regex)
    return Pattern(pattern.name, limited, pattern.score)
