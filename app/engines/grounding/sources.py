"""What an answer is held against: the texts before it, each read once for all checks."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from app.core.grounding import Place
from app.core.handles import Handle, find_handles
from app.engines.grounding.links import Link, links_in
from app.engines.grounding.quantities import Quantity, quantities_in

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CAPITAL: Final = re.compile(r"\b(?![a-z0-9_])[^\W_]+(?:['\u2019][^\W_]+)*")
PLACES: Final = 64
"""Places that are remembered of one pair of words: a bound for texts that repeat themselves."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it is spelled but for its case, and where."""

    word: str
    start: int
    end: int


def tokens_of(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the words of ``text[start:end]``."""
    found = _TOKEN.finditer(text, start, len(text) if end is None else end)
    return [Token(one[0].lower().replace("\u2019", "'"), *one.span()) for one in found]


class Sources:
    """The texts that count as known."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @cached_property
    def links(self) -> list[tuple[Link, Place]]:
        """Return every link, and the addresses of hosts without a scheme."""
        return [
            (link, Place(number, link.start, link.end))
            for number, text in enumerate(self.texts)
            for link in links_in(text, bare=True)
        ]

    @cached_property
    def tokens(self) -> list[list[Token]]:
        """Return the words of each text."""
        return [tokens_of(text) for text in self.texts]

    @cached_property
    def words(self) -> frozenset[str]:
        """Return every word, in lower case."""
        return frozenset(
            word for text in self.texts for word in _TOKEN.findall(text.lower().replace("\u2019", "'"))
        )

    @cached_property
    def pairs(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """Return for each pair of neighbours the text and the number of the first word."""
        found: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for number, tokens in enumerate(self.tokens):
            for index in range(len(tokens) - 1):
                places = found[tokens[index].word, tokens[index + 1].word]
                if len(places) < PLACES:
                    places.append((number, index))
        return dict(found)

    @cached_property
    def capitals(self) -> dict[str, tuple[str, Place]]:
        """Return by its lower case each word that is written with a capital somewhere, and the first such place."""
        found: dict[str, tuple[str, Place]] = {}
        for number, text in enumerate(self.texts):
            for match in _CAPITAL.finditer(text):
                if not match[0][0].isupper():
                    continue
                found.setdefault(
                    match[0].lower().replace("\u2019", "'"), (match[0], Place(number, *match.span()))
                )
        return found

    @cached_property
    def quantities(self) -> list[tuple[Quantity, Place]]:
        """Return every number, amount and date."""
        return [
            (one, Place(number, one.start, one.end))
            for number, text in enumerate(self.texts)
            for one in quantities_in(text)
        ]

    @cached_property
    def handles(self) -> dict[Handle, Place]:
        """Return every handle and where it stands first."""
        found: dict[Handle, Place] = {}
        for number, text in enumerate(self.texts):
            for match in find_handles(text):
                found.setdefault(match.handle, Place(number, match.start, match.end))
        return found
