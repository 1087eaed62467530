"""Matching of callers' own terms and patterns on RE2, whose time is linear in the text for every pattern."""

import asyncio
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from app.core.contracts.engines import InvalidPatternError, TermList

_PATTERN_MEMORY = 1 << 20
"""Bytes that one compiled pattern may take; RE2 refuses patterns that need more."""

_BEFORE, _BEHIND = r"(?:^|[^\pL\pN_])", r"(?:$|[^\pL\pN_])"


class Re2TermMatcher:
    """A TermMatcher; compiled lists are kept, as one policy serves many calls."""

    async def match(self, texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
        """Return for each text which lists occur in it."""
        if not lists:
            return [frozenset() for _ in texts]
        return await asyncio.to_thread(_matched, texts, lists)


def _matched(texts: Sequence[str], lists: Sequence[TermList]) -> list[frozenset[int]]:
    compiled = [_compiled(one, position) for position, one in enumerate(lists)]
    return [
        frozenset(
            position
            for position, patterns in enumerate(compiled)
            if any(pattern.search(form) for pattern in patterns for form in forms)
        )
        for forms in map(_forms, texts)
    ]


def _forms(text: str) -> tuple[str, ...]:
    """Return a text as it stands and, where that differs, without its disguises: width, ligatures, invisible marks."""
    if text.isascii():
        return (text,)
    plain = "".join(
        char for char in unicodedata.normalize("NFKC", text) if unicodedata.category(char) != "Cf"
    )
    return (text,) if plain == text else (text, plain)


def _compiled(one: TermList, position: int) -> tuple[Any, ...]:
    try:
        return _compiled_list(one)
    except _RefusedError as refused:
        raise InvalidPatternError(position, refused.pattern) from None


class _RefusedError(Exception):
    def __init__(self, pattern: int) -> None:
        super().__init__(pattern)
        self.pattern = pattern


@lru_cache(maxsize=256)
def _compiled_list(one: TermList) -> tuple[Any, ...]:
    import re2  # noqa: PLC0415 - on the first custom policy: the service starts without it

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY
    options.log_errors = False
    options.case_sensitive = False
    compiled = []
    for number, pattern in enumerate(one.patterns):
        try:
            compiled.append(re2.compile(pattern, options))
        except re2.error:
            raise _RefusedError(number) from None
    options.max_mem = 8 * _PATTERN_MEMORY
    for begin in range(0, len(one.terms), 100):
        words = "|".join(re2.escape(term) for term in one.terms[begin : begin + 100])
        compiled.append(re2.compile(f"{_BEFORE}(?:{words}){_BEHIND}", options))
    return tuple(compiled)
