# ruff: noqa: RUF001 - cues are spelled as in texts
"""Recognize cards, accounts and banks: numbers with check digits anywhere, others only after a cue."""

import re
from collections.abc import Container
from typing import Any

from presidio_analyzer import EntityRecognizer, Pattern, RecognizerResult

from app.engines.pii.recognizers.cues import DIGITS, CuedRecognizer, cued
from app.engines.pii.recognizers.patterns import ExactPatterns

IBAN_LENGTHS: dict[str, int] = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE BI",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}
"""Characters of an IBAN by country (ISO 13616 registry)."""

_ISSUERS: tuple[tuple[int, int, Container[int]], ...] = (
    (4000, 4999, (13, 16, 19)),
    (5100, 5599, (16,)),
    (2221, 2720, (16,)),
    (3400, 3499, (15,)),
    (3700, 3799, (15,)),
    (3000, 3099, range(14, 20)),
    (3600, 3699, range(14, 20)),
    (3800, 3999, range(14, 20)),
    (3500, 3599, range(16, 20)),
    (1800, 1800, (15,)),
    (2131, 2131, (15,)),
    (5000, 5099, range(12, 20)),
    (5600, 5899, range(12, 20)),
    (6000, 6999, range(12, 20)),
)
"""First four digits (lowest and highest) and the lengths of their numbers (ISO/IEC 7812 issuers)."""

_CARD_LENGTHS = range(12, 20)
_DIGITS = re.compile(r"\d+")
_SECURITY_CODE = (
    *(
        "cvv2?",
        "cvc2?",
        "cvn",
        "(?-i:CID)",
        "(?-i:CSC)",
        "cv2",
        "card (?:security|verification) (?:code|value|number)",
        "security code",
    ),
    *(
        "karten ?prüf(?:nummer|ziffer)",
        "prüfziffer(?: der karte)?",
        "sicherheitscode",
        "cryptogramme(?: visuel)?",
        "code de sécurité",
    ),
    *("código de seguridad", "codice di sicurezza", "código de segurança", "beveiligingscode"),
)
_EXPIRES = (
    *(
        "exp(?:\\.|iry|ir(?:es|ation|y|ing))?(?: date| month)?",
        "card exp(?:iry|iration)?(?: date)?",
        "valid (?:thru|through|until|to)",
    ),
    *(
        "good thru",
        "gültig bis",
        "ablaufdatum",
        "verfallsdatum",
        "expire (?:le|fin)",
        "date d['’]expiration",
        "fecha de (?:caducidad|vencimiento)",
    ),
    *(
        "caduca",
        "vencimiento",
        "scadenza",
        "data di scadenza",
        "validade",
        "vencimento",
        "vervaldatum",
        "geldig tot",
        "exp dt",
    ),
)
_ACCOUNT = (
    *(
        "(?:bank |checking |chequing |savings |deposit |current |giro |beneficiary |wire |payee )?acc(?:oun)?t",
        "a/c",
        "iban",
    ),
)
_ACCOUNT_WORDS = (
    *(
        "(?:bank|checking|chequing|savings|deposit|current|giro|beneficiary) acc(?:oun)?t",
        "konto(?:nummer)?",
        "bankkonto",
        "konto nr",
    ),
    *(
        "numéro de compte",
        "compte(?: bancaire| courant| n[°º])?",
        "número de (?:la )?cuenta",
        "cuenta(?: bancaria| corriente)?",
    ),
    *(
        "numero (?:di )?conto",
        "conto(?: corrente| bancario)?",
        "c/c",
        "número da conta",
        "conta(?: corrente| bancária)?",
    ),
    *("rekening(?: ?nummer)?", "bankrekening", "clabe", "cbu", "rib", "nib", "acct", "nuban", "cvu", "cci"),
    *("chave pix", "pix(?: chave)?", "akaun(?: bank)?", "nomor rekening", "số tài khoản", "stk"),
)
_BRANCH = (
    *(
        "routing",
        "aba(?: routing)?",
        "rtn",
        "bank routing",
        "wire routing",
        "(?:branch )?sort code",
        "sort",
        "bsb",
        "ifsc",
        "micr",
    ),
    *(
        "blz",
        "bankleitzahl",
        "transit",
        "branch(?: code)?",
        "bank code",
        "institution",
        "clearing",
        "code guichet",
        "code banque",
    ),
)
_BRANCH_CODE = (
    r"\d{9}|\d{2}[\s\-]\d{2}[\s\-]\d{2}|\d{3}[\s\-]\d{3}|[A-Z]{4}0[A-Z0-9]{6}|\d{3} \d{3} \d{2}|\d{5}-\d{3}"
    r"|\d{4}-\d{4}-\d|\d{8}|\d{6}"
)
_BIC = r"(?-i:[A-Z]{6}[A-Z2-9][A-NP-Z0-9](?:[A-Z0-9]{3})?)"
_DIGIT_BIC = rf"(?=[A-Z]{{6,10}}\d){_BIC}"
_COUNTRIES = (
    "AD AE AF AG AI AL AM AO AR AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BM BN BO BR BS BT BW BY BZ CA CD CF "
    "CG CH CI CK CL CM CN CO CR CU CV CW CY CZ DE DJ DK DM DO DZ EC EE EG ER ES ET FI FJ FK FM FO FR GA GB GD "
    "GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IQ IR IS IT JE JM JO JP KE KG "
    "KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MG MH MK ML MM MN MO MQ MR MS MT "
    "MU MV MW MX MY MZ NA NC NE NG NI NL NO NP NR NZ OM PA PE PF PG PH PK PL PR PS PT PW PY QA RE RO RS RU RW "
    "SA SB SC SD SE SG SI SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TG TH TJ TL TM TN TO TR TT TV TW TZ UA UG "
    "US UY UZ VA VC VE VG VI VN VU WS XK YE ZA ZM ZW "
)


