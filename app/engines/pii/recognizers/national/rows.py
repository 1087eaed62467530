"""Define the rows in the tables of national identifiers, and the recognizer built from each row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import regex  # type: ignore[import-untyped]

from app.engines.pii.recognizers.checksums.shared import compact
from app.engines.pii.recognizers.patterns import ExactPatterns

SURE: Final = 1.0
"""Shape and check together are rare in ordinary text: counts without a context word."""

CHECKED: Final = 0.5
"""The check passes by chance once in ten to a hundred numbers: counts only with a context word."""

SPELLED: Final = 0.29
"""Another spelling of a `SURE` pattern: too low to count without a context word, even in *strict* mode."""

SHAPED: Final = 0.15
"""There is no check: needs a context word, and yields to findings with a check."""

_FLAGS = regex.DOTALL | regex.MULTILINE
# Not inside words, UUIDs, decimals, versions or prices, nor after the plus of a phone number. Letters of scripts
# that put no spaces between words may stand next to a number.
_WORD = r"0-9A-Za-z_\u00aa-\u0dff\u0f00-\u1fff\u212a\uff10-\uff19"
_BEFORE = rf"(?<![{_WORD}+$€£@-])(?<!\d[./])"
_AFTER = rf"(?![{_WORD}-])(?!\.\d)"
_NAMED = "(?P<value>"
"""Part of every pattern that includes its context word."""

_NATIONAL = (
    "national id, national id number, national identity number, national identification number, national number, "
    "identity number, personal identification number, personal id, personal id number, personal identity code, "
    "personal code, personal number, citizen id, citizen number, identification number, id number, "
    "nationalid, idnumber, national identifier, identity document, id document"
)
_TAX = (
    "tax id, tax number, taxid, tax identification, tax identification number, tax identifier, "
    "taxpayer id, taxpayer number, taxpayer identification, taxpayer identification number, tin, tax reference, "
    "tax code"
)
_HEALTH = (
    "social security, social security number, social insurance, social insurance number, insurance number, "
    "health insurance number, health insurance, health number, health card, patient number, patient id, ssn"
)
_CARD = (
    "identity card, id card, id card number, identity card number, national identity card, identity document"
)
_NAMED_ID = (
    "national id, national id number, national identity number, national identification number, nationalid, "
    "national identity card, identity card number, id card number, citizen id, personal identification number, "
    "national identifier"
)
_PASSPORT = "passport, passport number, travel document"
_LICENCE = (
    "driving licence, driving license, driver licence, driver license, driver's licence, driver's license, "
    "drivers licence, drivers license, licence number, license number"
)
_VAT = "vat, vat number, vat id, vat registration, vat reg, vatin"

WORDS: Final[dict[str, str]] = {
    "": "",
    "national": _NATIONAL,
    "tax": _TAX,
    "health": _HEALTH,
    "social": f"{_HEALTH}, {_NATIONAL}",
    "both": f"{_NATIONAL}, {_TAX}",
    "named": _NAMED_ID,
    "card": f"{_CARD}, {_NATIONAL}",
    "passport": _PASSPORT,
    "licence": _LICENCE,
    "vat": _VAT,
}
"""English context words for each kind of identifier, used in addition to those of its country."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """A kind of identifier: its patterns without boundaries, its check, and its context words.

    ``sure`` patterns match as written and need no context; ``likely`` patterns ignore case and need context. ``words``
    are in the languages of the country, separated by commas; ``kind`` adds English words.
    """

    entity: str
    kind: str
    words: str
    sure: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    check: Callable[[str], bool] | None = None

    def patterns(self) -> list[tuple[str, float]]:
        """Return the patterns with boundaries, each with its score."""
        weak = SHAPED if self.check is None else SPELLED if self.sure else CHECKED
        return [
            *(
                (f"{'' if _NAMED in pattern else _BEFORE}(?:{pattern}){_AFTER}", SURE)
                for pattern in self.sure
            ),
            *((f"{_BEFORE}(?i:{pattern}){_AFTER}", weak) for pattern in self.likely),
        ]

    def context(self) -> list[str]:
        """Return all context words and phrases."""
        spelled = f"{self.words}, {WORDS[self.kind]}".split(", ")
        return list(dict.fromkeys(word for word in spelled if word))


class NationalRecognizer(ExactPatterns):
    """Find one kind of identifier by its row."""

    def __init__(self, row: Identifier) -> None:
        super().__init__(row.entity, row.patterns(), row.context(), _FLAGS)
        self.name = f"{row.entity.title().replace('_', '')}Recognizer"
        self._check = row.check

    def validate_result(self, pattern_text: str) -> bool | None:
        """Return False if the check fails; otherwise None, which keeps the score of the pattern."""
        if self._check is None:
            return None
        try:
            return None if self._check(compact(pattern_text)) else False
        except (IndexError, KeyError, ValueError):
            # A character has no value at its place, such as the letter O among digits: not a valid number.
            return False
