"""Split requests and tool definitions into terms: identifiers split, endings cut, stop words left out."""

import re
from functools import lru_cache
from typing import Final

_SEAMS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|_")
_WORD: Final = re.compile(r"[^\W_]+")
_LONGEST: Final = 40
_STOP_WORDS: Final = """
a an the and or but if of to in on at by for with from into onto as is are was were be been being am do does
did have has had having i me my mine we us our ours you your yours he him his she her it its they them their
this that these those there here what which who whom whose when where why how can could will would shall
should may might must not no nor so than then too very just also please let s t d ll re ve m want need like
some any all each more most other such only own same about above again after before below between both
during further now once out over through under until up down off while because against ok okay hi hello
thanks thank help assist assistance using use used given based via etc
"""

_SILENT: Final = frozenset(_STOP_WORDS.split())


def spelled_out(text: str) -> str:
    """Return ``text`` with its identifiers split: ``getUserById`` and ``get_user_by_id`` alike."""
    return _SEAMS.sub(" ", text)


def terms(text: str) -> list[str]:
    """Return the stems of the words of ``text`` without stop words, in order, with repetitions."""
    words = _WORD.findall(spelled_out(text).lower())
    return [stem(word) for word in words if word not in _SILENT and len(word) <= _LONGEST]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return ``word`` without the common endings of English; words that are not English only lose a plural s."""
    if len(word) <= 3 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - too short to have endings
        return word
    word = _singular(word)
    for ending, kept, rest in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= kept:
            base = word[: -len(ending)] + rest
            return _undoubled(base)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word  # noqa: PLR2004 - "here" stays


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:  # noqa: PLR2004 - "ties" stays
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _undoubled(base: str) -> str:
    """Return ``base`` in the form of related words: ``plann`` as ``plan``, ``calculate`` as ``calculat``."""
    if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "aeiouls":  # noqa: PLR2004 - "add" stays
        return base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > 4 else base  # noqa: PLR2004 - as in stem


_ENDINGS: Final = (
    ("ization", 3, "iz"),
    ("isation", 3, "iz"),
    ("ational", 3, "at"),
    ("ation", 3, "at"),
    ("ition", 3, "it"),
    ("ction", 2, "ct"),
    ("ibility", 3, "ibl"),
    ("ability", 3, "abl"),
    ("ising", 3, "iz"),
    ("ising", 3, "iz"),
    ("ment", 4, ""),
    ("ness", 4, ""),
    ("ator", 3, "at"),
    ("ing", 3, ""),
    ("ied", 3, "y"),
    ("ed", 3, ""),
    ("er", 4, ""),
    ("or", 5, ""),
    ("ly", 4, ""),
)
"""An ending, the least number of letters before it, and its replacement; the first match applies."""
