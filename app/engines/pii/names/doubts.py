# ruff: noqa: RUF001 - quotes and dashes as they occur in texts
"""Doubt people found in languages that the tagger was not trained for: ask for capitals, known names, certainty.

What the tagger has never seen looks to it like a name. In edited text of Turkish or Finnish nineteen in twenty of its
findings in small letters, and most single words that no list of names holds, are none.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from app.core.contracts.engines import NameEngine
from app.engines.pii.names.languages import LATIN, leaning_of, nearest_of
from app.engines.pii.names.neighbours import is_beside_noun
from app.engines.pii.names.nobody import is_nobody
from app.engines.pii.names.spelling import lowered

_DOUBTED: Final = frozenset(LATIN) - {"en", "de", "fr", "es", "it"}
"""Languages in which people are doubted."""

_WELL_KNOWN: Final = frozenset({"pt", "nl", "sv", "no", "da"})
"""Languages in which capitals suffice, but for a lone word at the start of a sentence that no list of names holds."""

_BETTER_FAST: Final = frozenset({"de", "es", "hu", "id", "no", "ro"})
"""Languages in which the fast tagger alone is better than both together, on the development parts of open sets."""

_OWN_LETTERS: Final = {"tr": str.maketrans("ı", "i")}
"""Letters of a language that elsewhere disguise those that they look like."""

SURE_BESIDE: Final = 0.9
"""Score of a person whom the accurate tagger finds where another one reads, too, since it knows the language better."""

TaggerName = Literal["fast", "world", "accurate"]
"""A tagger: the fast one for English, the fast one for other languages, or the accurate one."""


class _Least(NamedTuple):
    """The least likelihood of a person: of a lone word that no list, one of last, or one of first names holds.

    ``unlisted``, ``last`` and ``first`` are of several words, of which a list holds one.
    """

    lone_unlisted: float
    lone_last: float
    lone_first: float
    unlisted: float
    last: float
    first: float


_LEAST: Final = {
    "tr": _Least(0.68, 0.3, 0.3, 0.6, 0.4, 0.4),
    "id": _Least(0.45, 0.55, 0.5, 0.4, 0.5, 0.5),
    "ro": _Least(0.5, 0.65, 0.6, 0.45, 0.45, 0.45),
    "hu": _Least(0.7, 0.3, 0.3, 0.68, 0.3, 0.3),
}
_LEAST_ELSEWHERE: Final = _Least(0.9, 0.4, 0.5, 0.6, 0.4, 0.4)
"""Chosen where development parts of open sets lost no more people than before; Finnish stands for the others."""

_STRUCTURE: Final = 0.6
"""Score of a person whom structure alone shows, which is not enough for a lone word that no list holds."""

_SURE_IN_SMALL_LETTERS: Final = 0.95
_SURE_WHERE_TRAINED: Final = 0.9
_LIKELY: Final = 0.5

_NUMBERED: Final = re.compile(r"[IVX]\. ")
"""An ordinal, which the structure of a name with an initial resembles: I. Dünya Savaşı."""

_OTHER_LETTER: Final = re.compile(r"[^\W\d_a-zA-Z]")
_ENGLISH: Final = re.compile(r"\b(?:the|and|with|this|that|you|your|have|from|which|please)\b", re.IGNORECASE)
"""Words that are English wherever they stand among words."""
_WORD: Final = re.compile(r"\S+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_SENTENCE: Final = re.compile(r"[^\w\n]{0,4}(?:[^\W\d_]+(?:['’][a-z]+)?[,:]? ){3}[^\W\d_]")
"""Four words in one line, as texts begin that are sentences and no values."""

_CALLING: Final = re.compile(
    r"\b(?i:hi|hey|hello|thanks|thx|thank you|dear|ask|tell|call|email|ping|cc|cheers|regards|love|by|dr|mr|mrs|ms"
    r"|author|owner|assignee|reviewer|maintainer|approver) ?[:=,]? ?[\"'@]?\Z"
)
"""Words before somebody who is called or named, where nobody else would stand."""

_BEFORE_NAME: Final = 24
_SENTENCE_START: Final = re.compile(r"(?:^|[.!?:…\n\"“”„»«–•\-])\s*$")
_PARTICLES_TEXT: Final = (
    "al ap af av bin bint da das de del della den der di do dos du el i la le ibn op ter ten van von zu"
)
_PARTICLES: Final = frozenset(_PARTICLES_TEXT.split())

Kinds = Callable[[str], str]
"""Returns the letters of the lists that hold a word in small letters (`Gazetteer.kinds`)."""


def code_of(text: str, language: str) -> str:
    """Return the code of the language of ``text``, or nothing where it cannot be told.

    ``language`` is what the caller says it is, or ``auto``.
    """
    if language.lower() == "auto":
        return leaning_of(text) or nearest_of(text) or ""
    return re.split("[-_]", language.lower())[0]


def readers(text: str, language: str, names: NameEngine) -> tuple[TaggerName, ...]:
    """Return the taggers that read ``text`` where the caller asks for ``names``.

    Texts in English, and those whose language cannot be told and whose letters are all English, are read by the tagger
    that knows English best. The accurate one was trained on little else: elsewhere the fast one reads, too, and alone
    where it is better. A short English text may show no language and other letters in a name: both read it.
    """
    code = code_of(text, language)
    if code == "en" or (not code and _OTHER_LETTER.search(text) is None):
        return (names,)
    if not code and _ENGLISH.search(text) is not None:
        return names, "world"
    return ("world",) if names == "fast" or code in _BETTER_FAST else (names, "world")


def own_letters(text: str, language: str) -> Mapping[int, int]:
    """Return the letters that the language of ``text`` writes itself, with those that they look like."""
    if not any(chr(letter) in text for letters in _OWN_LETTERS.values() for letter in letters):
        return {}
    return _OWN_LETTERS.get(code_of(text, language), {})


def believed(
    text: str, start: int, end: int, score: float, code: str, kinds: Kinds, share: float = 1.0
) -> tuple[int, int] | None:
    """Return the part of the person ``text[start:end]`` that bears a second look; ``code`` is from `code_of`.

    ``share`` is the part of the ``score`` that speaks for a person rather than for a name of another kind.
    """
    if not code:
        return None if _is_plain_word(text, start, end, score, kinds) else (start, end)
    if code not in _DOUBTED:
        return start, end
    place = _borne_out(text, start, end, score, share, code, kinds)
    if place is None or is_nobody(text[slice(*place)], code, kinds):
        return None
    return None if is_beside_noun(text, *place, code, kinds) else place


def _is_plain_word(text: str, start: int, end: int, score: float, kinds: Kinds) -> bool:
    """Return whether a person in a text whose language cannot be told is rather a plain word of some language.

    Such texts are values of members, cells, keywords. One word in small letters that no list of names holds
    ("abierto", "cerrado") looks to the tagger like a name because it does not know the word. A sentence says more,
    and so does a word that calls somebody.
    """
    word = text[start:end]
    return (
        word.isalpha()
        and word.islower()
        and score < _SURE_IN_SMALL_LETTERS
        and not set("fl") & set(kinds(word))
        and _SENTENCE.match(text) is None
        and _CALLING.search(text, max(0, start - _BEFORE_NAME), start) is None
    )


def _borne_out(
    text: str, start: int, end: int, score: float, share: float, code: str, kinds: Kinds
) -> tuple[int, int] | None:
    """Return the part of the person ``text[start:end]`` that a text in the doubted language ``code`` bears out."""
    words = [word.span() for word in _WORD.finditer(text, start, end)]
    if text[:1].islower() and text[start:end].islower():
        return (start, end) if score >= _SURE_IN_SMALL_LETTERS else None
    while words and not text[words[-1][0] : words[-1][1]][:1].isupper():
        words.pop()
    while words and not _opens(text, words):
        words.pop(0)
    if not words:
        return None
    first, last = words[0][0], words[-1][1]
    if _NUMBERED.match(text, first, last) and score <= _STRUCTURE:
        return None
    sure = _is_well_known if code in _WELL_KNOWN else _is_likely
    return (first, last) if sure(text, first, last, score, share, code, kinds) else None


def _opens(text: str, words: list[tuple[int, int]]) -> bool:
    """Return whether the first of ``words`` can begin a name: it has a capital, or is a particle before one."""
    word = text[slice(*words[0])]
    return word[:1].isupper() or (word in _PARTICLES and text[words[1][0]].isupper())


def _is_well_known(
    text: str, first: int, last: int, score: float, _share: float, _code: str, kinds: Kinds
) -> bool:
    """Return whether a finding in capitals is sure enough in a language that the tagger was trained for."""
    alone, lists = _lists(text, first, last, kinds)
    opening = alone and _SENTENCE_START.search(text, max(0, first - 4), first) is not None
    return score >= (_SURE_WHERE_TRAINED if opening and not lists else _LIKELY)


def _is_likely(text: str, first: int, last: int, score: float, share: float, code: str, kinds: Kinds) -> bool:
    """Return whether a finding in capitals is likely enough a person, and no name of another kind."""
    alone, lists = _lists(text, first, last, kinds)
    least = _LEAST.get(code, _LEAST_ELSEWHERE)
    if alone and not lists and score <= _STRUCTURE:
        return False
    kind = 2 if "f" in lists else 1 if lists else 0
    return score * share >= least[kind if alone else kind + 3]


def _lists(text: str, first: int, last: int, kinds: Kinds) -> tuple[bool, set[str]]:
    """Return whether a finding is a lone word, and which lists of names hold one of its words in capitals."""
    parts = _LETTERS.findall(text, first, last)
    lists = {kind for part in parts if part[0].isupper() for kind in kinds(lowered(part))}
    return len(parts) == 1 or " " not in text[first:last], lists & set("fl")
