"""Read a value by the name of its member alone: ``"pesel": "63042882737"`` is one, whatever its check digit says.

In running text a wrong check digit tells that a number is something else. A member says what its value is, so a number
that was mistyped or made up is hidden, too.
"""

import re
import unicodedata
from functools import cache, lru_cache
from typing import Final

from app.engines.pii.ground.labels import RULES

MEMBER: Final = re.compile(r"\"([^\"\n]{1,64})\": [\"'` ]")
"""How a value stands behind the name of its member."""

_OF_COUNTRY: Final = re.compile(r"[A-Z]{2}_")
_NOT_NUMBERED: Final = frozenset(
    {"PASSPORT", "LICENSE", "POSTCODE", "PLATE", "PHONE", "BANK_ACCOUNT", "VAT", "CIF", "COMPANY_REG"}
)
"""Labels without check digits, or whose names mean an amount of money, too."""

_MORE_NAMES: Final = {
    "CREDIT_CARD": "card, credit card, creditcard, card number, cardnumber, card no, debit card, debitcard, cc number, "
    "kreditkarte, kreditkartennummer, carte bancaire, carte de credit, tarjeta de credito, tarjeta credito, "
    "numero de tarjeta, numero tarjeta, carta di credito, cartao de credito, kreditkort",
    "MEDICAL_LICENSE": "dea",
    "IT_FISCAL_CODE": "codice fiscale, codicefiscale",
    "FR_NIR": "insee, securite sociale",
    "DE_TAX_ID": "steuer id, steuer idnr, steuerid, steueridnr, steueridentifikationsnummer",
    "DE_SOCIAL_SECURITY": "sozialversicherungsnummer, rentenversicherungsnummer",
    "BE_NISS": "rijksregisternummer, registre national",
    "FI_PERSONAL_IDENTITY_CODE": "henkilotunnus",
    "TR_NATIONAL_ID": "tc kimlik, kimlik no",
    "ZA_ID_NUMBER": "sa id",
    "CZ_RODNE_CISLO": "rodnecislo",
    "EE_ISIKUKOOD": "isikukood",
    "CN_RESIDENT_ID": "身份证, 身分證",
    "KR_RRN": "주민등록번호, 주민번호",
    "ANY_NATIONAL_ID": "national id, national identity, national identification, jmbg, mykad, idnp, edrpou, snils, "
    "iin, cccd, cmnd, ktp, cnic, szemelyi szam, numero de identificacion, citizen id",
    "ANY_TAX_ID": "tax number, taxpayer, inn",
}

_PERSON: Final = "PERSON"
_OF_PERSON: Final = re.compile(
    r"(?:first|last|full|given|family|middle|maiden|legal|birth|card ?holder|patient|employee|applicant|guardian|spouse"
    r"|emergency contact)s? ?names?|surnames?|forenames?|vornamen?|nachnamen?|familiennamen?|prenoms?|nom de famille"
    r"|primer nombre|apellidos?|cognome|sobrenome|voornaam|achternaam"
)
"""Names of members that hold a person's name and nothing else: a customer or a contact may be a company."""
_WORDS: Final = re.compile(r"[^\W\d_]+(?:\.?[ ,]{1,2}[^\W\d_]+|['’\-][^\W\d_]+){0,5}\.?")  # noqa: RUF001 - as names have it
_SAID_OF_NAMES: Final = (
    "string str text varchar char type required optional asc desc ascending descending keyword true false null none nil"
    " na unknown unspecified undefined empty missing anonymous redacted hidden masked default boolean integer number"
    " object array column field member value name names first last full given family middle maiden legal surname"
    " forename and or of the not yes no"
)
"""What a schema, a form or a table says where a name would stand."""
_NO_NAMES: Final = frozenset(_SAID_OF_NAMES.split())
_SHORTEST_NAME: Final = 2
_LONGEST_NAME: Final = 64

_LEAST_DIGITS: Final = 6
_LONGEST: Final = 32
_CARD: Final = "CREDIT_CARD"
_CARD_DIGITS: Final = range(12, 20)
_PART: Final = r"[A-Za-z]{0,6}\d[A-Za-z\d]*"
_FORM: Final = re.compile(
    rf"{_PART}(?:[ .\-/]{_PART}){{0,7}}(?:[ .\-/]?[A-Za-z]{{1,3}})?(?:\(\w\))?", re.ASCII
)
_OTHER_FORM: Final = re.compile(
    # A decimal, a year or a date, a time: a member may count such, too.
    r"\d+\.\d+|(?:19|20)\d\d[-/.]\d\d?[-/.]\d\d?.*|\d\d?[-/.]\d\d?[-/.](?:19|20)?\d\d",
    re.ASCII,
)


def named_value(text: str) -> tuple[int, int, str] | None:
    """Return the place and the entity type of the value that ``text`` is, behind its member's name; None for others."""
    frame = MEMBER.match(text)
    if not frame:
        return None
    start, end = frame.end(), len(text) - (text[-1] == text[frame.end() - 1])
    entity, value = named_entity(frame[1]), text[start:end]
    if entity == _PERSON:
        return (start, end, entity) if is_name(value) else None
    if not entity:
        return None
    if len(value) > _LONGEST or _FORM.fullmatch(value) is None or _OTHER_FORM.fullmatch(value):
        return None
    digits = sum(map(str.isdigit, value))
    if digits < _LEAST_DIGITS or (entity == _CARD and digits not in _CARD_DIGITS):
        return None
    return start, end, entity


@lru_cache(maxsize=4_096)
def named_entity(name: str) -> str:
    """Return the type of identifier that the words of a member's name say; empty if they say none."""
    if _OF_PERSON.fullmatch(_plain(name)):
        return _PERSON
    words = f" {_plain(name)} "
    return next((entity for phrase, entity in _names().items() if f" {phrase} " in words), "")


def is_name(value: str) -> bool:
    """Return whether the value of a member for a person's name may be one, in whatever letters it is written."""
    if not _SHORTEST_NAME <= len(value) <= _LONGEST_NAME or _WORDS.fullmatch(value) is None:
        return False
    return not _NO_NAMES.issuperset(re.findall(r"\w+", value.lower()))


@cache
def _names() -> dict[str, str]:
    """Return types of identifiers by the words for them, the longest words first."""
    names: dict[str, str] = {}
    for entity, words in _MORE_NAMES.items():
        names.update(dict.fromkeys(map(_plain, words.split(", ")), entity))
    for entity, rule in RULES.items():
        if _OF_COUNTRY.match(entity) and rule.label not in _NOT_NUMBERED:
            names.setdefault(rule.label.lower().replace("_", " "), entity)
    return dict(sorted(names.items(), key=lambda name: -len(name[0])))


def _plain(words: str) -> str:
    """Return words in lower case and without accents."""
    if words.isascii():
        return words.lower()
    split = unicodedata.normalize("NFKD", words.lower())
    return unicodedata.normalize("NFC", "".join(char for char in split if not unicodedata.combining(char)))
