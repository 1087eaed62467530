"""Match callers' own terms and patterns with RE2, whose time is linear in the text for every pattern."""

import asyncio
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from app.core.contracts.engines import InvalidPatternError, TermList

_PATTERN_MEMORY = 1 << 20
"""Most bytes of one compiled pattern; RE2 refuses patterns that need more."""

_BEFORE, _BEHIND = r"(?:^|[^\pL\pN_])", r"(?:$|[^\pL\pN_])"


class Re2TermMatcher:
    """A TermMatcher; compiled lists are cached, as one policy serves many calls."""

    async def match(self, texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
        """Return for each text which lists occur in it."""
        if not lists:
            return [frozenset() for _ in texts]
        return await asyncio.to_thread(_matched, texts, lists)


def _matched(texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
    compiled = [_compiled(term_list, position) for position, term_list in enumerate(lists)]
    return [
        frozenset(
            position
            for position, patterns in enumerate(compiled)
            if any(pattern.search(form) for pattern in patterns for form in forms)
        )
        for forms in map(_forms, texts)
    ]


def _forms(text: str) -> list[str]:
    """Return the text, its plain form without width variants, ligatures and invisible marks, and what is decoded."""
    from app.engines.views.reading import disguises  # noqa: PLC0415 - only where texts are matched

    forms = [text]
    if not text.isascii():
        forms.append(
            "".join(
                char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf"
            )
        )
    return list(dict.fromkeys((*forms, *(view.text for view in disguises(text)))))


def _compiled(term_list: TermList, position: int) -> tuple[Any, ...]:
    try:
        return _compiled_list(term_list)
    except _RefusedError as refused:
        raise InvalidPatternError(position, refused.pattern) from None


class _RefusedError(Exception):
    def __init__(self, pattern: int) -> None:
        super().__init__(pattern)
        self.pattern = pattern


@lru_cache(maxsize=256)
def _compiled_list(term_list: TermList) -> tuple[Any, ...]:
    import re2  # noqa: PLC0415 - loaded for the first custom policy, so start-up does not pay for it

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    options.case_sensitive = False
    compiled = []
    for number, pattern in enumerate(term_list.patterns):
        try:
            compiled.append(re2.compile(pattern, options))
        except re2.error:
            raise _RefusedError(number) from None
    options.max_mem = 8 * _PATTERN_MEMORY
    for begin in range(0, len(term_list.terms), 100):
        words = "|".join(re2.escape(term) for term in term_list.terms[begin : begin + 100])
        compiled.append(re2.compile(f"{_BEFORE}(?:{words}){_BEHIND}", options))
    return tuple(compiled)
