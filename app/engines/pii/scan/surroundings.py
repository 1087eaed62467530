"""The words around a place in a text, cut out only where somebody asks: what stands elsewhere is never looked at."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final, Protocol

from app.engines.pii.nlp import keyword_tokens

BLOCK: Final = 256
_SPACE = re.compile(r"\s")
_NOT_SPACE = re.compile(r"\S")


class Tokenizer(Protocol):
    """Cuts a part of a text into keywords; a part always begins after a match of ``border``."""

    border: re.Pattern[str]

    def keywords(self, text: str) -> tuple[list[int], list[int], list[str]]:
        """Return begins, ends and forms of the keywords of ``text``."""


class PlainWords:
    """The words of our own tokenizer: any symbol or white space ends a token."""

    border = re.compile(r"[^\w]")

    def keywords(self, text: str) -> tuple[list[int], list[int], list[str]]:
        """Return begins, ends and forms of the keywords of ``text``."""
        return keyword_tokens(text)


@dataclass(slots=True)
class _Block:
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


class Surroundings:
    """The keywords of one text, by blocks."""

    def __init__(self, text: str, tokenizer: Tokenizer, before: int, after: int) -> None:
        self._text = text
        self._tokenizer = tokenizer
        self._before = before + 1
        self._after = after + 1
        self._borders = self._cut()
        self._blocks: list[_Block | None] = [None] * len(self._borders)
        self._known: dict[int, list[str]] = {}
        self._skip: dict[tuple[int, int], int] = {}

    def near(self, start: int) -> list[str]:
        """Return the keywords before and at the token of ``start``, then those after it, in the order of the text."""
        found = self._known.get(start)
        if found is None:
            found = self._known[start] = self._around(start)
        return found

    def _around(self, start: int) -> list[str]:
        if not self._text:
            return [""]
        place = self._token(start)
        number = bisect_right(self._borders, place) - 1
        block = self._block(number)
        upto = bisect_right(block.starts, place)
        at = bool(upto) and place < block.ends[upto - 1]
        before = block.words[max(0, upto - self._before) : upto]
        other = number
        while len(before) < self._before and (other := self._filled(other - 1, -1)) >= 0:
            before = self._block(other).words[-(self._before - len(before)) :] + before
        wanted = self._after - at
        after = block.words[upto : upto + wanted]
        other = number
        while len(after) < wanted and (other := self._filled(other + 1, 1)) < len(self._blocks):
            after += self._block(other).words[: wanted - len(after)]
        return before + after

    def _token(self, start: int) -> int:
        """Return a place in the token of ``start``: the next that is not white space, else the last before it."""
        if start < len(self._text) and not _SPACE.match(self._text, start):
            return start
        found = _NOT_SPACE.search(self._text, start)
        return found.start() if found else len(self._text.rstrip()) - 1

    def _cut(self) -> list[int]:
        borders = [0]
        place, text, search = BLOCK, self._text, self._tokenizer.border.search
        while place < len(text) and (found := search(text, place)):
            borders.append(found.end())
            place = found.end() + BLOCK
        return borders

    def _block(self, number: int) -> _Block:
        block = self._blocks[number]
        if block is None:
            low = self._borders[number]
            high = self._borders[number + 1] if number + 1 < len(self._borders) else len(self._text)
            starts, ends, words = self._tokenizer.keywords(self._text[low:high])
            block = _Block([low + start for start in starts], [low + end for end in ends], words)
            self._blocks[number] = block
        return block

    def _filled(self, number: int, step: int) -> int:
        """Return the next block from ``number`` on that has a keyword; those without are walked over once."""
        walked = []
        while 0 <= number < len(self._blocks):
            if (number, step) in self._skip:
                walked.append(number)
                number = self._skip[number, step]
                continue
            if self._block(number).words:
                break
            walked.append(number)
            number += step
        for each in walked:
            self._skip[each, step] = number
        return number
