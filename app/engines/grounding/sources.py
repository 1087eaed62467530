"""The sources that an answer is checked against: the texts before it, each read once for all checks."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Final, NamedTuple

from app.core.content.handles import Handle, find_handles
from app.core.contracts.grounding import SourcePlace
from app.engines.grounding.contradictions.finding import SourceSentences
from app.engines.grounding.links import KnownLinks, links_in
from app.engines.grounding.numbers import KnownQuantities
from app.engines.grounding.quantities import quantities_in
from app.engines.grounding.stemming import stem

_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CAPITAL: Final = re.compile(r"\b(?![a-z0-9_])[^\W_]+(?:['\u2019][^\W_]+)*")
PLACES: Final = 64
"""Most places kept for one pair of words, a bound for texts that repeat themselves."""


SEARCHES: Final = 100
"""Most searches for near misses in one call; after that, findings are reported without suggestions."""

ALIKE: Final = 400
"""Most names with one first letter that a misspelt name is compared with."""


class SourceToken(NamedTuple):
    """A word in lower case, and its place."""

    word: str
    start: int
    end: int


def tokens_of(text: str, start: int = 0, end: int | None = None) -> list[SourceToken]:
    """Return the words of ``text[start:end]``."""
    matches = _TOKEN.finditer(text, start, len(text) if end is None else end)
    return [SourceToken(match[0].lower().replace("\u2019", "'"), *match.span()) for match in matches]


class Sources:
    """The texts that an answer may rely on."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._searches = SEARCHES

    def may_search(self) -> bool:
        """Return whether one more search for a near miss is allowed: each may compare with thousands of texts."""
        self._searches -= 1
        return self._searches >= 0

    @cached_property
    def links(self) -> KnownLinks:
        """Return every link, including addresses without a scheme."""
        return KnownLinks(
            (link, SourcePlace(number, link.start, link.end))
            for number, text in enumerate(self.texts)
            for link in links_in(text, bare=True)
        )

    @cached_property
    def tokens(self) -> list[list[SourceToken]]:
        """Return the words of each text."""
        return [tokens_of(text) for text in self.texts]

    @cached_property
    def _running(self) -> list[str]:
        """Return the words of each text with one space between and around them."""
        words_by_text = (_TOKEN.findall(text.lower().replace("\u2019", "'")) for text in self.texts)
        return [f" {' '.join(words)} " for words in words_by_text]

    @cached_property
    def words(self) -> frozenset[str]:
        """Return every word, in lower case."""
        return frozenset(word for text in self._running for word in text.split())

    def has_run(self, words: Sequence[str]) -> bool:
        """Return whether these words occur side by side in a text."""
        wanted = f" {' '.join(words)} "
        return any(wanted in text for text in self._running)

    @cached_property
    def stems(self) -> frozenset[str]:
        """Return the stem of every word."""
        return frozenset(map(stem, self.words))

    @cached_property
    def pairs(self) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """Return for each pair of neighbours the number of the text and of the first word."""
        places_by_pair: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for number, tokens in enumerate(self.tokens):
            for index in range(len(tokens) - 1):
                places = places_by_pair[tokens[index].word, tokens[index + 1].word]
                if len(places) < PLACES:
                    places.append((number, index))
        return dict(places_by_pair)

    @cached_property
    def capitals(self) -> dict[str, tuple[str, SourcePlace]]:
        """Return, by its lower case, each word that occurs with a capital, and the first such place."""
        capitals: dict[str, tuple[str, SourcePlace]] = {}
        for number, text in enumerate(self.texts):
            for match in _CAPITAL.finditer(text):
                if match[0][0].isupper():
                    word = match[0].lower().replace("\u2019", "'")
                    capitals.setdefault(word, (match[0], SourcePlace(number, *match.span())))
        return capitals

    @cached_property
    def capitals_by_letter(self) -> dict[str, list[str]]:
        """Return the words of ``capitals`` by first letter, at most ``ALIKE`` of each."""
        by_letter: dict[str, list[str]] = defaultdict(list)
        for word in self.capitals:
            if len(by_letter[word[0]]) < ALIKE:
                by_letter[word[0]].append(word)
        return by_letter

    @cached_property
    def quantities(self) -> KnownQuantities:
        """Return every number, amount and date."""
        return KnownQuantities(
            [
                (quantity, SourcePlace(number, quantity.start, quantity.end))
                for number, text in enumerate(self.texts)
                for quantity in quantities_in(text)
            ]
        )

    @cached_property
    def sentences(self) -> SourceSentences:
        """Return every sentence, by its words."""
        return SourceSentences(self.texts)

    @cached_property
    def handles(self) -> dict[Handle, SourcePlace]:
        """Return every handle with its first place."""
        places: dict[Handle, SourcePlace] = {}
        for number, text in enumerate(self.texts):
            for match in find_handles(text):
                places.setdefault(match.handle, SourcePlace(number, match.start, match.end))
        return places