def payment_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    month = r"(?:0[1-9]|1[0-2])\s?[/\-.]\s?(?:20)?[2-4]\d"
    return [
        CreditCardRecognizer(),
        CardTrackRecognizer(),
        IbanRecognizer(),
        BicRecognizer(),
        CuedRecognizer(
            "CardSecurityCodeRecognizer", "CARD_SECURITY_CODE", [(cued(_SECURITY_CODE, r"\d{3,4}"), 0.7)]
        ),
        CuedRecognizer("CardExpiryRecognizer", "CARD_EXPIRY", [(cued(_EXPIRES, month), 0.6)]),
        CuedRecognizer(
            "BankAccountRecognizer",
            "BANK_ACCOUNT_NUMBER",
            [
                (cued(_ACCOUNT, DIGITS, noun=True), 0.6),
                (cued(_ACCOUNT_WORDS, DIGITS), 0.6),
                (r"(?<![^\W_])account\s{0,2}[:#]?\s{0,2}(?P<value>\d{8,17})(?![\w\-])(?!\.\d)", 0.5),
            ],
        ),
        PaymentAddressRecognizer(),
        CuedRecognizer("BankBranchRecognizer", "BANK_BRANCH_CODE", [(cued(_BRANCH, _BRANCH_CODE), 0.6)]),
    ]


