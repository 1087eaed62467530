# ruff: noqa: RUF001 - months in their own letters
"""Recognize dates in many languages; those of birth, death and treatment by words nearby; ages above 89."""

import re
from typing import Any

from presidio_analyzer import EntityRecognizer, Pattern, RecognizerResult

from app.engines.pii.recognizers.cues import CuedRecognizer, cued
from app.engines.pii.recognizers.patterns import ExactPatterns

_ENGLISH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_OTHER = (
    r"(?:januar|februar|märz|mai|juni|juli|oktober|dezember|mär|mrz|okt|dez|jän(?:ner)?|janvier|février|fevrier|mars|avril|juin"
    r"|juillet|août|aout|septembre|octobre|novembre|décembre|decembre|janv|févr?|avr|juil|déc|enero|febrero|marzo|abril|mayo"
    r"|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre|ene|abr|ago|dic|gennaio|febbraio|aprile|maggio|giugno|luglio"
    r"|settembre|ottobre|dicembre|gen|mag|giu|lug|set|ott|janeiro|fevereiro|março|marco|maio|junho|julho|setembro|outubro"
    r"|novembro|dezembro|fev|out|januari|februari|maart|mei|augustus|mrt"
    r"|maj|augusti|desember|maret|agustus|stycznia|lutego|marca|kwietnia|maja|czerwca|lipca|sierpnia|września|października|listopada"
    r"|grudnia|ledna|února|března|dubna|května|června|července|srpna|září|října|listopadu|prosince"
    r"|ocak|şubat|mart|nisan|mayıs|haziran|temmuz|ağustos|eylül|ekim|kasım|aralık"
    r"|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
    r"|січня|лютого|березня|квітня|травня|червня|липня|серпня|вересня|жовтня|листопада|грудня)\.?"
)
# The look-ahead for a digit before a choice of digits makes the search try it only where there is a digit.
_DAY, _MONTH = r"(?=\d)(?:0?[1-9]|[12]\d|3[01])", r"(?=\d)(?:0?[1-9]|1[0-2])"
_YEAR = r"(?:1[89]\d{2}|20\d{2})"
_CLOCK = r"(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:Z|[+-][0-2]\d:?[0-5]\d)?)?"
DATES = (
    rf"(?<![\w./-])\d{{4}}([-/.]){_MONTH}\1{_DAY}{_CLOCK}(?![\w/-]|\.\d)",
    rf"(?<![\w./-])(?:{_DAY}([-/.]){_MONTH}\1|{_MONTH}([-/.]){_DAY}\2)(?:{_YEAR}|\d{{2}})(?![\w/-]|\.\d)",
    rf"(?<!\w){_DAY}(?:st|nd|rd|th)?[ \-/](?:of )?{_ENGLISH}(?:,?[ \-/](?:{_YEAR}|'?\d{{2}}))?(?!\w)",
    rf"(?<!\w){_ENGLISH}[ \-/]{_DAY}(?:st|nd|rd|th)?(?:,? {_YEAR})?(?!\w)",
    rf"(?<!\w){_ENGLISH}[ \-/,]{{1,2}}{_YEAR}(?!\w)",
    rf"(?<!\w){_DAY}(?:\.|er|ère|º|°)?[ \-/](?:de |of )?(?:{_OTHER}|{_ENGLISH})[ \-/,]{{1,2}}(?:del? )?{_YEAR}(?!\w)",
    rf"(?<![\w./-]){_DAY}\. {_MONTH}\. ?{_YEAR}(?![\w/-]|\.\d)",
    r"(?<!\d)(?:19|20)\d{2}\s?年\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?日)?",
)
_COMPACT = r"(?<![\w./+-])(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![\w/-]|\.\d)"
"""A date of eight digits, as programs write it; only a word for birth nearby tells it from any other number."""

_BIRTH = [
    *(
        "born",
        "birth",
        "date of birth",
        "dob",
        "d.o.b",
        "birthday",
        "birthdate",
        "bday",
        "birth date",
        "born on",
    ),
    *(
        "geboren",
        "geburtsdatum",
        "geb",
        "geburtstag",
        "nacimiento",
        "nacido",
        "nacida",
        "nació",
        "cumpleaños",
    ),
    *("naissance", "né", "née", "nato", "nata", "nascita", "nascimento", "nascido", "nascida", "aniversário"),
    *("urodzony", "födelsedatum", "geboortedatum", "compleanno", "anniversaire", "verjaardag", "生年月日"),
]
_OF_WORK = re.compile(
    r"(?:(?<![^\W_])|(?-i:(?<=[a-z])(?=[A-Z])))(?:hire[ds]?|hiring|employ(?:ed|ment)|join(?:ed|ing)|start(?:ed|ing)?)"
    r"[ _-]?(?:date|on|at)?[\"'\s:=|>(]{0,6}\Z",
    re.IGNORECASE,
)
"""Text right before a date that rules out a birthday, however near one is mentioned: ``"hire_date": "2015-06-01"``."""

