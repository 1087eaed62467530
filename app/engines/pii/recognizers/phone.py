"""Recognize phone numbers: one linear search for candidates, which Google's number plans then check."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import phonenumbers
from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult
from presidio_analyzer.nlp_engine import NlpArtifacts

from app.engines.phone_regions import REGIONS
from app.engines.pii.names.nlp import LANGUAGE, EmbeddedArtifacts
from app.engines.pii.recognizers.cues import NOT_A_DATE, CuedRecognizer, cued
from app.engines.pii.recognizers.phone_languages import is_local

_CANDIDATE = re.compile(
    r"(?<![\w+.])(?<!\d[-/])(?P<number>\(?\+?(?:\d{1,6}\)?[ .\-]?)?(?:\(\d{1,5}\)[ .\-/]?)?\d{1,15}"
    r"(?:(?:[ .\-/\u00a0]|[ ]-[ ])\d{1,15}){0,40})"
    r"(?P<extension>[ ,;]{0,2}(?:x|ext\.?|extension|#)[ :.]?\d{1,6})?(?!\w)(?![-/.:]\d)",
    re.IGNORECASE,
)
_GAP = r"[ .\-/()\u00a0]{0,3}"
"""Characters allowed between two digits of a number."""

_BEGIN = re.compile(
    r"[(+\d](?<![\w+.].)(?<!\d[-/].)(?:(?<=\d)|[(+]{0,2}\d)"
    r"(?=\d{0,20}+(?:[-./]\d{1,15}+)*+(?![^\Wex]|:\d))"
    rf"(?=(?:{_GAP}\d){{6}}|(?:{_GAP}\d){{0,5}}+[ ,;]{{0,2}}[xe#])",
    re.IGNORECASE,
)
"""Where to try a candidate: not at times, fractions and names, but where enough digits follow, or an extension, whose
own digits begin no other candidate. Before it gives up, it reads only the digits themselves."""

_NORTH_AMERICAN = re.compile(r"(?:1[ .\-]?)?(?:\([2-9]\d{2}\)[ .\-]?|[2-9]\d{2}[ .\-])[2-9]\d{2}[ .\-]?\d{4}")
_WRITTEN_AMERICAN = re.compile(
    r"\d{3}-\d{3}-\d{4}|[2-9]\d{2}\.\d{3}\.\d{4}|\(\d{3}\) ?\d{3}[-. ]\d{4}|1-\d{3}-\d{3}-\d{4}"
)
"""The North American grouping with an unassigned exchange, as in examples: 555-123-4567."""
_TOLL_FREE = re.compile(r"1[ .\-](?:8\d{2}|900)[ .\-]\d{3}[ .\-]\d{4}")
_NATIONAL_LEAST = 9
_TEN_DIGITS = re.compile(r"[2-9]\d{2}[2-9]\d{6}")
_LOCAL = re.compile(r"[2-9]\d{2}[-. ]\d{4}")
_DATE = re.compile(
    r"\d{4}[-./]\d{1,2}[-./]\d{1,2}(?:\D.*)?|\d{1,2}[-./]\d{1,2}[-./]\d{4}(?:\D.*)?", re.DOTALL
)
_IN_A_ROW = re.compile(
    rf"(?<!\d)(?<!\d[-.])(?:{_NORTH_AMERICAN.pattern}|\+\d{{1,3}}(?:[ .\-]?\d{{2,4}}){{2,4}}|0\d(?:[ .\-]\d\d){{4}}"
    r"|0\d{1,4}([ .\-])\d{3,4}\1\d{3,4})(?!\d)"
)
_OTHER = re.compile(r"\d{5}-\d{4}|\d{3}-\d{2}-\d{4}")
"""American post codes and social security numbers."""

_BY_SHAPE = re.compile(r"\(0\d{1,5}\) ?\d[\d \-/]{3,10}\d|\(?\d{2}\)? 9?\d{4}-\d{4}")
"""An area code in brackets, and the Brazilian grouping: no other numbers are written like this."""

_LIKE_AN_ORDER = re.compile(r"0\d{3}-\d{6}|\d{2,3}-\d{4}-\d{2,3}|0\d{3}-\d{3}-\d{2}")
"""Area code and number in some countries, but order and part numbers in all countries."""

_SEPARATOR = re.compile(r"\D")
_FEWEST, _MOST = 7, 15
_BESIDE = 2
"""Characters after a number that decide whether it is a phone number."""

_INTERNATIONAL, _FORMATTED, _NATIONAL, _BARE, _SHORT = 0.75, 0.6, 0.4, 0.3, 0.1
"""Scores: with +, a North American form, a national form with groups, ten digits in a row, seven digits."""


_CUES = (
    *(
        "(?:tele)?phone",
        "phones?",
        "tel\\.?",
        "telephone",
        "telefon(?:nummer)?",
        "téléphone",
        "teléfono",
        "telefono",
        "telefone",
    ),
    *(
        "(?:cell|mobile|home|work|office|daytime|evening|business|contact)(?: ?phone)?",
        "cellular",
        "mobil(?:nummer)?",
        "mobiltelefon",
    ),
    *(
        "handy(?:nummer)?",
        "móvil",
        "portable",
        "cellulare",
        "celular",
        "telemóvel",
        "mobiel",
        "telefoonnummer",
        "fax",
        "telefax",
    ),
    *(
        "facsimile",
        "télécopie(?:ur)?",
        "whatsapp",
        "sms",
        "pager",
        "landline",
        "festnetz",
        "rufnummer",
        "durchwahl",
        "ph\\.?",
    ),
    *(
        "hotline",
        "call(?: me| us)?(?: at| on)?",
        "dial",
        "text(?: me)?(?: at| on)?",
        "msisdn",
        "call ?back",
        "reach(?:ed)?(?: me| us| her| him| them)?(?: at| on| under)?",
        "(?:my|your|his|her|their)(?: new| old| cell| mobile)? number(?: has)?(?: changed)?",
        "(?:meine|seine|ihre|deine) (?:neue )?nummer",
        "(?:mon|son|votre) numéro",
        "(?:mi|su|tu) número",
        "il (?:mio|suo) numero",
        "(?:meu|seu) número",
        "(?:mijn|zijn|haar) nummer",
        "contatt\\w{2,6}(?: al| allo)?",
        "(?:joint|joindre|jointe|rappeler)(?: au)?",
        "erreichbar(?: unter)?",
        "erreichen(?: sie uns| sie mich)?(?: unter)?",
    ),
)
_CUED_NUMBER = (
    rf"{NOT_A_DATE}(?=[+(]?(?:\D?\d){{7,15}}(?!\d))(?!\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?!\d))"
    r"\(?\+?\(?\d(?:[ .\-/()\u00a0]{0,3}\d){6,14}\)?(?![ .\-/\u00a0]?\d)"
    r"(?:[ ,;]{0,2}(?:x|ext\.?|extension|#)[ :.]?\d{1,6})?"
)


class CuedPhoneRecognizer(CuedRecognizer):
    """Find numbers of any form after a word for phone, mobile or fax."""

    def __init__(self) -> None:
        super().__init__("CuedPhoneRecognizer", "PHONE_NUMBER", [(cued(_CUES, _CUED_NUMBER), 0.5)])


class PhoneRecognizer(EntityRecognizer):
    """Find phone numbers in the common international and national forms.

    A bare run of digits or a local number of seven digits needs a word such as *phone* nearby.
    """

    name: str
    shape = _CANDIDATE.pattern
    core = rf"(?<![\w.])\d(?:{_GAP}\d){{6}}"
    """How every number begins, apart from brackets and a plus; the scan examines only the text around it."""

    CONTEXT = (
        *(
            "phone",
            "telephone",
            "tel",
            "telefon",
            "téléphone",
            "teléfono",
            "telefono",
            "cell",
            "cellphone",
            "cellular",
        ),
        *(
            "mobile",
            "mobil",
            "móvil",
            "handy",
            "call",
            "dial",
            "fax",
            "whatsapp",
            "sms",
            "hotline",
            "landline",
        ),
        *("contact number", "callback", "ph"),
    )

    def __init__(self) -> None:
        super().__init__(
            supported_entities=["PHONE_NUMBER"],
            name="PhoneRecognizer",
            supported_language=LANGUAGE,
            context=list(self.CONTEXT),
        )

    def load(self) -> None:
        """Do nothing: there is nothing to load."""

    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: NlpArtifacts | None = None
    ) -> list[RecognizerResult]:
        """Return the phone numbers in ``text``."""
        del entities
        if isinstance(nlp_artifacts, EmbeddedArtifacts) and not nlp_artifacts.digit_windows:
            return []
        metadata = {
            RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
            RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
        }
        return [
            RecognizerResult(
                "PHONE_NUMBER", start, end, score, AnalysisExplanation(self.name, score), dict(metadata)
            )
            for start, end, score in phone_numbers(text)
        ]

    def within(self, text: str, low: int, high: int) -> Iterator[tuple[int, int, float]]:
        """Yield offsets and score of the phone numbers in ``text[low:high]``, which cuts none of them."""
        return phone_numbers(text, low, high)


def phone_numbers(text: str, low: int = 0, high: int | None = None) -> Iterator[tuple[int, int, float]]:
    """Yield offsets and score of every possible phone number that begins in ``text[low:high]``."""
    last = len(text) if high is None else high
    place = low
    while (begin := _BEGIN.search(text, place, last + _BESIDE)) and begin.start() < last:
        match = _CANDIDATE.match(text, begin.start(), last + _BESIDE)
        if match is None:
            place = begin.start() + 1
        else:
            place = match.end()
            yield from _numbers_in(match)


def _numbers_in(match: re.Match[str]) -> Iterator[tuple[int, int, float]]:
    """Yield the parts of a candidate that may be phone numbers."""
    number, start = match["number"], match.start("number")
    size = _digits(number)
    if size < _FEWEST:
        return
    alone = number.split(" ")
    if size > _MOST:
        yield from _within(number, start)
    elif len(alone) > 1 and all(_digits(part) >= _FEWEST for part in alone):
        for part in alone:
            yield start, start + len(part), _score_in(match.string, start, part, extended=False)
            start += len(part) + 1
    elif score := _score_in(match.string, start, number, extended=match["extension"] is not None):
        yield start, match.end(), score


def _digits(number: str) -> int:
    return sum(map(str.isdigit, number))


def _within(row: str, offset: int) -> Iterator[tuple[int, int, float]]:
    """Yield what looks like a phone number inside a longer row of digit groups."""
    for match in _IN_A_ROW.finditer(row):
        yield offset + match.start(), offset + match.end(), _NATIONAL


def _score_in(text: str, start: int, number: str, *, extended: bool) -> float:
    """Return the score of a candidate at ``start`` of ``text``, whose language may make a number of it."""
    score = _score(number, _digits(number), extended=extended)
    if score in (_SHORT, _BARE) and is_local(text, start, start + len(number)):
        return _NATIONAL
    return score


def _score(number: str, size: int, *, extended: bool) -> float:
    """Return the score of a candidate; 0 if it is not a phone number."""
    number = number.strip("()") if number.count("(") != number.count(")") else number
    if number.isdigit():
        return _FORMATTED if extended else _BARE if _TEN_DIGITS.fullmatch(number) else _SHORT
    if number.lstrip("(").startswith("+"):
        return _INTERNATIONAL if _possible(number) else 0
    if _DATE.fullmatch(number) or _OTHER.fullmatch(number) or size > _MOST:
        return 0
    if extended or _NORTH_AMERICAN.fullmatch(number) or _TOLL_FREE.fullmatch(number):
        return _FORMATTED
    if _LOCAL.fullmatch(number):
        return _SHORT
    return _national(number, size)


def _national(number: str, size: int) -> float:
    grouped = _SEPARATOR.search(number) is not None
    if _LIKE_AN_ORDER.fullmatch(number):
        return _BARE
    if number.startswith("00") and grouped and _possible("+" + number[2:]):
        return _FORMATTED
    if size >= _NATIONAL_LEAST and (_BY_SHAPE.fullmatch(number) or _WRITTEN_AMERICAN.fullmatch(number)):
        return _NATIONAL
    if number.startswith(("0", "(0")) and size >= _NATIONAL_LEAST and grouped:
        return _NATIONAL if _valid_somewhere(number) else _SHORT
    return _SHORT


@lru_cache(maxsize=4096)
def _possible(number: str) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number.replace("(0)", ""), None))
    except phonenumbers.NumberParseException:
        return False


class _Plan(NamedTuple):
    """A quick check of a number before the library checks it, more slowly, against the plan of a region."""

    region: str
    abroad: re.Pattern[str]
    prefix: re.Pattern[str]
    form: re.Pattern[str]

    def may_hold(self, digits: str) -> bool:
        """Return whether the number has a form of the region, with or without the prefix for long distance."""
        prefix = self.prefix.match(digits)
        if self.abroad.match(digits) or (prefix and any(prefix.groups())):
            return True
        bare = digits[prefix.end() :] if prefix else digits
        return bool(self.form.fullmatch(bare) or self.form.fullmatch(digits))


@cache
def _plans() -> list[_Plan]:
    facts: Any = phonenumbers.PhoneMetadata.metadata_for_region
    plans = []
    for region in REGIONS:
        own = facts(region)
        shared = phonenumbers.COUNTRY_CODE_TO_REGION_CODE[own.country_code]
        form = re.compile(
            "|".join(facts(region_code).general_desc.national_number_pattern for region_code in shared)
        )
        prefix = re.compile(own.national_prefix_for_parsing or r"(?!)")
        plans.append(_Plan(region, re.compile(own.international_prefix), prefix, form))
    return plans


@lru_cache(maxsize=4096)
def _valid_somewhere(number: str) -> bool:
    """Return whether the number is valid in any of the number plans."""
    digits = phonenumbers.normalize_digits_only(number)
    for plan in _plans():
        try:
            if plan.may_hold(digits) and phonenumbers.is_valid_number(
                phonenumbers.parse(number, plan.region)
            ):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False