class CreditCardRecognizer(ExactPatterns):
    """Find payment card numbers of known issuers with a valid check digit (Luhn), also in a row of numbers."""

    gate = re.compile(r"(?<![\w-])\d(?:[ .-]?\d){11}")
    _SHAPES = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 5), (8, 8), (6, 13), (4, 4, 4, 4, 3)})

    _RARE, _DOUBTFUL = 13, 0.3
    """Unbroken numbers of 13 digits or fewer are usually article numbers; they count only with a context word."""

    def __init__(self) -> None:
        super().__init__(
            "CREDIT_CARD",
            [(r"(?<![\w-])(?<!\d\.)\d{4,19}(?:[ .-]\d{3,13}){0,999}(?![\w-])", 0.3)],
            ["card", "credit card"],
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        del pattern
        groups = [(digits.start(), digits.end()) for digits in _DIGITS.finditer(match.string, *match.span())]
        for place, (start, _) in enumerate(groups):
            for size in range(min(5, len(groups) - place), 0, -1):
                end = groups[place + size - 1][1]
                shape = tuple(stop - begin for begin, stop in groups[place : place + size])
                if (size == 1 or shape in self._SHAPES) and self.validate_result(match.string[start:end]):
                    rare = size == 1 and end - start <= self._RARE
                    results.append(self.result(start, end, self._DOUBTFUL if rare else self.MAX_SCORE))
                    break

    def validate_result(self, pattern_text: str) -> bool:
        """Return whether issuer, length and check digit are those of a card."""
        digits = "".join(character for character in pattern_text if character.isdigit())
        return len(digits) in _CARD_LENGTHS and _known_issuer(digits) and _luhn(digits)


def _known_issuer(digits: str) -> bool:
    first = int(digits[:4])
    return any(low <= first <= high and len(digits) in lengths for low, high, lengths in _ISSUERS)


def _luhn(digits: str) -> bool:
    total = sum(map(int, digits[-1::-2])) + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return total % 10 == 0 and len(set(digits)) > 1


class CardTrackRecognizer(ExactPatterns):
    """Find the content of a card's magnetic stripe (ISO/IEC 7813): the first track, with the name, and the second."""

    gate = re.compile(r"\d[\^=]")

    def __init__(self) -> None:
        super().__init__(
            "CARD_TRACK",
            [
                (r"%?B\d{12,19}\^[A-Z .'/\-]{2,26}\^\d{7}[^\s?]{0,60}\??", 0.95),
                (r"(?<![\w;]);?\d{12,19}=\d{7}\d{0,24}\??(?!\w)|;\d{12,19}=\d{7}\d{0,24}\??(?!\w)", 0.95),
            ],
        )


class IbanRecognizer(ExactPatterns):
    """Find IBANs by the length for their country; every possible start is tried, so a word before cannot hide one.

    A wrong checksum results in a low score, which counts only with context or in *strict* mode.
    """

    def __init__(self) -> None:
        super().__init__(
            "IBAN_CODE",
            [(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?=[ \-]?[A-Z0-9])", 0.2)],
            ["iban", "bank account", "bank transfer", "account"],
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        text, start = match.string, match.start()
        length = IBAN_LENGTHS.get(match.group()[:2].upper())
        if length is None:
            return
        characters: list[str] = []
        end = start
        while len(characters) < length and end < len(text):
            if text[end].isascii() and text[end].isalnum():
                characters.append(text[end].upper())
            elif text[end] not in " -" or text[end - 1] in " -":
                return
            end += 1
        if len(characters) < length or (end < len(text) and text[end].isalnum()):
            return
        moved = "".join(characters[4:] + characters[:4])
        valid = int("".join(str(int(character, 36)) for character in moved)) % 97 == 1
        if valid or sum(map(str.isdigit, characters)) * 2 >= length:
            results.append(self.result(start, end, self.MAX_SCORE if valid else pattern.score))


class BicRecognizer(CuedRecognizer):
    """Find business identifier codes (ISO 9362) of existing countries after *BIC* or *SWIFT*."""

    needs_digit = False

    def __init__(self) -> None:
        strong = (
            "bic(?: swift)?(?: code)?",
            "swift bic",
            "swift code",
            "code bic",
            "código swift",
            "código bic",
        )
        super().__init__(
            "BicRecognizer",
            "BIC_CODE",
            [
                (cued(strong, _BIC), 0.8),
                (cued(("swift",), _BIC, firm=True), 0.8),
                (cued(("swift",), _DIGIT_BIC), 0.8),
            ],
        )

    def validate_result(self, pattern_text: str) -> bool | None:
        """Reject codes of countries that do not exist."""
        return None if f" {pattern_text[4:6]} " in f" {_COUNTRIES} " else False


class PaymentAddressRecognizer(CuedRecognizer):
    """Find addresses of India's payments (``ravi@okbank``) behind *UPI* or *VPA*; a bank's handle is no domain."""

    needs_digit = False

    def __init__(self) -> None:
        cues = ("upi(?: id| address)?", "vpa", "gpay(?: id)?", "bhim(?: id)?")
        super().__init__(
            "PaymentAddressRecognizer",
            "BANK_ACCOUNT_NUMBER",
            [(cued(cues, r"[\w.\-]{2,64}@[a-z]{2,20}"), 0.6)],
        )
