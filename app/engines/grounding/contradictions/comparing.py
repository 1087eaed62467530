"""Compare a statement with the sentence it follows: what was turned, exchanged or swapped between them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from app.engines.grounding.contradictions.exchanges import (
    amounts,
    has_other_house,
    has_other_subject,
    has_other_unit,
)
from app.engines.grounding.contradictions.reading import MAY, NEGATIONS, Sentence, lemma_of, opposites
from app.engines.grounding.quantities import Quantity, is_year

_CLASSES: Final = tuple(
    frozenset(map(lemma_of, row.split()))
    for row in (
        f"january february march april {MAY} june july august september october november december",
        "monday tuesday wednesday thursday friday saturday sunday",
        "spring summer autumn winter",
        "north south east west",
        "first second third fourth fifth sixth seventh eighth ninth tenth last",
        "million billion trillion thousand hundred dozen",
        "hourly daily weekly monthly quarterly yearly",
        "once twice thrice",
        "always sometimes rarely",
        "dollar euro pound yen franc rupee peso krona",
        "red green blue yellow black white brown orange purple pink grey",
        "father mother brother sister son daughter uncle aunt husband wife",
    )
)
"""Words of which one excludes the others in the same place."""
_MODALS: Final = {
    **dict.fromkeys(("may", "might", "can", "could"), "may"),
    **dict.fromkeys(("must", "shall"), "must"),
}
_LEAST_SHARED: Final = 2
_LEAST_COVERED: Final = 0.6
_ABOUT: Final = 0.1
_BOUNDS: Final = re.compile(
    r"(?i)(?:(?P<over>over|above|more than|at least|exceed(?:s|ed)?|beyond)"
    r"|(?P<under>under|below|less than|fewer than|at most|up to|nearly|almost)"
    r"|(?P<about>about|around|approximately|roughly|some|circa|an estimated))\s[$\u20ac\u00a3]?\s?\Z"
)
_CURRENCIES: Final = frozenset(("usd", "eur", "gbp", "jpy"))
_REACH: Final = 6
_ARTICLES: Final = frozenset(("a", "an", "the"))
_LEAST_STEM: Final = 4
_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non")
_FAMILY: Final = 5


@dataclass(frozen=True)
class Comparison:
    """A statement beside a sentence of the sources."""

    said: Sentence
    source: Sentence

    @cached_property
    def matched(self) -> dict[int, int]:
        """Return for each content word of the statement the first like word of the source that no other has."""
        free: dict[str, list[int]] = {}
        for place in self.source.content:
            free.setdefault(self.source.words[place].lemma, []).append(place)
        pairs: dict[int, int] = {}
        for place in self.said.content:
            places = free.get(self.said.words[place].lemma)
            if places:
                pairs[place] = places.pop(0)
        taken = set(pairs.values())
        for place in self.said.content:
            family = self.said.words[place].lemma[:_FAMILY]
            if place in pairs or len(family) < _FAMILY:
                continue
            for other in self.source.content:
                if other not in taken and self.source.words[other].lemma[:_FAMILY] == family:
                    pairs[place] = other
                    taken.add(other)
                    break
        return pairs

    @cached_property
    def turned(self) -> dict[int, int]:
        """Return for each word whose opposite stands in its place in the source the place of that."""
        pairs: dict[int, int] = {}
        taken = {place: place for place in self.matched.values()}
        for place, word in enumerate(self.said.words):
            if place in self.matched or word.lemma in self.source.lemmas or word.low in NEGATIONS:
                continue
            wanted = (_opposites_of(word.lemma) & self.source.lemmas) - self.said.lemmas
            if not wanted:
                continue
            here = _around(self.matched, place)
            for other, there in enumerate(self.source.words):
                if there.lemma not in wanted or other in taken or there.low in NEGATIONS:
                    continue
                if not here.isdisjoint(_around(taken, other)):
                    pairs[place] = other
                    break
        return pairs

    @cached_property
    def covered(self) -> float:
        """Return the share of the statement's content words that the source has, or has in another form."""
        content = len(self.said.content)
        named = {place for start, end in self.said.names for place in range(start, end)}
        plain = [place for place in self.said.content if place not in named and not self._is_number(place)]
        hits = sum(place in self.matched or place in self.turned or self._has_class(place) for place in plain)
        if len(self.matched) + len(self.turned) < min(_LEAST_SHARED, content):
            return 0.0
        return hits / len(plain) if plain else 0.0

    def _is_number(self, place: int) -> bool:
        return self.said.words[place].text[0].isdigit()

    def _has_class(self, place: int) -> bool:
        lemma = self.said.words[place].lemma
        return any(lemma in some and not some.isdisjoint(self.source.lemmas) for some in _CLASSES)

    @property
    def follows(self) -> bool:
        """Return whether the statement is near enough to be compared word by word."""
        return self.covered >= _LEAST_COVERED and bool(self.matched)

    def differences(self) -> Iterator[str]:
        """Yield what differs so that both cannot hold."""
        turns = self._negation_turns() + len(self.turned) + self._swaps()
        if turns % 2:
            yield "turned"
        if (
            self._exchanges()
            or has_other_unit(self.said, self.source)
            or has_other_house(self.said, self.source)
        ):
            yield "exchanged"
        if self._other_numbers():
            yield "number"
        if self._other_names() or has_other_subject(self.said, self.source, self.matched):
            yield "name"
        if not turns and self._other_strengths():
            yield "strength"

    def _negation_turns(self) -> int:
        """Return how many like words are negated on one side only.

        A negation of the source in other words that the statement restates takes one of them back.
        """
        like = {**self.matched, **self.turned}
        there = {other: place for place, other in like.items()}
        mine = {like.get(place) for place in self.said.negated}
        theirs = set(self.source.negated)
        free = sum(
            other not in there and not self.source.clause_of(other).isdisjoint(there)
            for other in theirs - mine
        )
        turned = len(mine - theirs - {None}) + len((theirs - mine) & set(there))
        in_other_words = len(mine & {None})
        return max(0, turned - free - in_other_words) if turned else 0

    def _swaps(self) -> int:
        """Return 1 where two names changed sides around one verb, and the verb not its voice."""
        like = {**self.matched, **self.turned}
        ends = [(run, self._run_of(run)) for run in self.said.names]
        pairs = [(run, other) for run, other in ends if other is not None]
        for index, (run, there) in enumerate(pairs):
            for later, after in pairs[index + 1 :]:
                if after[0] >= there[0]:
                    continue
                between = [
                    place
                    for place in range(run[1], later[0])
                    if place in like
                    and not self.said.words[place].is_name
                    and after[1] <= like[place] < there[0]
                ]
                if not between:
                    continue
                passive = self._has_by(self.said, run[1], later[0]) != self._has_by(
                    self.source, after[1], there[0]
                )
                return 0 if passive else 1
        return 0

    @staticmethod
    def _has_by(sentence: Sentence, start: int, end: int) -> bool:
        return any(word.low == "by" for word in sentence.words[start:end])

    def _run_of(self, run: tuple[int, int]) -> tuple[int, int] | None:
        places = [self.matched[place] for place in range(*run) if place in self.matched]
        return (min(places), max(places) + 1) if places else None

    def _exchanges(self) -> bool:
        for some in _CLASSES:
            mine, theirs = some & self.said.lemmas, some & self.source.lemmas
            if mine and theirs and mine - theirs and not mine & theirs and self._in_one_place(mine, theirs):
                return True
            if mine - theirs and len(mine) == len(theirs) == 1:
                return True
        return False

    def _in_one_place(self, mine: frozenset[str], theirs: frozenset[str]) -> bool:
        """Return whether words of one class stand beside the same words."""
        return any(
            self._beside(self.said, place) & self._beside(self.source, other)
            for place, word in enumerate(self.said.words)
            if word.lemma in mine
            for other, there in enumerate(self.source.words)
            if there.lemma in theirs
        )

    @staticmethod
    def _beside(sentence: Sentence, place: int) -> set[str]:
        near = {*range(max(0, place - 2), place), *range(place + 1, place + 3)}
        return {sentence.words[at].lemma for at in near.intersection(sentence.content)}

    def _other_numbers(self) -> bool:
        mine, theirs = self.said.counted, self.source.counted
        new = [quantity for quantity in mine if not _among(quantity, theirs)]
        if not theirs or not new:
            return False
        source_quantities = self.source.known_quantities
        return any(
            self._is_other(quantity, other)
            for quantity in new
            if not (source_quantities.has(quantity) or source_quantities.computes(quantity, ()))
            for other in theirs
            if not _among(other, mine)
        )

    def _is_other(self, quantity: Quantity, other: Quantity) -> bool:
        """Return whether ``quantity`` stands where the source has ``other``, and is not implied by it."""
        if not _comparable(quantity, other):
            return False
        value, theirs = quantity.values[0], other.values[0]
        bound = _BOUNDS.search(self.said.text[: quantity.start])
        if bound is None:
            return True
        if bound["about"]:
            return abs(value - theirs) > _ABOUT * abs(theirs)
        return value > theirs if bound["over"] else value < theirs

    def _other_names(self) -> bool:
        """Return whether a name of the statement stands where the source has another one that the statement lacks."""
        taken = set(self.matched.values())
        for start, end in self.said.names:
            if any(place in self.matched for place in range(start, end)) or self._is_of_class(start, end):
                continue
            if start == 0 and (end == 1 or self.source.has_pronoun):
                continue
            here = _around(self.matched, start, end)
            before = _led_by(self.said, start)
            for first, last in self.source.names:
                if any(place in taken for place in range(first, last)) or (first == 0 and last == 1):
                    continue
                beside = _led_by(self.source, first) == before or start == 0 or first == 0
                if beside and not here.isdisjoint(_around({place: place for place in taken}, first, last)):
                    return True
        return False

    def _is_of_class(self, start: int, end: int) -> bool:
        return any(self.said.words[place].lemma in some for place in range(start, end) for some in _CLASSES)

    def _other_strengths(self) -> bool:
        """Return whether "some" became "all", or "may" became "must", before the same word."""
        there = {other: place for place, other in self.matched.items()}
        for kinds in (amounts, _forces):
            mine = {self.matched[head]: kind for head, kind in kinds(self.said) if head in self.matched}
            theirs = {other: kind for other, kind in kinds(self.source) if other in there}
            if any(theirs.get(other, kind) != kind for other, kind in mine.items()):
                return True
        return False


