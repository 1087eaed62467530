"""Allow lists, whose items are never findings, and deny lists, whose items always are."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from app.core.contracts.engines import Span
from app.engines.pii.ground.labels import CUSTOM
from app.engines.views.mapping import Substitution, TextView, respelled

_PER_CHARACTER = 4
"""How many times longer than the longest item a finding may be and still match: it may hold more white space."""


class AllowList:
    """Texts that are not findings; case and white space make no difference."""

    def __init__(self, items: Sequence[str]) -> None:
        self._items = frozenset(map(_folded, items))
        self._longest = _PER_CHARACTER * max(map(len, self._items), default=0)

    def holds(self, text: str, span: Span) -> bool:
        """Return whether the part of ``text`` that ``span`` covers is on the list."""
        if span.end - span.start > self._longest:
            return False
        folded = _folded(text[span.start : span.end])
        return bool(folded) and folded in self._items


def denied(text: str, items: tuple[str, ...]) -> list[Span]:
    """Return where ``text`` contains one of ``items``: whole words, in any case, with any white space between them.

    Overlapping items are all found. Takes one pass, however many items there are.
    """
    terms = _terms(items)
    return list(_matches(text, terms)) if terms is not None else []


class _Term(NamedTuple):
    size: int
    begins_word: bool
    ends_word: bool


def _matches(text: str, terms: Any) -> Iterator[Span]:
    view = _comparable(text)
    seen = _without_case(text if view is None else view.text)
    for last, term in terms.iter(seen):
        start, end = last + 1 - term.size, last + 1
        if (term.begins_word and start and _in_word(seen[start - 1])) or (
            term.ends_word and end < len(seen) and _in_word(seen[end])
        ):
            continue
        low, high = (start, end) if view is None else view.original_span(start, end)
        yield Span(low, high, CUSTOM, 1.0)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _folded(item: str) -> str:
    return " ".join(item.casefold().split())


def _without_case(text: str) -> str:
    """Return ``text`` case-folded; the Turkish letters i with and without a dot become the same letter."""
    return text.replace("\u0130", "i").replace("\u0131", "i").casefold()


def _comparable(text: str) -> TextView | None:
    """Return ``text`` with single blanks, and with letters such as ß in their longer folding; None if unchanged."""
    changes = [
        Substitution(*match.span(), " " if match.group().isspace() else _without_case(match.group()), "")
        for match in _spelled_otherwise().finditer(text)
    ]
    return respelled(text, changes) if changes else None


@cache
def _spelled_otherwise() -> re.Pattern[str]:
    """Return a pattern of white space other than a single blank, and of characters that folding makes longer."""
    longer = "".join(
        character for character in map(chr, range(sys.maxunicode)) if len(_without_case(character)) > 1
    )
    # The pattern begins with one character set, so that the search skips all other characters fast.
    return re.compile(rf"[\s{longer}](?:(?<= )\s+|(?<=[^\S ])\s*|(?<=[{longer}]))")


@lru_cache(maxsize=64)
def _terms(items: tuple[str, ...]) -> Any:
    """Return an automaton that finds all ``items``; None if there are no items."""
    import ahocorasick  # noqa: PLC0415 - only loaded when a caller sends a list

    terms = ahocorasick.Automaton()
    for item in {" ".join(_without_case(item).split()) for item in items} - {""}:
        terms.add_word(item, _Term(len(item), item[0].isalnum(), item[-1].isalnum()))
    if not len(terms):
        return None
    terms.make_automaton()
    return terms
