# ruff: noqa: E501, RUF001 - each pattern is on one line; cues and names are spelled as in texts
"""Recognize names and addresses in fields of forms, JSON, XML and tables, such as ``first_name`` or ``Anschrift``."""

from presidio_analyzer import EntityRecognizer

from app.engines.pii.recognizers.cues import CuedRecognizer

_LINK = r"[\"'`]?\s{0,2}[:=>]\s{0,3}[\"'`]?(?:<!\[CDATA\[)?"
_NAME_CUES = (
    r"(?<![^\W_])(?:(?:first|last|full|given|family|middle|maiden|legal|cardholder|card.holder|patient|customer|client|employee"
    r"|applicant|holder|contact|beneficiary|guardian|spouse|emergency.contact)[ _\-]?names?|surname|fore[ _\-]?name|vorname|nachname"
    r"|familienname|prénom|nom de famille|primer nombre|apellidos?|cognome|sobrenome|voornaam|achternaam|name on (?:the )?card)"
)
_PART = r"[A-ZÀ-ÖØ-ÞĀ-Ž](?:\w|['’\-](?=\w)){0,24}\.?"
_NO_NAME = (
    r"(?!(?:String|Str|Text|Optional|Integer|Int|Null|None|True|False|Required|Field|Char|CharField|Varchar|Column|Name|First|Last"
    r"|Full|Any|Type|Value|Unknown|Invalid|Missing|Empty|Anonymous|Test|Default|Example|Object|Array|List|Not|The|This|Is|Must)(?![a-z]))"
)
_NAME = rf"(?-i:{_NO_NAME}{_PART}(?: (?:(?:de|da|van|von|der|la|del|di|dos|al|bin) ){{0,2}}{_PART}){{0,3}})"
_ENDS = r"(?=[ \t]{0,3}(?:[\"'`<;|]|,|\r?$|\\n|\]\]))"
_STREET_CUES = (
    r"(?<![^\W_])(?<!mail )(?<!mail-)(?<!ip )(?<!mac )(?:(?:street|home|postal|mailing|billing|shipping|delivery|residential|current)?[ _\-]?"
    r"address(?:[ _\-]?(?:line)?[ _\-]?[12])?|street|adresse|anschrift|straße|strasse|dirección|domicilio|indirizzo|endereço|adres|rue|domicile)"
)
_HOUSE = (
    r"(?-i:\d{1,6}[A-Za-z]?(?:[\-/]\d{1,4})?,? [A-ZÀ-ÖØ-Þ][\w.'’\-]{1,24}(?: [A-Z0-9][\w.'’\-]{0,24}){0,5}"
    r"|[A-ZÀ-ÖØ-Þ][^\W\d_]{2,30}(?:[ \-.][^\W_][\w.'’]{0,20}){0,4}\.?,? \d{1,5}(?!\.\d))"
)


def form_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        NamedPersonRecognizer(),
        CuedRecognizer(
            "NamedAddressRecognizer",
            "ADDRESS_FIELD",
            [(rf"{_STREET_CUES}{_LINK}(?P<value>{_HOUSE})", 0.6)],
        ),
    ]


class NamedPersonRecognizer(CuedRecognizer):
    """Find the value of a name field, even if it is a rare name or a common word."""

    needs_digit = False

    def __init__(self) -> None:
        super().__init__(
            "NamedPersonRecognizer",
            "PERSON_FIELD",
            [(rf"{_NAME_CUES}{_LINK}(?P<value>{_NAME}){_ENDS}", 0.75)],
        )
