# ruff: noqa: RUF001 - apostrophes as they occur in texts
"""Spell English in one case as usual, so that a tagger sees which words may be names.

"TELL KOWALSKI THAT WE MOVED" and "tell kowalski that we moved" hide what capitals show elsewhere. Words that a list of
common ones holds become small, all others get a capital.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""

SURE: Final = 0.7
"""Score of a person whom only such a spelling shows."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LINE: Final = re.compile(r"^[^\n]*[^\W\d_a-z]{2}[^\n]*$", re.MULTILINE)
_CODE: Final = re.compile(r"[=(){}<>;\[\]_\\$|`]|://|\w\.\w|\w:\w")
"""Signs of what is no prose."""

_LEAST_WORDS: Final = 3
_COMMON: Final = 0.4
"""Share of the words that a list of common English words must hold."""


def recased(text: str, kinds: Kinds) -> Iterator[tuple[int, str]]:
    """Yield the parts of ``text`` that are in one case, with their offsets, as one would usually write them.

    A part is a line in capitals, or a whole text in small letters. None is longer or shorter than what it stands for.
    """
    if text.islower():
        parts = [(0, text)]
    else:
        parts = [(line.start(), line[0]) for line in _LINE.finditer(text) if line[0].isupper()]
    for start, part in parts:
        words = [_stem(word[0].lower()) for word in _WORD.finditer(part)]
        if len(words) < _LEAST_WORDS or _CODE.search(part):
            continue
        common = {word for word in set(words) if "w" in kinds(word) or len(word) == 1}
        if sum(word in common for word in words) < _COMMON * len(words):
            continue
        usual = _WORD.sub(partial(_spelled, common), part)
        if usual != part and len(usual) == len(part):
            yield start, usual


def _spelled(common: set[str], word: re.Match[str]) -> str:
    lower = word[0].lower()
    return lower if _stem(lower) in common else lower.capitalize()


def _stem(lower: str) -> str:
    """Return the word before an apostrophe: can't, it's; all of o'neil."""
    stem = lower.partition("'")[0]
    return stem if len(stem) > 1 else lower