_BEFORE = 24
_CARE = [
    *(
        "admission",
        "admitted",
        "discharge",
        "discharged",
        "death",
        "died",
        "deceased",
        "date of service",
        "surgery",
        "dos",
    ),
    *(
        "date of death",
        "dod",
        "admission date",
        "hospitalized",
        "hospitalised",
        "diagnosed",
        "diagnosis date",
        "immunization",
    ),
    *(
        "vaccinated",
        "operated",
        "treated",
        "transplant",
        "passed away",
        "appointment",
        "procedure date",
        "last seen",
    ),
    *(
        "aufnahmedatum",
        "aufgenommen",
        "entlassung",
        "entlassen",
        "verstorben",
        "gestorben",
        "todestag",
        "sterbedatum",
    ),
    *(
        "décès",
        "décédé",
        "décédée",
        "hospitalisé",
        "hospitalisée",
        "admis",
        "admise",
        "sortie",
        "ingreso",
        "ingresado",
    ),
    *(
        "fallecido",
        "fallecida",
        "fallecimiento",
        "falleció",
        "ricovero",
        "ricoverato",
        "dimissione",
        "dimesso",
        "decesso",
    ),
    *(
        "deceduto",
        "internação",
        "internado",
        "óbito",
        "faleceu",
        "opname",
        "opgenomen",
        "ontslag",
        "overleden",
    ),
]
_OLD = r"(?=\d)(?:9\d|1[01]\d|12[0-5])"
_YEARS_OLD = (
    r"[\s\-]?(?:years?|yrs?|yr)[\s\-]{1,2}(?:old|of\sage)|[\s\-]?(?:y/?o|yo|y\.o\.)(?!\w)|\s?jahre\salt|[\s\-]?jährige?[rsnm]?(?!\w)"
    r"|\sans(?=[\s,.;)]|$)(?!\s(?:plus\stard|après|de\s(?:garantie|service)))|\saños(?:\sde\sedad)?(?!\w)(?!\sdespués|\sde\s(?!edad))"
    r"|\sanni(?!\w)(?!\sdopo|\sfa)|\sanos\sde\sidade|\sjaar\soud"
)
_AGE_CUES = (
    "age",
    "aged",
    "patient age",
    "alter",
    "edad",
    "âge",
    "âgée?(?: de)?",
    "età",
    "idade",
    "leeftijd",
    "im alter von",
    "turned",
)


def date_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    behind = rf"{_OLD}(?!\s?(?:%|percent|minutes|days|seconds|ms|s\b|hours|months))"
    any_age = r"(?=\d)(?:[1-9]|[1-9]\d|1[01]\d)"
    return [
        BirthDateRecognizer(),
        CareDateRecognizer(),
        DateRecognizer(),
        CuedRecognizer(
            "GreatAgeRecognizer",
            "AGE_OVER_89",
            [(rf"(?<![\w.,\-]){_OLD}(?:{_YEARS_OLD})", 0.7), (cued(_AGE_CUES, behind), 0.6)],
        ),
        CuedRecognizer(
            "AgeRecognizer",
            "AGE",
            [(rf"(?<![\w.,\-]){any_age}(?:{_YEARS_OLD})", 0.6), (cued(_AGE_CUES, any_age), 0.4)],
        ),
    ]


class BirthDateRecognizer(ExactPatterns):
    """Find dates of birth by a word nearby; DateRecognizer finds other dates."""

    def __init__(self) -> None:
        super().__init__("DATE_OF_BIRTH", [(pattern, 0.4) for pattern in (*DATES, _COMPACT)], _BIRTH)

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        start = match.start()
        if not _OF_WORK.search(match.string, max(0, start - _BEFORE), start):
            super()._add(results, match, pattern)


class CareDateRecognizer(ExactPatterns):
    """Find dates of admission, discharge, treatment and death, by a word nearby."""

    def __init__(self) -> None:
        super().__init__("CARE_DATE", [(pattern, 0.4) for pattern in DATES], _CARE)


class DateRecognizer(ExactPatterns):
    """Find dates, with the time of day if one follows."""

    def __init__(self) -> None:
        super().__init__("DATE_TIME", [(pattern, 0.6) for pattern in DATES], ["date"])
