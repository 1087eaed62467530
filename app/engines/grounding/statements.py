"""Find the statements of an answer: its sentences without code, questions, headings and courtesies."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from app.core.contracts.grounding import SourcePlace, Statements
from app.engines.grounding.evidence import content_of
from app.engines.grounding.fences import Layout, blanked
from app.engines.grounding.links import links_in
from app.engines.grounding.words import sentences_of, words_of

_COURTESIES: Final = (
    *(
        r"you(?:'|\u2019)?(?:'re| are|re) (?:very |most )?welcome",
        "let me know",
        "feel free",
        "dear ",
        "is there anything",
    ),
    *(
        r"please (?:let|feel|contact|ask|tell)",
        r"(?:i )?hope (?:this|that|it) helps",
        r"(?:how|what) can i help",
    ),
    r"i(?:'m| am) (?:sorry|afraid|happy to|glad to|here to|an? (?:ai|assistant|language))",
    r"i (?:can|could|will|would be|'ll) (?:happy to )?(?:help|assist|show|explain|look|check)",
    *(
        "i'd be happy",
        r"if you (?:have|need|would like|want)",
        r"would you like (?:me|to)",
        "best regards",
        "kind regards",
    ),
    r"i (?:do not|don't|can't|cannot|could not|couldn't|(?:am|was) unable to) (?:know|find|see|tell|answer|say|have)",
    (
        r"(?:the|this|your) (?:provided |given )?(?:context|text|document|passage|source|conversation|information)s? "
        r"(?:you (?:gave|provided) )?(?:do(?:es)? not|doesn't|don't|did not) "
    ),
    *(r"there is no (?:information|mention)", "great question", "good question", "happy to help"),
    *(r"thanks? (?:you )?(?:for|so|very)", r"thank you\W*$", r"thanks\W*$"),
    r"(?:sure|certainly|of course|absolutely|hello|hi|hey|sorry)(?: there)?\W*(?:$|here|let)",
    r"here(?:'s| is| are) (?:the|an?|your|my) ",
)
_COURTESY: Final = re.compile("|".join(_COURTESIES), re.IGNORECASE)
"""Beginnings of sentences that state no fact, or that say that the sources lack the information."""

_MARK: Final = re.compile(r"[ \t]*(?:[-*+\u2022>]|\d{1,3}[.)])[ \t]+")
_LEAST_CONTENT: Final = 2
_LONG_WORD: Final = re.compile(r"[^\W_]{4,40}|\d+")
_PLACES: Final = 32


def nearest_of(sentences: Sequence[str], sources: Sequence[str]) -> list[SourcePlace | None]:
    """Return for each sentence the sentence of the sources that shares most words with it; rare words count more."""
    places: list[SourcePlace] = []
    index: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(sources):
        low = text.lower()
        for start, end in sentences_of(text):
            for word in set(_LONG_WORD.findall(low, start, end)):
                if len(index[word]) < _PLACES:
                    index[word].append(len(places))
            places.append(SourcePlace(number, start, end))
    nearest: list[SourcePlace | None] = []
    for sentence in sentences:
        votes: dict[int, float] = defaultdict(float)
        for word in sorted(set(_LONG_WORD.findall(sentence.lower()))):
            for at in index.get(word, ()):
                votes[at] += 1 / len(index[word])
        nearest.append(places[max(votes, key=lambda at: (votes[at], -at))] if votes else None)
    return nearest


def statements_of(answer: str) -> Statements:
    """Return the statements of ``answer``."""
    layout = Layout.of(answer)
    links = [(link.start, link.end) for link in links_in(answer)]
    text, plain = blanked(layout.without_blocks, links), blanked(layout.masked, links)
    sentences = []
    says_something = False
    for start, end in sentences_of(text):
        mark = _MARK.match(text, start, end)
        begin = mark.end() if mark else start
        bare = text[begin:end].strip(" *_\"'`")
        stems = [word.stem for word in words_of(plain, begin, end)]
        if not stems or _COURTESY.match(bare):
            continue
        says_something = True
        if not bare.endswith(("?", ":")) and not bare.startswith(("#", "|")) and _is_full(stems):
            sentences.append((begin, end))
    return Statements(sentences, text if says_something else None)


def _is_full(stems: Sequence[str]) -> bool:
    return len(content_of(stems)) >= _LEAST_CONTENT