def _led_by(sentence: Sentence, start: int) -> str:
    """Return the word before a name, but for its article."""
    words = [word.low for word in sentence.words[max(0, start - 2) : start]]
    return next((word for word in reversed(words) if word not in _ARTICLES), "")


def _around(places: dict[int, int], start: int, end: int | None = None) -> set[tuple[str, int]]:
    """Return what the last of ``places`` before a word, and the first behind it, stand for."""
    before = max((place for place in places if place < start), default=None)
    after = min((place for place in places if place >= (end or start + 1)), default=None)
    edges = set() if before is None else {("before", places[before])}
    return edges if after is None else edges | {("after", places[after])}


def _forces(sentence: Sentence) -> Iterator[tuple[int, str]]:
    """Yield each word that *may* or *must*, or one like them, stands before, without numbers between, and which."""
    content = set(sentence.content)
    for place, word in enumerate(sentence.words):
        kind = _MODALS.get(word.low)
        if kind is None:
            continue
        for at in range(place + 1, min(place + _REACH, len(sentence.words))):
            if at in content and not sentence.words[at].text[0].isdigit():
                yield at, kind
                break


@lru_cache(maxsize=20_000)
def _opposites_of(lemma: str) -> frozenset[str]:
    """Return the opposites of a lemma, and what it is with or without a prefix that negates."""
    negated = {f"{prefix}{lemma}" for prefix in _PREFIXES if len(lemma) >= _LEAST_STEM}
    bare = {
        lemma[len(prefix) :]
        for prefix in _PREFIXES
        if lemma.startswith(prefix) and len(lemma) >= len(prefix) + _LEAST_STEM
    }
    return opposites().get(lemma, frozenset()) | negated | bare


def _comparable(quantity: Quantity, other: Quantity) -> bool:
    """Return whether two quantities can stand for each other: of one kind, both years, or of like nouns."""
    if quantity.kind in _CURRENCIES and other.kind in _CURRENCIES:
        return True
    if quantity.kind != other.kind:
        return False
    if quantity.kind:
        return True
    if is_year(quantity) or is_year(other):
        return is_year(quantity) and is_year(other)
    return not (quantity.noun and other.noun) or lemma_of(quantity.noun) == lemma_of(other.noun)


def _among(quantity: Quantity, others: tuple[Quantity, ...]) -> bool:
    return any(quantity.kind == other.kind and set(quantity.values) & set(other.values) for other in others)
