"""Find what a request only quotes so that something is done with it: that is judged as a document is."""

import re
from collections.abc import Sequence
from typing import Final

from app.engines.injection.matching import Match

Spans = Sequence[tuple[int, int]]

_HANDLED: Final = re.compile(
    r"(?i)\b(?:summar|translat|proof-?read|short|rewrit|rephras|paraphras|classif|categori|analy[sz]|explain"
    r"|extract|correct|edit|review|simplif|spam|phishing|scam|sentiment|tone|mistakes?|errors?|typos?|gist|key points"
    r"|what (?:does|do|is|are|did)|who (?:is|wrote|sent)|reply|respond to|answer (?:this|the|to)|draft|format|list the"
    r"|zusammenfass|fasse?\b|übersetz|korrigier|kürz|erklär|antworte auf|traduc|traduis|traduire|tradui|tradur|résum"
    r"|urgent|(?:this|the|following|below|attached) (?:\w+ )?(?:e-?mail|mail|letter|text|message|note"
    r"|article|post|review|notice|newsletter|document|paragraph|passage|chat|comment|tweet|page)\b"
    r"|resum|riassum|corrig|explique|explica|spiega|vertaal|vat\b|samenvat|要約|翻訳|総結|总结|翻译)"
)
"""Words of a request that asks to do something with a text."""

_OBEYED: Final = re.compile(
    r"(?i)\b(?:follow|obey|execut|carry (?:it |them )?out|comply|perform|act (?:on|upon|as|like)|do (?:what|as|exactly)"
    r"|play|pretend|become|you (?:are|will|must)|continue|complete|befolg|führe|folge|suis|suivez|sigue|obedec|segui"
    r"|esegui|volg)"
)
"""Words of a request that wants a text obeyed, played or continued: it speaks for the user."""

_QUOTED: Final = re.compile(
    r'"""(?P<a>[\s\S]{1,20000}?)"""'
    r"|'''(?P<b>[\s\S]{1,20000}?)'''"
    r"|```(?P<c>[\s\S]{1,20000}?)```"
    r"|(?m:^-{3,}[ \t]*\n)(?P<d>[\s\S]{1,20000}?)(?m:^-{3,}[ \t]*$)"
    r"|(?P<e>(?m:^>[^\n]*(?:\n|\Z))+)"
    r'|(?<!\S)"(?=\S)(?P<f>[^"]{40,20000})"'
    r"|\u201c(?P<g>[^\u201c\u201d]{40,20000})\u201d"
    r"|\u201e(?P<h>[^\u201e\u201c\u201d]{40,20000})[\u201c\u201d]"
    r"|\u00ab(?P<i>[^\u00ab\u00bb]{40,20000})\u00bb"
)
_MARKS: Final = ('"', "'''", "```", "---", "\n>", "\u201c", "\u201e", "\u00ab")
_LONGEST_REQUEST: Final = 400
_LEAST_REQUEST: Final = 8


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Return the places of what ``text`` quotes; none where it does not ask to do something with the quotation."""
    if not text.startswith(">") and not any(mark in text for mark in _MARKS):
        return []
    spans = [match.span(match.lastgroup or 0) for match in _QUOTED.finditer(text)]
    if not spans:
        return []
    request = without(text, spans)
    fits = _LEAST_REQUEST <= len(request) <= _LONGEST_REQUEST
    return spans if fits and _HANDLED.search(request) and not _OBEYED.search(request) else []


def without(text: str, spans: Spans) -> str:
    """Return ``text`` without what stands in ``spans``."""
    kept, at = [], 0
    for start, end in spans:
        kept.append(text[at:start])
        at = end
    return " ".join("".join([*kept, text[at:]]).split())


def inside(match: Match, spans: Spans) -> bool:
    """Return whether ``match`` lies in one of ``spans``."""
    return any(start <= match.start and match.end <= end for start, end in spans)
