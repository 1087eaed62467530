"""Find names of an answer that the sources do not have, or spell differently."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from app.core.contracts.grounding import AnswerFinding, SourcePlace
from app.engines.grounding.distance import distance
from app.engines.grounding.sources import Sources, SourceToken, tokens_of
from app.engines.grounding.stemming import stem
from app.engines.grounding.words import STOP_WORDS, sentences_of

_ORDINARY_WORDS: Final = (
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december english german french spanish italian american european british chinese "
    "japanese indian internet api url json html http https sql pdf csv xml id ok faq note tip warning example summary "
    "conclusion step steps section table figure chapter part yes mr mrs ms dr prof sir please thanks thank hello hi "
    "dear sorry however therefore additionally furthermore overall finally first second third also python javascript "
    "god am pm utc gmt usd eur us uk eu a.m p.m ai it cpu gpu ram ui"
)
_ORDINARY: Final = frozenset(_ORDINARY_WORDS.split())
_JOINER: Final = re.compile(r"[ \u00a0-]{1,2}|\. |'s ")
_HEADING: Final = re.compile(
    r"^[ \t]*(?:#{1,6} |\*\*[^\n*]{1,80}\*\*:?[ \t]*$)[^\n]*$|^[^\n.!?]{1,80}:[ \t]*$", re.MULTILINE
)
_BULLET: Final = re.compile(r"[ \t]*(?:[-*\u2022]|\d{1,3}[.)])[ \t]+(?:\*\*)?")
_MOST: Final = 200
_MISSPELT: Final = 5
_MISSPELT_BESIDE_OTHERS: Final = 4
"""Least letters of a word that may be a misspelling of another; fewer where the rest of the name matches."""

_LONGEST: Final = 40
_LONG: Final = 8
_TITLE: Final = 3
"""A capitalised line of more words than this is a title, not a sentence."""
_LEAST_ENGLISH: Final = 0.2
_ENOUGH_WORDS: Final = 12
_SAMPLE: Final = 20_000


def is_english(text: str) -> bool:
    """Return whether common English words occur often enough; short texts pass."""
    words = tokens_of(text[:_SAMPLE])
    if len(words) < _ENOUGH_WORDS:
        return True
    return sum(stem(word.word) in STOP_WORDS for word in words) >= _LEAST_ENGLISH * len(words)


def check_names(text: str, sources: Sources) -> Iterator[AnswerFinding]:
    """Yield findings for names of ``text`` (code, links, handles blanked out) that the sources lack; English only."""
    if not is_english(text):
        return
    plain = _HEADING.sub(lambda heading: " " * len(heading[0]), text)
    reported: set[str] = set()
    for place in sentences_of(plain):
        for name in _names(plain, place, sources):
            spelled = " ".join(word.word for word in name)
            if spelled in reported:
                continue
            finding = _checked(name, sources)
            if finding is not None:
                reported.add(spelled)
                yield finding
                if len(reported) >= _MOST:
                    return


def _names(text: str, place: tuple[int, int], sources: Sources) -> Iterator[list[SourceToken]]:
    """Yield the runs of capitalised words; a capital alone does not make the first word of a sentence a name."""
    start, end = place
    bullet = _BULLET.match(text, start, end)
    tokens = tokens_of(text, bullet.end() if bullet else start, end)
    words = [token for token in tokens if text[token.start].isalpha()]
    if len(words) > _TITLE and sum(text[token.start].islower() for token in words) * 4 < len(words):
        return
    run: list[SourceToken] = []
    for index, token in enumerate(tokens):
        capital = text[token.start].isupper()
        joined = bool(run) and _JOINER.fullmatch(text, run[-1].end, token.start) is not None
        if run and not (capital and joined):
            yield from _name(run, tokens[0], sources)
            run = []
        if capital and not (index == 0 and stem(token.word) in STOP_WORDS):
            run.append(token)
    if run:
        yield from _name(run, tokens[0], sources)


def _name(run: list[SourceToken], first: SourceToken, sources: Sources) -> Iterator[list[SourceToken]]:
    if run[0] is first and not (
        len(run) > 1
        and (_is_known(first, sources) or not _is_known(run[1], sources) or _respelled(run, 0, sources))
    ):
        run = run[1:]
    while run and (stem(run[0].word) in STOP_WORDS or run[0].word in _ORDINARY):
        run = run[1:]
    if any(len(token.word) > 1 for token in run):
        yield run


def _checked(name: Sequence[SourceToken], sources: Sources) -> AnswerFinding | None:
    unknown = [token for token in name if not _is_known(token, sources)]
    span = ("name", name[0].start, name[-1].end)
    if not unknown:
        if len(name) == 1 or _stand_together(name, sources):
            return None
        return AnswerFinding(*span, "low", 0.3, "The context has these names, but not together.")
    if len(unknown) == 1:
        near = _near(unknown[0], sources) or _respelled(name, name.index(unknown[0]), sources)
        if near:
            spelled, place = near[0]
            sure = len(near) == 1 and (len(name) > 1 or len(unknown[0].word) >= _LONG)
            where = ("name", unknown[0].start, unknown[0].end)
            message = "The context spells a name of this kind differently."
            fix = spelled if sure else None
            return AnswerFinding(
                *where, "medium", 0.6, message, place, fix, tuple(spelling for spelling, _ in near[:3])
            )
    if len(unknown) < len(name):
        places = (sources.capitals[token.word][1] for token in name if token.word in sources.capitals)
        message = "The context has this name in part only."
        return AnswerFinding(*span, "medium", 0.5, message, next(places, None))
    return AnswerFinding(*span, "medium", 0.5, "This name is not in the context.")


def _is_known(token: SourceToken, sources: Sources) -> bool:
    bare = token.word.removesuffix("'s")
    return (
        len(bare) == 1
        or bare in sources.words
        or bare in _ORDINARY
        or stem(bare) in sources.stems
        or stem(bare) in STOP_WORDS
    )


def _stand_together(name: Sequence[SourceToken], sources: Sources) -> bool:
    words = [token.word.removesuffix("'s") for token in name]
    if sources.has_run([token.word for token in name]):
        return True
    return all(not _ORDINARY.isdisjoint(pair) or sources.has_run(pair) for pair in pairwise(words))


def _respelled(name: Sequence[SourceToken], index: int, sources: Sources) -> list[tuple[str, SourcePlace]]:
    """Return words that differ little from one word of a name and occur in the sources with all its other words."""
    if len(name) == 1:
        return []
    words = [token.word.removesuffix("'s") for token in name]
    return [
        (spelled, place)
        for spelled, place in _near(name[index], sources, _MISSPELT_BESIDE_OTHERS)
        if sources.has_run([*words[:index], spelled.lower().removesuffix("'s"), *words[index + 1 :]])
    ]


def _near(token: SourceToken, sources: Sources, shortest: int = _MISSPELT) -> list[tuple[str, SourcePlace]]:
    """Return the names of the sources that differ from this one by a letter, or by two where it is long."""
    word = token.word.removesuffix("'s")
    if not shortest <= len(word) <= _LONGEST or not sources.may_search():
        return []
    limit = 2 if len(word) >= _LONG else 1
    matches = []
    for capital in sources.capitals_by_letter.get(word[0], ()):
        apart = distance(word, capital.removesuffix("'s"), limit)
        if apart:
            matches.append((apart, *sources.capitals[capital]))
    matches.sort(key=lambda match: match[0])
    return [(spelled, place) for apart, spelled, place in matches if apart == matches[0][0]]
