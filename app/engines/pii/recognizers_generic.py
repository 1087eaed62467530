"""Our own recognizers for what Presidio's miss, skip or swallow: e-mail, SSN, card, IBAN, URL, dates and the like."""

import ipaddress
import re
from collections.abc import Container
from typing import Any

from presidio_analyzer import EntityRecognizer, Pattern, RecognizerResult, predefined_recognizers

from app.engines.pii.patterns import FLAGS, ExactPatterns

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
"""First four digits from and to, and the lengths that go with them (ISO/IEC 7812 issuers)."""

_CARD_LENGTHS = range(12, 20)
_SHORTEST_IP = 7
_DOUBTFUL = 0.2
_DIGITS = re.compile(r"\d+")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY, _MONTH_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_YEAR = r"(?:1[89]\d{2}|20\d{2})"
_CLOCK = r"(?:[T ][0-2]\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?:Z|[+-][0-2]\d:?[0-5]\d)?)?"
_DATES = (
    rf"(?<![\w./-])\d{{4}}([-/.]){_MONTH_NUMBER}\1{_DAY}{_CLOCK}(?![\w/-]|\.\d)",
    rf"(?<![\w./-])(?:{_DAY}([-/.]){_MONTH_NUMBER}\1|{_MONTH_NUMBER}([-/.]){_DAY}\2)(?:{_YEAR}|\d{{2}})(?![\w/-]|\.\d)",
    rf"(?<!\w){_DAY}(?:st|nd|rd|th)?[ \-/](?:of )?{_MONTH}(?:,?[ \-/](?:{_YEAR}|'?\d{{2}}))?(?!\w)",
    rf"(?<!\w){_MONTH}[ \-/]{_DAY}(?:st|nd|rd|th)?(?:,? {_YEAR})?(?!\w)",
    rf"(?<!\w){_MONTH}[ \-/,]{{1,2}}{_YEAR}(?!\w)",
)


def generic_recognizers() -> list[EntityRecognizer]:
    """Return the recognizers of this module."""
    return [
        UsSsnRecognizer(),
        EmailRecognizer(),
        CreditCardRecognizer(),
        IbanRecognizer(),
        IpRecognizer(),
        EthereumRecognizer(),
        BirthDateRecognizer(),
        DateRecognizer(),
        UrlRecognizer(),
    ]


class UsSsnRecognizer(ExactPatterns):
    """Find US social security numbers, also those of samples: dashed or spaced always, bare with context only."""

    def __init__(self) -> None:
        super().__init__(
            "US_SSN",
            [
                (r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])", 0.6),
                (r"(?<![\w-])(?<!\d[. ])\d{3}([. ])\d{2}\1\d{4}(?![\w-])(?!\1\d)", 0.6),
                (r"(?<![\w-])(?<!\d\.)(?:\d{5}-\d{4}|\d{3}-\d{6}|\d{9})(?![\w-])(?!\.\d)", 0.05),
            ],
            ["ssn", "ssns", "social security", "social security number", "social", "soc sec", "ss #", "ss"],
        )


class EmailRecognizer(ExactPatterns):
    """Find e-mail addresses by their form alone: reserved and private domains count, no list is fetched.

    The local part is taken from its first character on, however long, so that nothing can hide in front of it.
    """

    needs_digit = False

    def __init__(self) -> None:
        local = r"\w.!#$%&'*+^~\-"
        quoted = r"(?<=\")[^\"\r\n@]{1,64}\""
        host = r"(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.){1,9}[^\W\d_][\w-]{0,61}[^\W_]"
        super().__init__(
            "EMAIL_ADDRESS",
            [
                (
                    rf"(?<![{local}])[.!#$%&'*+^~\-]*+(?P<value>(?:[{local}]++|{quoted})@{host})(?![^\W_])",
                    0.9,
                ),
                (
                    rf"(?<![{local}])(?P<value>[{local}]++@(?:\[(?:\d{{1,3}}\.){{3}}\d{{1,3}}\]|localhost))(?![\w.])",
                    0.6,
                ),
            ],
            ["email", "e mail", "mail"],
        )


