"""Separate people from the company next to them: ``Anna Berg Siemens AG``, ``SMITH, JONES, BROWN``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from app.engines.pii.names.decoding import TaggedSpan
from app.engines.pii.names.programs import is_program
from app.engines.pii.names.words import Gazetteer

_WORD: Final = re.compile(r"[^\s,]+")
_WORDS_OF_NAME: Final = 2
"""The number of words in a first and a last name."""

_LEGAL_FORMS_TEXT: Final = """
    ab ag as asa aps bv co corp corporation gmbh inc incorporated kg kgaa limited llc llp ltd nv oy oyj plc pte pty sa
    sarl sas sca se sl spa srl
"""
_LEGAL_FORMS: Final = frozenset(_LEGAL_FORMS_TEXT.split())
_TRADES_TEXT: Final = """
    associates brothers companies company group holding holdings hotels industries international partners partnership
    sons stores
"""
_TRADES: Final = frozenset(_TRADES_TEXT.split())
"""Words after a founder's name that is part of the company's name: Philip Morris International Inc."""

_LEAST_LIST: Final = 3
_SCORE: Final = 0.6
"""The score of a name that only the word lists support."""


def people_apart(text: str, spans: Sequence[TaggedSpan], lists: Gazetteer) -> list[TaggedSpan]:
    """Return ``spans`` with people split from companies; a company's own name stays in one piece."""
    kept: list[TaggedSpan] = []
    for span in spans:
        before = kept[-1] if kept else None
        if span.label in ("ORGANIZATION", "PERSON") and (names := _listed(text, span, lists)):
            kept += names
        elif span.label != "ORGANIZATION":
            program = span.label == "PERSON" and is_program(text, span.start, span.end)
            kept.append(replace(span, label="ORGANIZATION") if program else span)
        elif before and (longer := _with_last_name(text, before, span, lists)):
            kept[-1:] = longer
        else:
            kept += _without_name(text, span, lists)
    return kept


def _listed(text: str, span: TaggedSpan, lists: Gazetteer) -> list[TaggedSpan]:
    """Return the names in ``span`` if it is a list of last names, which is neither a company nor one person."""
    parts = [part.strip() for part in text[span.start : span.end].split(",")]
    if len(parts) < _LEAST_LIST or not all("l" in _kinds(part, lists) for part in parts):
        return []
    score = span.score if span.label == "PERSON" else _SCORE
    return [
        TaggedSpan(word.start(), word.end(), "PERSON", score)
        for word in _WORD.finditer(text, span.start, span.end)
    ]


def _with_last_name(
    text: str, before: TaggedSpan, span: TaggedSpan, lists: Gazetteer
) -> list[TaggedSpan] | None:
    """Return a first name with the last name that was tagged as part of the company, and the company."""
    first, between = text[before.start : before.end], text[before.end : span.start]
    words = list(_WORD.finditer(text, span.start, span.end))
    if before.label != "PERSON" or between != " " or "f" not in _kinds(first, lists):
        return None
    if "l" not in _kinds(words[0][0], lists) or not _is_company([word[0] for word in words[1:]], lists):
        return None
    return [replace(before, end=words[0].end()), replace(span, start=words[1].start())]


def _without_name(text: str, span: TaggedSpan, lists: Gazetteer) -> Iterator[TaggedSpan]:
    """Yield a company, and before it the first and last name with which it begins, if more words follow."""
    words = list(_WORD.finditer(text, span.start, span.end))
    spelled = [word[0] for word in words]
    if (
        len(words) > _WORDS_OF_NAME + 1
        and "f" in _kinds(spelled[0], lists)
        and "l" in _kinds(spelled[1], lists)
        and _is_company(spelled[_WORDS_OF_NAME:], lists)
        and "," not in text[span.start : words[1].end()]
    ):
        yield TaggedSpan(span.start, words[1].end(), "PERSON", _SCORE)
        yield replace(span, start=words[_WORDS_OF_NAME].start())
    else:
        yield span


def _is_company(words: Sequence[str], lists: Gazetteer) -> bool:
    """Return whether words alone are a company's name: a name that is more than a trade, and a legal form."""
    if len(words) < _WORDS_OF_NAME or not words[0][:1].isupper() or words[0].lower() in _TRADES:
        return False
    return not set("sw") & set(_kinds(words[0], lists)) and words[-1].replace(".", "").lower() in _LEGAL_FORMS


def _kinds(word: str, lists: Gazetteer) -> str:
    return lists.kinds(word.lower())
