"""All rules, in the order that determines the digest of their version."""

from typing import Final

from app.engines.injection.orders import ORDERS_GIVEN
from app.engines.injection.takeovers import TAKEOVERS

RULES: Final = (*ORDERS_GIVEN, *TAKEOVERS)

SPELLED: Final = (
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|of|these|those|and)*"
    r"(?:previous|prior|above|earlier|system|safety|preceding)?(?:instructions?|rules|prompts?|directions|guidelines|orders)"
    r"|(?:reveal|show|print|repeat|output)(?:me|us)?(?:your|the)(?:system|hidden|initial|secret)(?:prompt|instructions?)"
    r"|(?:youare|actas|becomes?)(?:now)?(?:dan|unrestricted|unfiltered|jailbroken)|doanythingnow"
)
"""Matches words that were written letter by letter and have no blanks between them."""
