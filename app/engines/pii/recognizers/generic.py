"""Our own recognizers, for identifiers that Presidio misses, skips or merges; here e-mail, SSN, IP and URL."""

import ipaddress
from typing import Any

import regex  # type: ignore[import-untyped]
from presidio_analyzer import EntityRecognizer, Pattern, RecognizerResult, predefined_recognizers

from app.engines.pii.ground.domains import COMMON_TOPS
from app.engines.pii.recognizers.accounts import account_recognizers
from app.engines.pii.recognizers.addresses import address_recognizers
from app.engines.pii.recognizers.crypto import crypto_recognizers
from app.engines.pii.recognizers.dates import date_recognizers
from app.engines.pii.recognizers.devices import device_recognizers
from app.engines.pii.recognizers.forms import form_recognizers
from app.engines.pii.recognizers.health import health_recognizers
from app.engines.pii.recognizers.patterns import FLAGS, ExactPatterns
from app.engines.pii.recognizers.payment import payment_recognizers
from app.engines.pii.recognizers.phone import CuedPhoneRecognizer
from app.engines.views.confusables import LOOKALIKES

_SHORTEST_IP = 7
_DOUBTFUL = 0.2
_GROUP = r"[0-9a-f]{1,4}"
_IPV6_END = r"(?:%[0-9a-z]+)?(?:/(?:12[0-8]|1[01]\d|[1-9]?\d))?(?![\w:])"
_IPV6 = (
    rf"(?<![\w:])(?:{_GROUP}:){{7}}{_GROUP}{_IPV6_END}",
    rf"(?<![\w:])(?!::(?![0-9a-f]))(?:{_GROUP}(?::{_GROUP}){{0,6}})?::(?:{_GROUP}(?::{_GROUP}){{0,6}})?{_IPV6_END}",
)
"""Presidio's ten alternatives reduced to two rare forms: all groups, or ``::``. Too many groups are rejected later."""

_LAST_FOREIGN = regex.compile(r"(?V1r)[\p{L}\p{M}--\p{Latin}--\p{Inherited}]+")
_TOP_GLUED = regex.compile(r"(?V1)\.[a-z]{2,}(?=[\p{L}\p{M}--\p{Latin}--\p{Inherited}])", regex.I)
"""The top-level domain before words of another script: no domain is written in two."""


def generic_recognizers() -> list[EntityRecognizer]:
    """Return our recognizers of international identifiers, except phone numbers and secrets."""
    return [
        UsSsnRecognizer(),
        EmailRecognizer(),
        *payment_recognizers(),
        IpRecognizer(),
        *crypto_recognizers(),
        *date_recognizers(),
        UrlRecognizer(),
        *health_recognizers(),
        *account_recognizers(),
        *device_recognizers(),
        *address_recognizers(),
        *form_recognizers(),
        CuedPhoneRecognizer(),
    ]


class UsSsnRecognizer(ExactPatterns):
    """Find US social security numbers, also sample numbers: with dashes or blanks always, bare only with context."""

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
    """Find e-mail addresses by their form alone: reserved and private domains count, and no list is downloaded.

    The local part is matched from its first character, however long, so that nothing can hide before it.
    """

    needs_digit = False

    def __init__(self) -> None:
        local = r"\w.!#$%&'*+^~\-"
        host = r"(?:[^\W_](?:[\w-]{0,62}[^\W_])?\.){1,9}[^\W\d_][\w-]{0,61}[^\W_]"
        super().__init__(
            "EMAIL_ADDRESS",
            [
                (rf"(?<![{local}])[.!#$%&'*+^~\-]*+(?P<value>[{local}]++@{host})(?![^\W_])", 0.9),
                (rf"(?<=\")(?P<value>[^\"\r\n@]{{1,64}}\"@{host})(?![^\W_])", 0.9),
                (
                    rf"(?<![{local}])(?P<value>[{local}]++@(?:\[(?:\d{{1,3}}\.){{3}}\d{{1,3}}\]|localhost))(?![\w.])",
                    0.6,
                ),
            ],
            ["email", "e mail", "mail"],
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        start, end = match.span("value")
        address = match.group("value")
        if not address.isascii():
            start += _words_before(address)
            glued = _TOP_GLUED.match(address, address.rindex("."))
            end = match.start("value") + glued.end() if glued else end
        results.append(self.result(start, end, pattern.score))


def _words_before(address: str) -> int:
    """Return the length of what stands before a local part without a sign between: words of another script.

    A run of lookalikes is no word, but a disguise of the address itself.
    """
    sign = address.rindex("@")
    words = _LAST_FOREIGN.search(address, 0, sign)
    if words is None or words.end() == sign or not address[words.end()].isalnum():
        return 0
    return 0 if all(character in LOOKALIKES for character in words.group()) else words.end()


class IpRecognizer(ExactPatterns):
    """Find IP addresses with Presidio's patterns, but not inside a longer dotted number or a slice like ``1::2``."""

    needs_digit = False

    def __init__(self) -> None:
        theirs = predefined_recognizers.IpRecognizer
        forms = [
            (form, pattern.score)
            for pattern in theirs.PATTERNS
            for form in (_IPV6 if pattern.name == "IPv6" else (pattern.regex,))
        ]
        super().__init__(
            "IP_ADDRESS", [(rf"(?<!\d\.)(?:{form})(?!\.\d)", score) for form, score in forms], theirs.CONTEXT
        )

    def _add(self, results: list[RecognizerResult], match: Any, pattern: Pattern) -> None:
        address = match.group()
        try:
            ipaddress.ip_interface(address)
        except ValueError:
            return
        score = pattern.score if len(address) >= _SHORTEST_IP or address == "::1" else _DOUBTFUL
        results.append(self.result(match.start(), match.end(), score))


class UrlRecognizer(ExactPatterns):
    """Find web addresses: with a scheme, with www, or a plain host under a common top-level domain."""

    needs_digit = False

    def __init__(self) -> None:
        path = r"(?:[/?#][^\s<>\"'`{}|\\^]*+)?"
        host = r"(?:[a-z0-9][a-z0-9-]{0,62}\.){1,8}"
        super().__init__(
            "URL",
            [
                (r"(?<![a-z0-9])(?P<value>(?:https?|ftp|wss?)://[^\s<>\"'`{}|\\^]++)", 0.7),
                (
                    rf"(?<![\w@.-])(?P<value>www\.(?:[\w-]{{1,63}}\.){{1,8}}[a-z]{{2,24}}(?::\d{{1,5}})?{path})",
                    0.6,
                ),
                (rf"(?<![\w@./:-])(?P<value>{host}(?:{COMMON_TOPS})(?::\d{{1,5}})?(?![\w@-]){path})", 0.5),
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
