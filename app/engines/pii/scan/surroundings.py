"""Find the words around a place in a text; only places that are queried are read."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from app.engines.pii.scan.weighing import Weighing

_SPACE = re.compile(r"\s")
_NOT_SPACE = re.compile(r"\S")
_WIDE: Final = 16
"""From this many tokens in a row without a keyword, the gap is cached."""


class Keywords(NamedTuple):
    """The keywords in one token: where they begin and end in it, and their lemmas; all in order."""

    begins: Sequence[int]
    ends: Sequence[int]
    words: Sequence[str]


class Tokenizer(Protocol):
    """Split a text into tokens, and tokens into keywords."""

    def tokens(self, text: str, seen: bytes) -> tuple[Sequence[int], Sequence[int]]:
        """Return the starts and ends of all tokens in ``text`` that may contain a keyword; ``seen`` is its image."""

    def keywords(self, token: str) -> Keywords:
        """Return the keywords of one token."""


class Surroundings:
    """The keywords around places in one text."""

    def __init__(self, text: str, seen: bytes, tokenizer: Tokenizer, weighing: Weighing) -> None:
        self._text = text
        self._keywords = tokenizer.keywords
        self._before = weighing.before + 1
        self._after = weighing.after + 1
        self._row = weighing.row
        self._begins, self._ends = tokenizer.tokens(text, seen)
        self._rows: dict[int, str] = {}
        self._beyond: dict[tuple[int, int], int] = {}

    def near(self, start: int) -> str:
        """Return the row of keywords before and at the token of ``start``, and after it, in the order of the text."""
        row = self._rows.get(start)
        if row is None:
            row = self._rows[start] = self._row(self._around(start) if self._text else [""])
        return row

    def _around(self, start: int) -> list[str]:
        place = self._place(start)
        token = bisect_right(self._begins, place) - 1
        before: Sequence[str] = ()
        after: Sequence[str] = ()
        wanted = self._after
        if token >= 0:
            begin = self._begins[token]
            begins, ends, words = self._keywords(self._text[begin : self._ends[token]])
            upto = bisect_right(begins, place - begin)
            wanted -= bool(upto) and place - begin < ends[upto - 1]
            before, after = words[max(0, upto - self._before) : upto], words[upto : upto + wanted]
        return [
            *self._beside(token, -1, self._before - len(before)),
            *before,
            *after,
            *self._beside(token, 1, wanted - len(after)),
        ]

    def _beside(self, token: int, step: int, missing: int) -> list[str]:
        """Return the last keywords before a token (``step`` of -1) or the first after it, in the order of the text."""
        text, begins, ends, keywords = self._text, self._begins, self._ends, self._keywords
        groups: list[Sequence[str]] = []
        place = gap = token + step
        lacking = missing
        while lacking > 0 and 0 <= place < len(begins):
            words = keywords(text[begins[place] : ends[place]]).words
            if not words:
                place = self._beyond.get((place, step), place + step)
                continue
            if place - gap > _WIDE or gap - place > _WIDE:
                self._beyond[gap, step] = place
            groups.append(words[-missing:] if step < 0 else words[:missing])
            lacking -= len(words)
            place = gap = place + step
        # Cache the end of a wide gap, so that later queries do not walk through it again.
        if place - gap > _WIDE or gap - place > _WIDE:
            self._beyond[gap, step] = place
        if step > 0:
            return [word for words in groups for word in words][:missing]
        return [word for words in groups[::-1] for word in words][-missing:] if groups else []

    def _place(self, start: int) -> int:
        """Return a place in the token of ``start``: the next that is not white space, else the last before it."""
        if start < len(self._text) and not _SPACE.match(self._text, start):
            return start
        match = _NOT_SPACE.search(self._text, start)
        return match.start() if match else len(self._text.rstrip()) - 1
