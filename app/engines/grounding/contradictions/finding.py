"""Find the sentences of an answer that contradict the sentence of the sources that they follow."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from app.core.contracts.grounding import AnswerFinding, SourcePlace
from app.engines.grounding.contradictions.comparing import Comparison
from app.engines.grounding.contradictions.reading import Sentence
from app.engines.grounding.words import sentences_of

MOST: Final = 100
"""Most sentences of an answer that are compared, as many as are judged."""
_CANDIDATES: Final = 2
_LONGEST: Final = 600
"""Characters of a sentence; longer ones are lists or tables, in which nothing is before anything."""
_WORD: Final = re.compile(r"[^\W_]{3,40}")
_PLACES: Final = 32
_NEARLY: Final = 0.15
_OUTER: Final = " .!?\"'*_\u201c\u201d"
_SCORE: Final = 0.85
_MESSAGE: Final = "A sentence of the context says otherwise."


class SourceSentences:
    """The sentences of the sources by their words; they are read when a statement comes near."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._places: list[SourcePlace] = []
        self._index: dict[str, list[int]] = defaultdict(list)
        self._said: set[str] = set()
        for number, text in enumerate(texts):
            for start, end in sentences_of(text):
                if end - start > _LONGEST:
                    continue
                low = text[start:end].lower()
                self._said.add(_bare(low))
                for word in set(_WORD.findall(low)):
                    if len(self._index[word]) < _PLACES:
                        self._index[word].append(len(self._places))
                self._places.append(SourcePlace(number, start, end))
        self._read = cache(self._sentence)

    def has(self, text: str) -> bool:
        """Return whether one of the sentences is ``text``, word for word."""
        return _bare(text.lower()) in self._said

    def nearest(self, text: str) -> list[tuple[SourcePlace, Sentence]]:
        """Return the sentences that share most words with ``text``; rare words count more."""
        votes: dict[int, float] = defaultdict(float)
        for word in sorted(set(_WORD.findall(text.lower()))):
            for place in self._index.get(word, ()):
                votes[place] += 1 / len(self._index[word])
        best = sorted(votes, key=lambda place: (-votes[place], place))[:_CANDIDATES]
        return [(self._places[place], self._read(place)) for place in best]

    def _sentence(self, number: int) -> Sentence:
        place = self._places[number]
        return Sentence.of(self._texts[place.source], place.start, place.end)


def check_contradictions(
    prose: str, sentences: Sequence[tuple[int, int]], sources: SourceSentences
) -> Iterator[AnswerFinding]:
    """Yield a finding for each sentence that one of the sources contradicts, and none supports."""
    for start, end in sentences[:MOST]:
        # What repeats a sentence says what that says.
        if end - start > _LONGEST or sources.has(prose[start:end]):
            continue
        place = _contradicted(Sentence.of(prose, start, end), sources.nearest(prose[start:end]))
        if place is not None:
            yield AnswerFinding("contradiction", start, end, "high", _SCORE, _MESSAGE, place)


def _bare(text: str) -> str:
    """Return ``text`` without the signs around it and with one blank between words."""
    return " ".join(text.split()).strip(_OUTER)


def _contradicted(said: Sentence, near: Sequence[tuple[SourcePlace, Sentence]]) -> SourcePlace | None:
    following: list[tuple[SourcePlace, Comparison]] = []
    for place, source in near:
        pair = Comparison(said, source)
        if not pair.follows:
            continue
        # A sentence that says all of it decides, whatever the others say.
        if pair.covered >= 1 and next(pair.differences(), None) is None:
            return None
        following.append((place, pair))
    if not following:
        return None
    best = max(comparison.covered for _, comparison in following)
    close = [(place, pair) for place, pair in following if pair.covered >= best - _NEARLY]
    if any(next(pair.differences(), None) is None for _, pair in close):
        return None
    return close[0][0]