class CreditCardRecognizer(ExactPatterns):
    """Find payment card numbers of the known issuers, whose last digit is right (Luhn), also in a row of numbers."""

    _SHAPES = frozenset({(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 5), (8, 8), (6, 13), (4, 4, 4, 4, 3)})

    def __init__(self) -> None:
        super().__init__(
            "CREDIT_CARD",
            [(r"(?<![\w-])\d{4,19}(?:[ .-]\d{3,13}){0,999}(?![\w-])", 0.3)],
            ["card", "credit card"],
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        del pattern
        groups = [(found.start(), found.end()) for found in _DIGITS.finditer(match.string, *match.span())]
        for place, (start, _) in enumerate(groups):
            for size in range(min(5, len(groups) - place), 0, -1):
                end = groups[place + size - 1][1]
                shape = tuple(stop - begin for begin, stop in groups[place : place + size])
                if (size == 1 or shape in self._SHAPES) and self.validate_result(match.string[start:end]):
                    results.append(self.result(start, end, self.MAX_SCORE))
                    break

    def validate_result(self, pattern_text: str) -> bool:
        """Say whether issuer, length and check digit are those of a card."""
        digits = "".join(character for character in pattern_text if character.isdigit())
        return len(digits) in _CARD_LENGTHS and _known_issuer(digits) and _luhn(digits)


def _known_issuer(digits: str) -> bool:
    first = int(digits[:4])
    return any(low <= first <= high and len(digits) in lengths for low, high, lengths in _ISSUERS)


def _luhn(digits: str) -> bool:
    total = sum(map(int, digits[-1::-2])) + sum(sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return total % 10 == 0 and len(set(digits)) > 1


class IbanRecognizer(ExactPatterns):
    """Find IBANs by the length of their country; each possible start is tried, so no word before swallows one.

    A wrong check sum leaves a low score, which only context or *strict* lifts.
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


class IpRecognizer(ExactPatterns):
    """Find IP addresses with Presidio's patterns, but no part of a longer dotted number and no slice like ``1::2``."""

    needs_digit = False
    gate = re.compile(r"::|[0-9a-f]:[0-9a-f]|\d\.\d", re.IGNORECASE)

    def __init__(self) -> None:
        theirs = predefined_recognizers.IpRecognizer
        patterns = [(rf"(?<!\d\.)(?:{pattern.regex})(?!\.\d)", pattern.score) for pattern in theirs.PATTERNS]
        super().__init__("IP_ADDRESS", patterns, theirs.CONTEXT)

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        found = match.group()
        try:
            ipaddress.ip_interface(found)
        except ValueError:
            return
        score = pattern.score if len(found) >= _SHORTEST_IP or found == "::1" else _DOUBTFUL
        results.append(self.result(match.start(), match.end(), score))


class EthereumRecognizer(ExactPatterns):
    """Find addresses of Ethereum and its relatives."""

    def __init__(self) -> None:
        super().__init__(
            "CRYPTO", [(r"(?<![\w])0x[0-9a-f]{40}(?!\w)", 0.6)], ["wallet", "ethereum", "eth", "crypto"]
        )


class BirthDateRecognizer(ExactPatterns):
    """Find dates that a word nearby calls a date of birth; other dates are the DateRecognizer's."""

    def __init__(self) -> None:
        super().__init__(
            "DATE_OF_BIRTH",
            [(pattern, 0.4) for pattern in _DATES],
            [
                *("born", "birth", "date of birth", "dob", "d.o.b", "birthday", "birthdate", "bday"),
                *(
                    "geboren",
                    "geburtsdatum",
                    "geb",
                    "nacimiento",
                    "nacido",
                    "nacida",
                    "naissance",
                    "né",
                    "née",
                ),
                *("nato", "nata", "nascita", "nascimento", "urodzony", "födelsedatum", "geboortedatum"),
            ],
        )


class DateRecognizer(ExactPatterns):
    """Find dates, with the time of day where one follows."""

    def __init__(self) -> None:
        super().__init__("DATE_TIME", [(pattern, 0.6) for pattern in _DATES], ["date"])


class UrlRecognizer(ExactPatterns):
    """Find addresses of the web: with a scheme, with www, or a plain host under a common top-level domain."""

    needs_digit = False

    def __init__(self) -> None:
        path = r"(?:[/?#][^\s<>\"'`{}|\\^]*+)?"
        host = r"(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}"
        tops = (
            "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|me|tv|xyz|online|site|shop|blog|cloud|tech|uk|de|fr|it"
            "|es|nl|be|ch|at|pl|se|no|dk|fi|pt|ie|cz|ru|ua|tr|jp|cn|in|kr|au|nz|ca|us|mx|br|ar|za|eu"
        )
        super().__init__(
            "URL",
            [
                (r"(?<![a-z0-9])(?P<value>(?:https?|ftp|wss?)://[^\s<>\"'`{}|\\^]++)", 0.7),
                (
                    rf"(?<![\w@.-])(?P<value>www\.(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}(?::\d{{1,5}})?{path})",
                    0.6,
                ),
                (rf"(?<![\w@./:-])(?P<value>{host}(?:{tops})(?::\d{{1,5}})?(?![\w@-]){path})", 0.5),
            ],
            ["url", "website", "link", "site"],
            FLAGS,
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        start, end = match.span("value")
        while end > start and match.string[end - 1] in ".,;:!?)]*_":
            end -= 1
        if end > start:
            results.append(self.result(start, end, pattern.score))
