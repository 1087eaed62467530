"""Find the sentences and words of a text with their places, in linear time."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from app.engines.grounding.stemming import stem

_STOP_WORDS: Final = (
    "a about after again all also am an and any are as at be because been before being between both but by can "
    "could did do does doing down during each few for from further had has have having he her here hers him his how "
    "i if in into is it its itself just like may me more most much my no nor not now of off on once only or other our "
    "out over own per quite rather really same she should so some such than that the their theirs them then there "
    "these they this those through to too under until up upon us very was we were what when where which while who whom "
    "whose why will with would yes you your yours yeah yep well oh ok okay s t d ll m o re ve didn doesn don isn wasn "
    "weren won wouldn shouldn couldn aren hasn haven hadn n't dont didnt thats im ive lot lots"
)
_NEGATIONS: Final = (
    "not no never none nothing nobody neither nor cannot without n't dont didnt doesnt isnt wasnt wont cant"
)
_SHORT: Final = (
    "mr mrs ms dr prof sr jr st vs etc inc ltd co corp no vol fig eq al approx dept est gen gov jan feb mar apr jun "
    "jul aug sep sept oct nov dec mon tue wed thu fri sat sun e.g i.e cf ca resp rev hon u.s u.k a.m p.m"
)

STOP_WORDS: Final = frozenset(stem(word) for word in _STOP_WORDS.split())
"""Stems of words that state nothing by themselves."""

NEGATIONS: Final = frozenset(stem(word) for word in _NEGATIONS.split())
"""Stems of words that negate."""

_ABBREVIATIONS: Final = frozenset(_SHORT.split())
_WORD: Final = re.compile(
    r"\d+(?:[.,:]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\[[A-Z][A-Z0-9_]{0,40}_\d{1,9}(?:~\w{4})?\]"
)
_BREAK: Final = re.compile(r"[.!?\u2026]+[\"'\u201d\u2019)\]]*(?=\s|$)|\n+|[\u3002\uff01\uff1f]")
_LAST_WORD: Final = re.compile(r"[\w.]+$")
_TAIL: Final = 12


class EvidenceWord(NamedTuple):
    """A word: its stem, its place, and whether it is written with a capital.

    A tuple, because a text has thousands of them and dataclasses take three times as long to build.
    """

    stem: str
    start: int
    end: int
    capital: bool


def words_of(text: str, start: int = 0, end: int | None = None) -> list[EvidenceWord]:
    """Return the words of ``text[start:end]``; a contraction gives its parts (`don't`: do, n't)."""
    words: list[EvidenceWord] = []
    for match in _WORD.finditer(text, start, len(text) if end is None else end):
        raw = match[0]
        begin, stop = match.span()
        low = raw.lower()
        if "'" in low or "\u2019" in low:
            capital = raw[0].isupper()
            for part in _parts(low.replace("\u2019", "'")):
                words.append(EvidenceWord(part, begin, stop, capital))
                capital = False
        else:
            # 1,000 and 1000 are the same number.
            bare = low.replace(",", "") if "," in low else low
            words.append(EvidenceWord(stem(bare), begin, stop, raw[0] != low[0]))
    return words


def _parts(low: str) -> Iterator[str]:
    if low.endswith("n't"):
        if len(low) > len("n't"):
            yield stem({"ca": "can", "wo": "will", "sha": "shall"}.get(low[:-3], low[:-3]))
        yield "n't"
        return
    head, _, tail = low.partition("'")
    yield stem(head)
    if tail not in {"s", ""}:
        yield tail


def sentences_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each sentence of ``text``, without the white space around it."""
    begin = 0
    for match in _BREAK.finditer(text):
        if match[0] == "." and _is_abbreviation(text, match.start()):
            continue
        yield from _trimmed(text, begin, match.end())
        begin = match.end()
    yield from _trimmed(text, begin, len(text))


def _is_abbreviation(text: str, dot: int) -> bool:
    before = _LAST_WORD.search(text[max(0, dot - _TAIL) : dot])
    if before is None:
        return False
    word = before[0].lower()
    after = text[dot + 1 : dot + 3].strip()[:1]
    single = len(word) == 1 and word.isalpha() and before[0].isupper()  # an initial: J. Smith
    return word in _ABBREVIATIONS or single or (after.islower() and "." in word)


def _trimmed(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[begin:end]
    bare = piece.strip()
    if bare:
        begin += len(piece) - len(piece.lstrip())
        yield begin, begin + len(bare)
